"""Whether journal and snapshots hold what they should: ``sketchbandit service check``."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import sqlalchemy as sa

from sketchbandit.arrays import Arrays, Scalars
from sketchbandit.errors import InputError, SketchBanditError
from sketchbandit.locking import lock_folder
from sketchbandit.service.bandit import Bandit
from sketchbandit.service.config import BanditConfig
from sketchbandit.service.recovery import Since, belongs, read_snapshot, replay, snapshot_folder
from sketchbandit.service.scaling_bytes import decode as decode_scaling
from sketchbandit.service.storage import tables
from sketchbandit.service.storage.connecting import JOURNAL, default_url
from sketchbandit.service.storage.database import Database
from sketchbandit.service.storage.paging import in_order
from sketchbandit.service.vectors import decode

_PAGE = 2000
_SAMPLE = "reader.sample."


class Finding(NamedTuple):
    """One thing that was looked at."""

    what: str
    is_good: bool
    details: str


@contextmanager
def opened(state: Path, database: str | None) -> Iterator[Database]:
    """The database of a state folder that no server is using."""
    if not state.is_dir():
        raise InputError(f"there is no folder {state}")
    if database is None and not (state / JOURNAL).is_file():
        raise InputError(f"{state} holds no journal; give --database if it lies elsewhere")
    with lock_folder(state):
        found = Database(database or default_url(state))
        found.open(may_create=False)
        try:
            if not belongs(state, found):
                raise InputError(f"{state} and {found} are not of the same server")
            yield found
        finally:
            found.close()


def check(
    state: Path, database: str | None = None, *, tell: Callable[[str], None] = lambda _: None
) -> list[Finding]:
    """Verify everything; nothing is changed.

    The database's own check; every row; every snapshot's checksum; and for every bandit the journal is played
    from its oldest snapshot (or from the beginning) up to each newer one, which must be the same to the bit.

    Parameters
    ----------
    state : path
        The folder of a server that is not running.
    database : str, optional
        Its URL, if it is not the SQLite file in the folder.
    tell : callable
        Is told what is being done.

    """
    with opened(state, database) as found:
        return found.read(lambda connection: list(_check(connection, state, found, tell)))


def _check(
    connection: sa.Connection, state: Path, database: Database, tell: Callable[[str], None]
) -> Iterator[Finding]:
    if database.is_sqlite:
        tell("the database file")
        said = connection.exec_driver_sql("PRAGMA integrity_check").scalar_one()
        yield Finding("database file", said == "ok", str(said))
    rows = connection.execute(sa.select(tables.bandits).where(tables.bandits.c.name.is_not(None))).all()
    bandits = {row.id: (row.name, BanditConfig.from_json(row.config), row.created) for row in rows}
    tell("the rows of the journal")
    yield _check_rows(connection, {number: config for number, (_, config, _) in bandits.items()})
    for number, (name, config, created) in bandits.items():
        tell(f"bandit {name}")
        yield from _check_bandit(connection, state, Bandit(number, name, config, created=created))


def _check_rows(connection: sa.Connection, configs: dict[int, BanditConfig]) -> Finding:
    """Every decision and scaling can be read; every reward belongs to an earlier decision of its bandit."""
    d, r, s = tables.decisions, tables.rewards, tables.scalings
    count, bad = 0, []
    for row in in_order(connection, sa.select(d.c.seq, d.c.bandit, d.c.features), d.c.seq, _PAGE):
        config = configs.get(row.bandit)
        try:
            count += config is not None and decode(row.features, config.dim) is not None
        except ValueError as error:
            bad.append(f"decision {row.seq}: {error}")
    for row in connection.execute(sa.select(s).where(s.c.bandit.in_(list(configs))).order_by(s.c.seq)).all():
        try:
            decode_scaling(row.scaling, configs[row.bandit].dim)
        except ValueError as error:
            bad.append(f"scaling {row.seq}: {error}")
    strays = sa.select(sa.func.count()).select_from(r).join(d, d.c.seq == r.c.decision, isouter=True)
    strange = strays.where(
        r.c.bandit.in_(list(configs)), sa.or_(d.c.seq.is_(None), d.c.bandit != r.c.bandit, d.c.seq > r.c.seq)
    )
    if lost := connection.execute(strange).scalar_one():
        bad.append(f"{lost} rewards have no decision before them")
    rewards = connection.execute(sa.select(sa.func.count()).select_from(r)).scalar_one()
    return Finding("journal", not bad, "; ".join(bad[:5]) or f"{count} decisions, {rewards} rewards")


def _check_bandit(connection: sa.Connection, state: Path, bandit: Bandit) -> Iterator[Finding]:
    """Play the journal from the start, and compare with every snapshot on the way."""
    whole = []
    service = connection.execute(sa.select(tables.service)).one()
    for path in reversed(snapshot_folder(state, bandit.number).paths()):
        try:
            whole.append(read_snapshot(path, bandit, service.seq))
        except (SketchBanditError, OSError) as error:
            yield Finding(f"{bandit.name}: snapshot {path.name}", False, str(error))
    since, origin = Since.of(None), "the beginning"
    if service.dropped > bandit.number:
        if not whole:
            yield Finding(bandit.name, False, "no snapshot is whole, and the journal does not reach back")
            return
        first = whole.pop(0)
        bandit.restore(first)
        since, origin = Since.of(first), f"record {first.seq}"
    try:
        for snapshot in whole:
            replay(connection, {bandit.number: bandit}, {bandit.number: since}, until=snapshot.seq)
            is_same = same(bandit.policy, snapshot.policy)
            details = (
                f"{'the same to the bit as' if is_same else 'differs from'} the journal from {origin} on"
            )
            yield Finding(f"{bandit.name}: snapshot at record {snapshot.seq}", is_same, details)
            since = Since(snapshot.seq, snapshot.seq + 1)
        replay(connection, {bandit.number: bandit}, {bandit.number: since})
    except SketchBanditError as error:
        yield Finding(f"{bandit.name}: journal", False, str(error))
        return
    learned = f"{bandit.policy.rounds} rewards learned, {len(bandit.open)} decisions open"
    yield Finding(f"{bandit.name}: journal", True, learned)


def same(one: Any, other: Any) -> bool:
    """Whether two policies are equal to the bit, but for the arms of a warm-up: no journal holds those."""
    scalars, arrays = _recorded(one)
    other_scalars, other_arrays = _recorded(other)
    return (
        repr(scalars) == repr(other_scalars)
        and arrays.keys() == other_arrays.keys()
        and all(
            (array.dtype, array.shape) == (other_arrays[name].dtype, other_arrays[name].shape)
            and array.tobytes() == other_arrays[name].tobytes()
            for name, array in arrays.items()
        )
    )


def _recorded(policy: Any) -> tuple[Scalars, Arrays]:
    """What follows from the journal."""
    scalars, arrays = policy.dump()
    return _stripped(scalars), {name: held for name, held in arrays.items() if _SAMPLE not in name}


def _stripped(saved: Any) -> Any:
    """Without the arms of a warm-up, nor the deviation of the rewards where no radius follows it.

    (Snapshots of 0.9 do not have that.)
    """
    if not isinstance(saved, dict):
        return saved
    left_out = ("sample",) if saved.get("beta") == "auto" else ("sample", "spread")
    return {name: _stripped(value) for name, value in saved.items() if name not in left_out}
