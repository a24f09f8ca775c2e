"""Reads the log of one bandit for evaluation: ``sketchbandit service evaluate``."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import sqlalchemy as sa

from sketchbandit.errors import InputError
from sketchbandit.evaluation import Log, read_log
from sketchbandit_service.checking import looked_at
from sketchbandit_service.exporting import export
from sketchbandit_service.recovery import config_of
from sketchbandit_service.storage import tables


@contextmanager
def exported(
    state: Path, *, bandit: str | None = None, database: str | None = None
) -> Iterator[tuple[Path, Log]]:
    """The log of one bandit as of now, in a temporary file. The server may be running.

    Parameters
    ----------
    state : path
        The state folder of the server, or a copy of it.
    bandit : str, optional
        The name of the bandit. It can be left out if there is only one.
    database : str, optional
        The URL of the database, if it is not the SQLite file in the folder.

    """
    with looked_at(state, database) as found:
        query = sa.select(tables.bandits).where(tables.bandits.c.name.is_not(None))
        rows = found.read(lambda connection: connection.execute(query).all())
    names = [row.name for row in rows]
    if bandit is None and len(names) != 1:
        raise InputError(f"give the name of a bandit; there are: {', '.join(sorted(names)) or 'none'}")
    chosen = [row for row in rows if bandit in (None, row.name)]
    if not chosen:
        raise InputError(f"there is no bandit {bandit!r}; there are: {', '.join(sorted(names))}")
    with tempfile.TemporaryDirectory(prefix="sketchbandit-") as folder:
        path = Path(folder) / "log.parquet"
        export(state, path, database=database, bandit=chosen[0].name)
        yield path, read_log(path, dim=config_of(chosen[0]).dim)
