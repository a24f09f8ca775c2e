"""A second server on the same PostgreSQL. It follows the journal and takes over when the first is gone."""

import asyncio
import logging
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from sketchbandit.errors import InputError
from sketchbandit_service.recovery import Recovered
from sketchbandit_service.replica import Replica
from sketchbandit_service.storage.database import Database, StorageError
from sketchbandit_service.storage.snapshots import SnapshotStore

log = logging.getLogger(__name__)

_EVERY = 0.2  # seconds between two looks at the journal
_HEAD_START = 2.0  # seconds for the first server to reconnect, after the database itself was away
_LATE = 2.0  # seconds behind before a warning


class Behind(NamedTuple):
    """How far a standby is behind the first server."""

    batches: int
    """Commits seen and not yet applied."""
    seconds: float
    """Seconds since the last read after which everything was applied."""


class Follower:
    """Keeps a copy of another server's bandits up to date. It writes nothing to the database.

    Everything runs in one thread; ``behind`` may be read from another.

    Parameters
    ----------
    database : Database
        PostgreSQL, not open yet. The server that has its lock writes.
    state : path
        The state folder of this server.
    snapshots : SnapshotStore
        The snapshots to begin from. None is written while the other server runs.

    """

    def __init__(self, database: Database, state: Path, snapshots: SnapshotStore) -> None:
        if database.is_sqlite:
            raise InputError(
                "a standby needs PostgreSQL, because SQLite is a file on one machine; give both servers the "
                "same --database postgresql://..., or leave out --standby"
            )
        self._database = database
        self._state = state
        self._snapshots = snapshots
        self.replica: Replica | None = None
        """What was read so far."""
        self._current_at: float | None = None
        self._is_late = self._is_away = False
        self._lock_from = 0.0

    @property
    def behind(self) -> Behind:
        """How far it is behind."""
        batches = 0 if self.replica is None else self.replica.waiting
        return Behind(batches, 0.0 if self._current_at is None else time.monotonic() - self._current_at)

    # -- from standby to primary ----------------------------------------------------------------------

    async def until_primary(self) -> Recovered:
        """Follow until this server has the lock. Returns everything it needs to go on."""
        loop = asyncio.get_running_loop()
        thread = ThreadPoolExecutor(1, thread_name_prefix="standby")
        try:
            while (found := await loop.run_in_executor(thread, self._step)) is None:
                await asyncio.sleep(_EVERY)
        finally:
            thread.shutdown(wait=False)  # a signal may come in the middle of a long step
        return found

    def _step(self) -> Recovered | None:
        try:
            if self.has_lock():
                return self._take_over()
            self.catch_up()
        except StorageError as error:
            self._lock_from = time.monotonic() + _HEAD_START
            if not self._is_away:
                log.warning("the standby cannot read the journal", extra={"reason": str(error)})
            self._is_away = True
        else:
            self._is_away = False
        self._warn()
        return None

    def has_lock(self) -> bool:
        """Whether this server is now the one that writes."""
        return time.monotonic() >= self._lock_from and self._database.try_lock()

    def _take_over(self) -> Recovered:
        started = time.monotonic()
        self._database.open()  # this keeps the first server from writing, if it still exists
        self.catch_up(is_last=True)
        assert self.replica is not None  # noqa: S101  (there are tables now)
        found = self._database.read(self.replica.all)
        for bandit in found.bandits:
            self._snapshots.clean(bandit.number)
        log.info("this server has taken over", extra={"seconds": round(time.monotonic() - started, 3)})
        return found

    def _warn(self) -> None:
        is_late = self.behind.seconds > _LATE
        if is_late and not self._is_late:
            log.warning("the standby falls behind", extra=self.behind._asdict())
        elif self._is_late and not is_late:
            log.info("the standby is up to date again")
        self._is_late = is_late

    # -- following ------------------------------------------------------------------------------------

    def recover(self) -> None:
        """Read everything again: the newest snapshots, and the journal since then."""
        self.replica = None
        self.replica = self._database.read(
            lambda connection: Replica.read(connection, self._database, self._state, self._snapshots)
        )

    def catch_up(self, *, is_last: bool = False) -> None:
        """Apply what was committed since the last time. ``is_last``: also read stored arms without delay."""
        started = time.monotonic()
        problem = "" if self.replica is None else self._follow(self.replica, is_last=is_last)
        if problem:
            log.warning("the standby reads everything again", extra={"reason": problem})
        if problem or self.replica is None:
            self.recover()
        self._current_at = started

    def _follow(self, replica: Replica, *, is_last: bool) -> str:
        """Why everything must be read again. Empty if it need not."""
        try:
            return self._database.read(lambda connection: replica.catch_up(connection, is_last=is_last))
        except (StorageError, InputError):
            if replica.is_halfway:
                self.replica = None
            raise
        except Exception as error:  # a record cannot be applied; recovering puts its bandit out of service
            log.exception("a standby could not apply a record")
            return repr(error)
