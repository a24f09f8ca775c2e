"""Group commit: many clients share one commit, and each is told only after it has happened."""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, TypeVar

import sqlalchemy as sa

from sketchbandit_service.metrics import Instruments
from sketchbandit_service.problems import Busy, Problem, Unavailable
from sketchbandit_service.storage.database import Database, Fenced, InDoubt, Refused, StorageError
from sketchbandit_service.storage.records import (
    ActionRow,
    CandidateRow,
    ChanceRow,
    EstimateRow,
    Record,
    RewardRow,
    ScalingRow,
    Slate,
    Statements,
)

log = logging.getLogger(__name__)

T = TypeVar("T")
R = TypeVar("R", Slate, RewardRow, EstimateRow, ActionRow, ScalingRow, CandidateRow, ChanceRow, Statements)

_MOST_RECORDS = 1000
_PAUSE = 0.1
_SPELL = 0.005  # seconds of applying records in a row, before other work gets a turn
_LEAST_PATIENCE = 3.0  # seconds; a busy disk is not a hanging one
_REFUSED = "the journal cannot be written: {}; nothing was changed"
_HANGS = "the database has not answered for {:.1f} seconds"
_DOUBT = (
    "the journal did not answer, and it is not known yet whether this was recorded; send the same request "
    "again: it will not be counted twice"
)


class _Entry(NamedTuple):
    record: Record
    apply: Callable[[Any], object]
    future: asyncio.Future[Any]


class Journal:
    """Records wait here, are committed together, and only then take effect, in their order.

    ``apply`` of a record runs on the event loop after its commit and before the client is told. So memory is
    never ahead of the disk. While one batch takes effect, the next is being written. If ``apply`` returns a
    future, some work takes long, and the client is told when it is done.
    """

    def __init__(
        self,
        database: Database,
        *,
        last_seq: int,
        most_waiting: int,
        instruments: Instruments,
        patience: float = 3.0,
    ) -> None:
        self._database = database
        self._most_waiting = most_waiting
        self._patience = max(patience, _LEAST_PATIENCE)
        self._instruments = instruments
        self._waiting: deque[_Entry] = deque()
        self._in_flight: list[_Entry] = []
        self._committed: list[_Entry] = []
        """Committed, and about to take effect while the next batch is being written."""
        self._doubtful: list[_Entry] = []
        self._wake = asyncio.Event()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="journal")
        self._readers = ThreadPoolExecutor(2, thread_name_prefix="journal-reader")
        self._last_seq = last_seq
        self._task: asyncio.Task[None] | None = None
        self._is_closing = False
        self.applied = last_seq
        """The last record that took effect."""
        self.trouble: str | None = None
        """Why the last commit failed. None after a commit has succeeded."""
        self.fenced: str | None = None
        """Why nothing can be written any more: another server has taken over."""
        self.is_over = asyncio.Event()
        """Set together with ``fenced``: this server must end."""

    @property
    def is_closing(self) -> bool:
        """Whether the server is shutting down. Long work for it is useless then."""
        return self._is_closing

    def new_number(self) -> int:
        """A number that no record and no bandit has had before."""
        self._last_seq += 1
        return self._last_seq

    def admit(self, count: int = 1) -> None:
        """Refuse more records than can wait."""
        if self.fenced is not None:
            raise Unavailable(self.fenced)
        if self._is_closing:
            raise Unavailable("the server is shutting down; try again in a moment")
        if self._doubtful:  # the requested change may have happened already
            raise Unavailable(_DOUBT)
        if len(self._waiting) + count > self._most_waiting:
            raise Busy(f"{len(self._waiting)} records wait to be written; try again in a moment")

    def append(
        self, record: R, apply: Callable[[R], object], *, can_wait: bool = False
    ) -> asyncio.Future[Any]:
        """Commit the record, run ``apply`` on it, and return its result. Unavailable if that failed.

        Records get their numbers here, so numbers are in the order of commits. A record that ``can_wait`` is
        committed with the next one that cannot, or at ``flush``.
        """
        self.admit()
        numbered = self._numbered(record)
        future = asyncio.get_running_loop().create_future()
        self._waiting.append(_Entry(numbered, apply, future))
        if not can_wait:
            self._wake.set()
        return future

    def _numbered(self, record: Record) -> Record:
        if isinstance(record, Statements):
            return record
        if isinstance(record, Slate):
            return record.numbered(self.new_number)
        return record._replace(seq=self.new_number())

    def flush(self) -> None:
        """Commit the records that could wait."""
        if self._waiting:
            self._wake.set()

    async def read(self, query: Callable[[sa.Connection], T]) -> T:
        """The result of ``query`` on the database."""
        if self.trouble is not None:
            raise Unavailable("the journal cannot be read at the moment; try again later")
        reading = asyncio.get_running_loop().run_in_executor(self._readers, self._database.read, query)
        try:
            return await asyncio.wait_for(asyncio.shield(reading), self._patience)
        except StorageError as error:
            raise Unavailable(str(error)) from error
        except TimeoutError as error:
            reading.add_done_callback(lambda late: late.cancelled() or late.exception())
            raise Unavailable(_HANGS.format(self._patience)) from error

    async def probe(self) -> None:
        """Commit nothing, to see whether commits are possible again."""
        await self.append(Statements(()), lambda _: None)

    async def verify(self) -> None:
        """Check that this is still the only writer, even if there are no requests."""
        if self._doubtful or self.fenced is not None:
            return
        checking = asyncio.get_running_loop().run_in_executor(self._thread, self._database.verify)
        if not (await asyncio.wait([checking], timeout=self._patience))[0]:
            self._fail([], "", StorageError(_HANGS.format(self._patience)))
            self._database.abandon()
        try:
            await checking
        except Fenced as error:
            self._fence(str(error))
        except StorageError as error:
            self._fail([], "", error)

    def _fence(self, reason: str) -> None:
        log.error("nothing is written any more", extra={"reason": reason})
        self.fenced = self.trouble = reason
        self.is_over.set()

    # -- the pump -------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start committing."""
        self._task = asyncio.get_running_loop().create_task(self._pump())

    async def close(self) -> None:
        """Commit what waits, then stop."""
        self._is_closing = True
        self._wake.set()
        if self._task is not None:
            await self._task
        self._thread.shutdown()
        self._readers.shutdown()

    async def _pump(self) -> None:
        try:
            await self._commit_for_ever()
        except Exception:
            log.exception("the journal has stopped")
            reason = "the journal has stopped because of an error inside; restart the server"
            self._fence(reason)
            self._fail([*self._committed, *self._in_flight, *self._waiting], reason, RuntimeError(reason))
            self._waiting.clear()

    async def _commit_for_ever(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            batch = [self._waiting.popleft() for _ in range(min(len(self._waiting), _MOST_RECORDS))]
            if self._waiting:  # more than fit into one commit
                self._wake.set()
            if batch:
                self._in_flight = batch
                await self._commit(batch)
            if self._doubtful or not self._wake.is_set():
                await self._take_effect()
                batch = self._in_flight = []  # do not keep long rankings until the next commit
            while self._doubtful and not self._is_closing and not await self._settle():
                await asyncio.sleep(_PAUSE)
            if self._is_closing:
                if not self._waiting:
                    return
                self._wake.set()

    async def _commit(self, batch: list[_Entry]) -> None:
        started = time.perf_counter()
        records = [entry.record for entry in batch]
        writing = asyncio.get_running_loop().run_in_executor(
            self._thread, self._database.commit, records, self._last_seq
        )
        await self._take_effect()  # the previous batch, while this one is being written
        if not (await asyncio.wait([writing], timeout=self._patience))[0]:
            self._doubt(batch, StorageError(_HANGS.format(self._patience)))
            self._database.abandon()  # the thread must return, whatever the database does
        try:
            await writing
        except InDoubt as error:
            self._doubt(batch, error)
        except Refused as error:
            self._doubtful = []  # nothing of the batch was written
            await self._commit_apart(batch, error)
        except Exception as error:
            self._doubtful = []
            self._refuse(batch, error)
        else:
            self._instruments.commit_seconds.observe(time.perf_counter() - started)
            self._instruments.commit_records.observe(len(batch))
            self._recovered()
            self._committed = batch

    async def _take_effect(self) -> None:
        """Apply the last committed batch."""
        batch, self._committed = self._committed, []
        await self._apply(batch)
        if batch and self._doubtful is batch:
            self._doubtful = []  # only now: a repeated request must find what was applied

    def _refuse(self, batch: list[_Entry], error: Exception) -> None:
        """Tell the clients that nothing was written."""
        if isinstance(error, Fenced):
            self._fence(str(error))
            self._fail(batch, str(error), error)
        elif isinstance(error, StorageError):
            self._fail(batch, _REFUSED.format(error), error)
        else:
            log.error("commit failed", exc_info=error)
            self._fail(batch, _REFUSED.format("the log of the server says why"), error)

    def _doubt(self, batch: list[_Entry], error: StorageError) -> None:
        """It is unknown whether the batch was written. Clients are told so, and nothing more is accepted."""
        self._doubtful = batch
        self._fail(batch, _DOUBT, error)
        waiting, self._waiting = list(self._waiting), deque()
        self._fail(waiting, _REFUSED.format(error), error)

    async def _commit_apart(self, batch: list[_Entry], error: Refused) -> None:
        """The database refuses one record of a batch. Commit the others one by one."""
        if len(batch) == 1:
            log.error("the journal refused a record", extra={"reason": str(error)})
            if not batch[0].future.done():
                batch[0].future.set_exception(
                    Problem("the journal refused this; the log of the server says why")
                )
            return
        for place, entry in enumerate(batch):
            if self._doubtful:  # the previous record: nothing may be committed until that is settled
                self._fail(batch[place:], _REFUSED.format(error), error)
                return
            await self._commit([entry])
            await self._take_effect()

    async def _settle(self) -> bool:
        """Find out about the commit in doubt. Returns whether that is known now."""
        try:
            happened = await asyncio.get_running_loop().run_in_executor(self._thread, self._database.settle)
        except StorageError:
            return False
        except Fenced as error:
            self._fence(str(error))
            return True
        records = len(self._doubtful)
        log.warning("a commit in doubt is settled", extra={"committed": happened, "records": records})
        if happened:
            await self._apply(self._doubtful)
        self._doubtful = []
        self._recovered()
        return True

    def _recovered(self) -> None:
        if self.trouble is not None:
            log.info("the journal can be written again")
        self.trouble = None

    async def _apply(self, batch: Sequence[_Entry]) -> None:
        until = time.perf_counter() + _SPELL
        for entry in batch:
            try:
                result, problem = entry.apply(entry.record), None
            except Problem as error:
                result, problem = None, error
            except Exception:
                log.exception("a committed record could not be applied")
                result, problem = None, Problem("the record was written but could not be applied")
            if not isinstance(entry.record, Statements):
                self.applied = entry.record.seq
            if isinstance(result, asyncio.Future):
                result.add_done_callback(lambda done, told=entry.future: _pass_on(done, told))  # type: ignore[misc]
            elif not entry.future.done():  # the client may be gone, or was told that it is in doubt
                if problem is None:
                    entry.future.set_result(result)
                else:
                    entry.future.set_exception(problem)
            if time.perf_counter() > until:
                await asyncio.sleep(0)
                until = time.perf_counter() + _SPELL

    def _fail(self, batch: list[_Entry], message: str, error: Exception) -> None:
        if self.trouble is None:
            log.error("the journal cannot be written", extra={"reason": str(error)})
        self.trouble = str(error)
        self._instruments.commit_failures.inc()
        for entry in batch:
            if not entry.future.done():
                entry.future.set_exception(Unavailable(message))


def _pass_on(done: asyncio.Future[Any], told: asyncio.Future[Any]) -> None:
    """Pass on the result of the work that took long."""
    error = None if done.cancelled() else done.exception()
    if told.done():
        return
    if done.cancelled():
        told.set_exception(Unavailable("the server is shutting down; try again in a moment"))
    elif error is not None:
        told.set_exception(error)
    else:
        told.set_result(done.result())
