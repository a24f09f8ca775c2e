"""Brings back bandits that are out of service: ``sketchbandit service repair``."""

import base64
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import sqlalchemy as sa

from sketchbandit.errors import InputError, SketchBanditError
from sketchbandit_service.checking import Finding, opened
from sketchbandit_service.recovery import load, reason_of
from sketchbandit_service.replaying import Failure, replay
from sketchbandit_service.storage import tables
from sketchbandit_service.storage.database import Database
from sketchbandit_service.storage.records import Statements
from sketchbandit_service.storage.snapshots import Snapshots, snapshots_of
from sketchbandit_service.storage.tables import Query, StoredRow


def repair(
    state: Path,
    database: str | None = None,
    *,
    bandit: str | None = None,
    set_aside: bool = False,
    tell: Callable[[str], None] = lambda _: None,
) -> list[Finding]:
    """Find out why bandits cannot be started, and start them without the records at fault.

    Every bandit is replayed as at a start. If that fails, the finding names the record and the reason.

    Parameters
    ----------
    state : path
        The state folder of a server that is not running.
    database : str, optional
        The URL of the database, if it is not the SQLite file in the folder.
    bandit : str, optional
        The name of a bandit. By default all.
    set_aside : bool
        Move records that cannot be applied out of the journal, into ``set-aside-<bandit>.jsonl`` in the
        folder, until the bandit can be started. They are not learned from; the findings say what they were.
    tell : callable
        Called with what is being done.

    """
    with opened(state, database) as found:
        rows = found.read(lambda connection: connection.execute(_bandits()).all())
        if bandit is not None and not (rows := [row for row in rows if row.name == bandit]):
            raise InputError(f"there is no bandit {bandit!r}")
        work = _Repair(state, found, snapshots_of(state, found), set_aside=set_aside)
        findings: list[Finding] = []
        for row in rows:
            tell(f"bandit {row.name}")
            findings += work.on(row)
        return findings


def _bandits() -> Query:
    return sa.select(tables.bandits).where(tables.bandits.c.name.is_not(None)).order_by(tables.bandits.c.id)


class _Repair:
    """The repair of one state folder."""

    def __init__(self, state: Path, database: Database, snapshots: Snapshots, *, set_aside: bool) -> None:
        self._state = state
        self._database = database
        self._snapshots = snapshots
        self._may_set_aside = set_aside

    def on(self, row: StoredRow) -> Iterator[Finding]:
        """Repair one bandit: replay it until that works, or until nothing more can be done."""
        while (failure := self._try(row)) is not None:
            if isinstance(failure, str):
                yield Finding(row.name, False, failure)
                return
            if not self._may_set_aside or isinstance(failure.error, MemoryError):
                advice = "" if isinstance(failure.error, MemoryError) else "; --set-aside goes on without it"
                yield Finding(row.name, False, failure.reason + advice)
                return
            yield Finding(row.name, True, self._set_aside(row, failure))
        yield Finding(row.name, True, "it can be started")

    def _try(self, row: StoredRow) -> Failure | str | None:
        """What prevents a start. None if nothing does."""
        failures: list[Failure] = []

        def attempt(connection: sa.Connection) -> None:
            service = connection.execute(sa.select(tables.service)).one()
            bandit, start = load(connection, self._snapshots, row, service, is_owner=self._may_set_aside)
            replay(connection, {row.id: bandit}, {row.id: start}, on_failure=failures.append)

        try:
            self._database.read(attempt)
        except Exception as error:  # the same as at a start
            return reason_of(error)
        return failures[0] if failures else None

    def _set_aside(self, row: StoredRow, failure: Failure) -> str:
        """Move a record out of the journal, with what depends on it. Returns what is lost."""
        table, seq = failure.table, failure.seq
        taken = [(table, table.c.seq == seq)]
        if table is tables.decisions:
            taken += [(other, other.c.decision == seq) for other in (tables.rewards, tables.estimates)]
        found = {table: self._lines(table, where) for table, where in taken}
        path = self._state / f"set-aside-{row.name}.jsonl"
        with path.open("a", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for lines in found.values() for line in lines)
        self._without(row.id, seq)
        deletions = Statements(tuple(table.delete().where(where) for table, where in taken))
        last = sa.select(tables.service.c.seq)
        self._database.commit(
            [deletions], self._database.read(lambda connection: connection.execute(last).scalar_one())
        )
        lost = table.name.removeprefix("sketchbandit_") + (
            ", with its reward," if len(taken) > 1 and found[tables.rewards] else ""
        )
        return f"record {seq} of {lost} is set aside in {path}, and has no effect: {failure.error}"

    def _lines(self, table: sa.Table, where: sa.ColumnElement[bool]) -> list[str]:
        query = sa.select(table).where(where)
        rows = self._database.read(lambda connection: connection.execute(query).mappings().all())
        return [json.dumps({"table": table.name, **row}, default=_as_text) for row in rows]

    def _without(self, bandit: int, seq: int) -> None:
        """Rewrite snapshots that list the removed arm as waiting, without it.

        Any other record that a start cannot apply is newer than the newest usable snapshot.
        """
        for place in self._snapshots.places(bandit):
            try:
                snapshot = self._snapshots.read(bandit, place)
            except (SketchBanditError, OSError):
                continue  # an older one, which no start needs
            waiting = snapshot.state.get("open", np.empty(0, np.int64))
            if seq in waiting:
                state = {**snapshot.state, "open": waiting[waiting != seq]}
                self._snapshots.rewrite(bandit, snapshot._replace(state=state))


def _as_text(value: bytes) -> dict[str, str]:
    return {"base64": base64.b64encode(value).decode()}
