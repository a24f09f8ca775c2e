"""Work of one bandit is done in order, long work in threads, and nobody else waits for it."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sketchbandit_service.ordering import SHORT, Lane
from tests.service.harness import in_loop

LONG = 2 * SHORT


def run(test: Callable[[Lane], Any]) -> None:
    """A test with a lane."""
    with ThreadPoolExecutor(2) as threads:

        async def inside() -> None:
            await asyncio.wait_for(test(Lane(threads)), 60)

        asyncio.run(inside())


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.sampled_from([0.0, LONG]), st.booleans()), min_size=1, max_size=20))
def test_work_is_done_in_order(jobs: list[tuple[float, bool]]) -> None:
    """Whatever is long or short, and whatever fails: each has its own outcome, and the order is kept."""

    async def play(lane: Lane) -> None:
        done: list[int] = []

        def work(number: int, fails: bool) -> int:
            done.append(number)
            if fails:
                raise MemoryError(number)
            return number

        futures = [
            lane.put(lambda n=number, f=fails: work(n, f), seconds)  # type: ignore[misc]
            for number, (seconds, fails) in enumerate(jobs)
        ]
        outcomes = await asyncio.gather(*futures, return_exceptions=True)
        await lane.over()
        assert done == list(range(len(jobs)))
        for number, ((_, fails), outcome) in enumerate(zip(jobs, outcomes, strict=True)):
            assert isinstance(outcome, MemoryError) if fails else outcome == number
        assert not lane.is_busy
        assert lane.waiting_seconds == 0.0

    run(play)


def test_long_work_holds_nobody_up() -> None:
    """While a lane works the loop turns; short work behind it waits, and is not done out of turn."""

    async def play(lane: Lane) -> None:
        go_on, done = threading.Event(), []

        def work() -> None:
            go_on.wait(30)
            done.append("slow")

        slow = lane.put(work, LONG)
        quick = asyncio.ensure_future(lane.do(lambda: done.append("quick"), 0.0))
        await asyncio.sleep(0.05)  # the loop turns
        assert (done, lane.is_free_for(0.0)) == ([], False)
        assert lane.waiting_seconds == pytest.approx(LONG)
        go_on.set()
        await asyncio.gather(slow, quick)
        assert done == ["slow", "quick"]

    run(play)


def test_short_work_is_done_at_once() -> None:
    """In the thread of whoever asks, where nothing is before it; long work never is."""

    async def play(lane: Lane) -> None:
        here = threading.get_ident()
        assert await lane.do(threading.get_ident, 0.0) == here
        assert await lane.do(threading.get_ident, LONG) != here

    run(play)


@in_loop
async def test_work_that_nobody_waits_for_any_more() -> None:
    """It is done all the same, because what follows may stand on it."""
    with ThreadPoolExecutor(1) as threads:
        lane, done = Lane(threads), []
        lane.put(lambda: done.append(1), LONG).cancel()
        await lane.put(lambda: done.append(2), LONG)
        assert done == [1, 2]


@in_loop
async def test_a_thread_that_cannot_be_started() -> None:
    """Its work fails; what comes next is done."""

    class Refusing(ThreadPoolExecutor):
        """Has no thread the first time."""

        asked = 0

        def submit(self, *work: Any, **options: Any) -> Any:
            """Or refuse."""
            self.asked += 1
            if self.asked == 1:
                raise RuntimeError("can't start new thread")
            return super().submit(*work, **options)

    with Refusing(1) as threads:
        lane = Lane(threads)
        with pytest.raises(RuntimeError, match="new thread"):
            await lane.put(lambda: 1, LONG)
        assert await lane.put(lambda: 2, LONG) == 2
        assert not lane.is_busy
