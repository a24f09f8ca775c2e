"""A copy of another server's bandits. It is read once from the journal, and then kept up to date."""

import logging
import time
from dataclasses import dataclass
from pathlib import Path

import sqlalchemy as sa

from sketchbandit.errors import InputError, SketchBanditError
from sketchbandit_service.origins import begin
from sketchbandit_service.recovery import (
    Recovered,
    build,
    has_leapt,
    last_time,
    read_arms,
    recognise,
    recover_from,
)
from sketchbandit_service.replaying import Since, replay
from sketchbandit_service.storage import tables
from sketchbandit_service.storage.checksums import ROWS
from sketchbandit_service.storage.database import Database, StorageError
from sketchbandit_service.storage.snapshots import SnapshotStore
from sketchbandit_service.storage.tables import StoredRow

log = logging.getLogger(__name__)

_RETRY = 60.0  # seconds until bandits that could not be read are tried again
_PATIENCE = 10  # pause before stored arms are read again, relative to the time that reading took


@dataclass(slots=True)
class _StoredArms:
    """The versions of a bandit's stored arms that were read and that exist, and when to read again."""

    read: int
    there: int
    not_before: float = 0.0


class Replica:
    """The content of a database when it was last read. Every read is one transaction and changes nothing."""

    def __init__(
        self, found: Recovered, connection: sa.Connection, snapshots: SnapshotStore, service: StoredRow
    ) -> None:
        self._snapshots = snapshots
        self._retry_from = time.monotonic() + _RETRY
        self.bandits = {bandit.number: bandit for bandit in found.bandits}
        self.waiting = 0
        """Commits seen and not yet applied."""
        self._found = found
        self._service = service
        """The row of the table ``service`` that goes with the bandits."""
        self._last = _newest(connection)
        """The last record that took effect."""
        self.is_halfway = False
        """Whether some records of a read took effect, and others did not."""
        versions = _arms_versions(connection)
        self._arms = {number: _StoredArms(versions[number], versions[number]) for number in self.bandits}
        log.info("the standby follows", extra={"bandits": len(self.bandits), "records": self._last})

    @classmethod
    def read(
        cls, connection: sa.Connection, database: Database, state: Path, snapshots: SnapshotStore
    ) -> "Replica | None":
        """Read the newest snapshots and the journal since then. None if there is nothing to follow yet."""
        _at_one_moment(connection)
        if not sa.inspect(connection).has_table(tables.service.name):
            return None
        service = connection.execute(sa.select(tables.service)).one_or_none()
        if service is None or service.format < tables.FORMAT:
            return None  # the server that gets the lock makes the tables
        _check_format(service)
        database.instance = service.instance
        recognise(state, database)
        found = recover_from(connection, snapshots, is_owner=False)
        return cls(found, connection, snapshots, service)

    @property
    def batch(self) -> int:
        """The last commit that took effect."""
        return int(self._service.batch)

    def all(self, connection: sa.Connection) -> Recovered:
        """Everything that a server needs to go on."""
        nameless = sa.select(tables.bandits.c.id).where(tables.bandits.c.name.is_(None))
        bandits, last = list(self.bandits.values()), last_time(connection)
        return self._found._replace(
            bandits=bandits,
            deleted=list(connection.execute(nameless.order_by(tables.bandits.c.id)).scalars()),
            last_seq=self._service.seq,
            last_time=last,
            dropped=self._service.dropped,
            has_leapt=has_leapt(last, time.time(), bandits),
        )

    def catch_up(self, connection: sa.Connection, *, is_last: bool) -> str:
        """Apply what was committed since the last read. Returns why all must be read again, or nothing.

        ``is_last``: stored arms are read without delay.
        """
        if self.is_halfway:  # a query is tried again if its connection was dead
            raise StorageError("the connection broke while the journal was read")
        batch = connection.execute(sa.select(tables.service.c.batch)).scalar_one()
        connection.rollback()
        self.waiting = batch - self.batch
        if not (self.waiting or self._stale(is_last)):
            return ""
        _at_one_moment(connection)
        service = connection.execute(sa.select(tables.service)).one()
        _check_format(service)
        if service.instance != self._service.instance or service.batch < self.batch:
            return "this is another journal, or an older copy of it"
        if service.dropped != self._service.dropped and self._misses(connection, service.dropped):
            return "old records were dropped before this server read them"
        self.is_halfway = True
        try:
            self._follow_bandits(connection, is_last)
        except StorageError:
            raise
        except (
            SketchBanditError
        ) as error:  # for a new bandit: a snapshot may have it, or it is out of service
            return str(error)
        newest = max(self._last, _newest(connection))
        start = Since(self._last)
        replay(connection, self.bandits, dict.fromkeys(self.bandits, start), until=newest)
        if self._found.quarantined and (is_last or time.monotonic() >= self._retry_from):
            self._try_again(connection)
        self._last, self._service, self.is_halfway, self.waiting = newest, service, False, 0
        return ""

    def _try_again(self, connection: sa.Connection) -> None:
        """Read bandits that could not be read before: memory may have been short."""
        numbers = {one.number for one in self._found.quarantined}
        found = recover_from(connection, self._snapshots, is_owner=False, only=numbers)
        versions = _arms_versions(connection)
        for bandit in found.bandits:
            self.bandits[bandit.number] = bandit
            version = versions[bandit.number]
            self._arms[bandit.number] = _StoredArms(version, version)
        self._found = self._found._replace(quarantined=found.quarantined)
        self._retry_from = time.monotonic() + _RETRY

    def _misses(self, connection: sa.Connection, dropped: int) -> bool:
        """Whether rows below ``dropped`` were removed because of their age before they were read here."""
        seq = tables.decisions.c.seq
        kept = set(connection.execute(sa.select(seq).where(seq < dropped)).scalars())
        waiting = {first for bandit in self.bandits.values() for first in bandit.open if first < dropped}
        return self._last < dropped - 1 or not waiting <= kept

    # -- bandits and stored arms ----------------------------------------------------------------------

    def _follow_bandits(self, connection: sa.Connection, is_last: bool) -> None:
        """Follow new bandits, deleted bandits, and bandits whose stored arms changed."""
        there, table = _arms_versions(connection), tables.bandits
        quarantined = [one for one in self._found.quarantined if one.number in there]
        self._found = self._found._replace(quarantined=quarantined)
        for number in self.bandits.keys() - there.keys():
            del self.bandits[number], self._arms[number]
        for number in sorted(there.keys() - self.bandits.keys() - {one.number for one in quarantined}):
            row = connection.execute(sa.select(table).where(table.c.id == number)).one()
            self.bandits[number] = build(row)
            begin(connection, self.bandits[number])
            self._arms[number] = _StoredArms(0, 0)
        for number, arms in self._arms.items():
            arms.there = there[number]
        for number in self._stale(is_last):
            self._read_arms(connection, number)

    def _stale(self, is_last: bool) -> list[int]:
        """Bandits whose stored arms must be read again.

        Large ones are not read each time, unless ``is_last``.
        """
        now = time.monotonic()
        return [
            number
            for number, arms in self._arms.items()
            if arms.read != arms.there and (is_last or now >= arms.not_before)
        ]

    def _read_arms(self, connection: sa.Connection, number: int) -> None:
        started = time.monotonic()
        read_arms(connection, self.bandits[number])
        ended = time.monotonic()
        version = self._arms[number].there
        self._arms[number] = _StoredArms(version, version, ended + _PATIENCE * (ended - started))


def _at_one_moment(connection: sa.Connection) -> None:
    """Make the next transaction see one state of all tables, and change none."""
    connection.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)


def _check_format(service: StoredRow) -> None:
    if service.format != tables.FORMAT:
        raise InputError(
            f"the database has format {service.format}, but this sketchbandit reads {tables.FORMAT}: a later "
            "version has written it; install that version here too"
        )


def _arms_versions(connection: sa.Connection) -> dict[int, int]:
    """The existing bandits, and the versions of their stored arms."""
    table = tables.bandits
    rows = connection.execute(sa.select(table.c.id, table.c.arms_version).where(table.c.name.is_not(None)))
    return {row.id: row.arms_version for row in rows}


def _newest(connection: sa.Connection) -> int:
    """The last record of the journal.

    ``service.seq`` may be ahead, as numbers are given before the commit.
    """
    newest = [connection.execute(sa.select(sa.func.max(table.c.seq))).scalar() or 0 for table in ROWS]
    return max(newest)
