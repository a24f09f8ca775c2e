"""Estimates propensities that take time: after the answer, in a thread. The journal then gets them."""

import asyncio
import logging
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Event
from time import perf_counter

from sketchbandit.errors import InputError
from sketchbandit.explore import Scores
from sketchbandit_service.bandit import Bandit
from sketchbandit_service.choosing import chances
from sketchbandit_service.config import ESTIMATE
from sketchbandit_service.journal import Journal
from sketchbandit_service.metrics import Instruments
from sketchbandit_service.offered import Offered
from sketchbandit_service.problems import NotFound, Problem
from sketchbandit_service.registry import Registry
from sketchbandit_service.storage.records import DecisionRow, EstimateRow

log = logging.getLogger(__name__)

_MOST_WAITING = 64
_PATIENCE = 2.0  # seconds to wait at shutdown
_MOST_ARMS = 100  # most arms of a decision: memory and time grow with their square
_MOST_DRAWS = 10_000_000  # most draws for all places of a decision: about a second
_REST = 3.0  # pause after an estimate, relative to its time: it uses a quarter of a core at most


def can_estimate(bandit: Bandit, arms: int, places: int) -> bool:
    """Whether the propensities of a decision are estimated: this many places, chosen among so many arms.

    If not, the log never has them. They may also be exact, so that nothing is estimated.
    """
    rule = bandit.policy.explore
    if rule.exact_probabilities or bandit.config.propensities != ESTIMATE:
        return False
    return arms <= _MOST_ARMS and places * arms * rule.samples <= _MOST_DRAWS


class Estimator:
    """Estimates wait here. If there is no time for one, it is left out, and the log has no propensity."""

    def __init__(self, registry: Registry, journal: Journal, instruments: Instruments) -> None:
        self._registry = registry
        self._journal = journal
        self._instruments = instruments
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="estimates")
        self._tasks: set[asyncio.Task[None]] = set()
        self._closing = Event()
        """Set: pauses end at once ..."""
        self._stopped = Event()
        """Set: ... and no further place is estimated."""

    def scores(self, bandit: Bandit, offered: Offered, places: int) -> Scores | None:
        """The scores from which propensities are estimated, as of now.

        None: they are exact or not estimated.
        """
        rule = bandit.policy.explore
        if rule.exact_probabilities or bandit.config.propensities != ESTIMATE:
            return None
        if len(self._tasks) >= _MOST_WAITING or not can_estimate(bandit, len(offered), places):
            self._instruments.estimates_left_out.inc()
            return None
        asked, options = offered.question(bandit.policy)
        try:  # this runs in the bandit's queue
            found: Scores = bandit.policy.scores(asked, **options)
        except InputError as error:  # the scores overflow, though the choice did not
            self._leave_out(error)
            return None
        return found

    def begin(self, bandit: Bandit, rows: Sequence[DecisionRow], scores: Scores) -> None:
        """Estimate for the arms shown by a committed decision."""
        task = asyncio.get_running_loop().create_task(self._estimate(bandit, rows, scores))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """Finish the waiting estimates, but wait two seconds at most. The journal writes them.

        A longer estimate is not waited for: its thread ends after the current place.
        """
        self._closing.set()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=_PATIENCE)
        self._stopped.set()
        self._thread.shutdown(wait=False, cancel_futures=True)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _estimate(self, bandit: Bandit, rows: Sequence[DecisionRow], scores: Scores) -> None:
        chosen = [row.arm_index for row in rows]
        try:
            found = await asyncio.get_running_loop().run_in_executor(
                self._thread, self._unhurried, scores, chosen
            )
            self._registry.check(bandit)
            self._journal.admit(len(rows))
            for row, chance in zip(rows, found, strict=True):
                self._write(bandit, row.seq, chance)
        except NotFound:
            pass  # the bandit was deleted in the meantime
        except Problem as problem:
            self._leave_out(problem)
        except Exception:
            log.exception("an estimate failed")

    def _write(self, bandit: Bandit, decision: int, chance: float) -> None:
        """Write it with the next commit. A commit of its own would delay decisions and rewards."""
        row, take = EstimateRow(0, decision, bandit.number, chance), partial(self._registry.apply, bandit)
        self._journal.append(row, take, can_wait=True).add_done_callback(self._written)

    def _written(self, future: asyncio.Future[None]) -> None:
        if not future.cancelled() and (problem := future.exception()) is not None:
            self._leave_out(problem)

    def _leave_out(self, problem: BaseException) -> None:
        self._instruments.estimates_left_out.inc()
        log.debug("an estimate is left out", extra={"reason": str(problem)})

    def _unhurried(self, scores: Scores, chosen: list[int]) -> list[float]:
        """The propensities, followed by a pause. After a stop only some of them; nobody waits for those."""
        started, found = perf_counter(), []
        for chance in chances(scores, chosen):
            found.append(chance)
            if self._stopped.is_set():
                return found
        self._closing.wait(_REST * (perf_counter() - started))
        return found
