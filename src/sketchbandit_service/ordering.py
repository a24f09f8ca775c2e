"""The order of work: one thing at a time for each bandit, and nothing twice at once."""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Hashable
from concurrent.futures import Executor, ThreadPoolExecutor
from functools import partial
from typing import Any, Generic, NamedTuple, TypeVar

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")

SHORT = 0.001
"""Seconds. Shorter work is done at once on the event loop, longer work in a thread."""
_SPELL = 0.002  # seconds of short work in a row, before other work gets a turn


class _Job(NamedTuple):
    work: Callable[[], object]
    seconds: float
    future: asyncio.Future[Any]


class Lane:
    """The queue of one bandit: its work in the order in which it was given.

    Short work is done at once if nothing waits before it. Long work is done in a thread, and later work waits
    behind it. Other bandits have their own queues.

    While the lane ``is_busy``, nobody else may touch what it works on: they would wait for its lock.
    """

    def __init__(self, threads: Executor) -> None:
        self._threads = threads
        self._jobs: deque[_Job] = deque()
        self.is_busy = False
        self.waiting_seconds = 0.0
        """The estimated seconds of all work that runs or waits."""
        self._pace = 1.0
        """The ratio of real to estimated time so far. Estimates are upper bounds."""

    @property
    def busy_seconds(self) -> float:
        """How long the present work may take."""
        return self.waiting_seconds * self._pace

    def is_free_for(self, seconds: float) -> bool:
        """Whether the caller may do work of this length right now."""
        return not self.is_busy and seconds < SHORT

    def put(self, work: Callable[[], T], seconds: float) -> asyncio.Future[T]:
        """Do this after everything before it is done."""
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._jobs.append(_Job(work, seconds, future))
        self.waiting_seconds += seconds
        if not self.is_busy:
            self.is_busy = True
            self._go_on()
        return future

    async def do(self, work: Callable[[], T], seconds: float) -> T:
        """The result of the work, done at once or in its turn."""
        return work() if self.is_free_for(seconds) else await self.put(work, seconds)

    async def over(self) -> None:
        """Wait until nothing is left."""
        while self.is_busy:
            await self.put(_nothing, SHORT)

    def _go_on(self) -> None:
        until = time.perf_counter() + _SPELL
        while self._jobs:
            job = self._jobs.popleft()
            if job.seconds >= SHORT or time.perf_counter() > until:
                if self._in_thread(job):
                    return
                continue
            try:
                result = job.work()
            except Exception as error:
                self._settle(job, None, error)
            else:
                self._settle(job, result, None)
        self.is_busy = False
        self.waiting_seconds = 0.0

    def _in_thread(self, job: _Job) -> bool:
        """Whether the work was started. If memory is short, there may be no thread for it."""
        try:
            running = asyncio.get_running_loop().run_in_executor(self._threads, job.work)
        except Exception as error:
            self._settle(job, None, error)
            return False
        running.add_done_callback(partial(self._ended, job, time.perf_counter()))
        return True

    def _ended(self, job: _Job, started: float, running: asyncio.Future[object]) -> None:
        if job.seconds >= SHORT:
            took = (time.perf_counter() - started) / job.seconds
            self._pace += 0.2 * (min(took, 1.0) - self._pace)
        if running.cancelled():
            job.future.cancel()
        else:
            error = running.exception()
            self._settle(job, None if error else running.result(), error)
        self._go_on()

    def _settle(self, job: _Job, result: object, error: BaseException | None) -> None:
        self.waiting_seconds -= job.seconds
        if job.future.done():  # nobody waits for it any more
            return
        if error is None:
            job.future.set_result(result)
        else:
            job.future.set_exception(error)


def _nothing() -> None:
    """Do nothing. It marks the end of a queue."""


class SingleFlight(Generic[K]):
    """Work that has begun and not ended, by a key, so that nobody begins it twice."""

    def __init__(self) -> None:
        self._futures: dict[K, asyncio.Future[Any]] = {}

    def __len__(self) -> int:
        return len(self._futures)

    def __contains__(self, key: K) -> bool:
        return key in self._futures

    def add(self, key: K, future: asyncio.Future[Any]) -> None:
        """Note that it has begun. Nothing may be awaited between the check and this."""
        self._futures[key] = future
        future.add_done_callback(lambda _: self._futures.pop(key, None))

    async def over(self, key: K) -> None:
        """Wait until nothing with this key is under way. The caller looks at the outcome."""
        while (future := self._futures.get(key)) is not None:
            await asyncio.wait([future])  # always lets the loop run, even if the future is done


class Threads:
    """A few threads for long work that belongs to no bandit."""

    def __init__(self, most: int = 4) -> None:
        self._pool = ThreadPoolExecutor(most, thread_name_prefix="long-work")

    async def run(self, work: Callable[..., T], *args: object) -> T:
        """The result of the work."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, work, *args)

    def close(self) -> None:
        """Wait for the work under way."""
        self._pool.shutdown()


class Clock:
    """Seconds since the epoch. It is steady while the process runs, and never before ``floor``.

    The wall clock is read once, at the start. From then on the monotonic clock counts. So an adjusted wall
    clock neither expires a decision early nor keeps it open. ``floor`` is the last time found in the journal.
    After a restart with a clock that was set back, time goes on from there.
    """

    def __init__(
        self,
        floor: float = 0.0,
        *,
        wall: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._monotonic = monotonic
        self._offset = max(wall(), floor) - monotonic()

    def now(self) -> float:
        """The time now."""
        return self._offset + self._monotonic()
