"""In which order work is done: one thing after another for each bandit, and nothing twice at once."""

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
"""Seconds: what takes less is done at once, on the event loop; more in a thread."""
_SPELL = 0.002  # seconds of short work in a row, before others get their turn


class _Job(NamedTuple):
    work: Callable[[], Any]
    seconds: float
    future: asyncio.Future[Any]


class Lane:
    """The work of one bandit, in the order in which it was given.

    Short work is done at once where nothing is before it. Long work is done in a thread, and what comes
    meanwhile waits behind it: other bandits have lanes of their own.

    Nobody else may touch what the lane works on while it ``is_busy``: its lock would be waited for.
    """

    def __init__(self, threads: Executor) -> None:
        self._threads = threads
        self._jobs: deque[_Job] = deque()
        self.is_busy = False
        self.waiting_seconds = 0.0
        """Of work that is under way or waits, as it was estimated."""
        self._pace = 1.0
        """Which part of that it took so far: estimates are from above."""

    @property
    def busy_seconds(self) -> float:
        """How long it may be busy with what it has."""
        return self.waiting_seconds * self._pace

    def is_free_for(self, seconds: float) -> bool:
        """Whether work that takes so long may be done right now, by the caller."""
        return not self.is_busy and seconds < SHORT

    def put(self, work: Callable[[], T], seconds: float) -> asyncio.Future[T]:
        """Do this when everything before it is done."""
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._jobs.append(_Job(work, seconds, future))
        self.waiting_seconds += seconds
        if not self.is_busy:
            self.is_busy = True
            self._go_on()
        return future

    async def do(self, work: Callable[[], T], seconds: float) -> T:
        """What comes of the work: at once, or in its turn."""
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
        """Whether it was begun: where memory is short there may be no thread to be had."""
        try:
            running = asyncio.get_running_loop().run_in_executor(self._threads, job.work)
        except Exception as error:
            self._settle(job, None, error)
            return False
        running.add_done_callback(partial(self._ended, job, time.perf_counter()))
        return True

    def _ended(self, job: _Job, started: float, running: asyncio.Future[Any]) -> None:
        if job.seconds >= SHORT:
            took = (time.perf_counter() - started) / job.seconds
            self._pace += 0.2 * (min(took, 1.0) - self._pace)
        if running.cancelled():
            job.future.cancel()
        else:
            error = running.exception()
            self._settle(job, None if error else running.result(), error)
        self._go_on()

    def _settle(self, job: _Job, result: Any, error: BaseException | None) -> None:
        self.waiting_seconds -= job.seconds
        if job.future.done():  # whoever asked has gone
            return
        if error is None:
            job.future.set_result(result)
        else:
            job.future.set_exception(error)


def _nothing() -> None:
    """The end of a lane."""


class SingleFlight(Generic[K]):
    """What has been begun and is not over yet, by a key: so that nobody begins it a second time."""

    def __init__(self) -> None:
        self._futures: dict[K, asyncio.Future[Any]] = {}

    def __len__(self) -> int:
        return len(self._futures)

    def __contains__(self, key: K) -> bool:
        return key in self._futures

    def add(self, key: K, future: asyncio.Future[Any]) -> None:
        """Begun. Nothing may be awaited between looking and this."""
        self._futures[key] = future
        future.add_done_callback(lambda _: self._futures.pop(key, None))

    async def over(self, key: K) -> None:
        """Wait until nothing of that key is under way; what came of it is for the caller to see."""
        while (future := self._futures.get(key)) is not None:
            await asyncio.wait([future])  # always lets the loop turn, also where the future is done


class Threads:
    """A few threads for long work that belongs to no bandit's order."""

    def __init__(self, most: int = 4) -> None:
        self._pool = ThreadPoolExecutor(most, thread_name_prefix="long-work")

    async def run(self, work: Callable[..., T], *args: Any) -> T:
        """What comes of the work."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, work, *args)

    def close(self) -> None:
        """Wait for what is under way."""
        self._pool.shutdown()


class Clock:
    """Seconds since the epoch, steady while the process runs and never before ``floor``.

    The wall clock is read once, at the start; from then on the monotonic clock counts, so that an adjusted
    wall clock neither expires a decision early nor keeps it open. ``floor`` is the last time found in the
    journal: after a restart with a clock that was set back, time goes on from there.
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
        """Now."""
        return self._offset + self._monotonic()
