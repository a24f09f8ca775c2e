"""Asks candidates whether they would have chosen the shown arm. The answers go to the journal.

A decision waits here with its arms until the candidates are asked: before the next reward of the bandit is
learned, or a moment later. So candidates answer as they were when the decision was made. Nothing that
follows from the choice has been learned yet, and that keeps the weights unbiased.

This takes a twentieth of a core at most. If time or memory is short, a decision is left out, whatever arm was
chosen. It then does not count for any candidate.
"""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from time import perf_counter
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from sketchbandit.errors import InputError, InputTypeError
from sketchbandit_service.bandit import Bandit
from sketchbandit_service.candidate import Candidate
from sketchbandit_service.chance_bytes import Chance, encode
from sketchbandit_service.costs import decide_cost
from sketchbandit_service.journal import Journal
from sketchbandit_service.metrics import Instruments
from sketchbandit_service.offered import ActionSet, Offered
from sketchbandit_service.problems import Problem
from sketchbandit_service.registry import Registry
from sketchbandit_service.storage.records import ChanceRow, DecisionRow
from sketchbandit_service.types import AnyPolicy

log = logging.getLogger(__name__)

_MOST_WAITING = 16
_MOST_BYTES = 8 * 1024 * 1024  # of waiting arms, over all bandits
_PAUSE = 0.02  # seconds until candidates are asked about waiting decisions
_TOGETHER = 64  # decisions in one record
_REST = 19.0  # pause after asking, relative to the time that asking took


class _Shown(NamedTuple):
    """A decision about which candidates are to be asked."""

    first: int
    chosen: int
    offered: Offered
    held: int


class _Desk:
    """For one bandit: waiting decisions, and probabilities to write."""

    def __init__(self, random: np.random.Generator) -> None:
        self.random = random
        self.waiting: list[_Shown] = []
        self.found: list[Chance] = []
        self.decisions = 0
        """The number of decisions that the probabilities belong to."""
        self.timer: asyncio.TimerHandle | None = None
        self.not_before = 0.0
        """When there is time again."""


class Judge:
    """Asks the candidates of all bandits."""

    def __init__(
        self, registry: Registry, journal: Journal, instruments: Instruments, *, seed: int | None
    ) -> None:
        self._registry = registry
        self._journal = journal
        self._instruments = instruments
        self._random = np.random.default_rng(None if seed is None else [seed, 1])
        self._desks: WeakKeyDictionary[Bandit, _Desk] = WeakKeyDictionary()
        self._held = 0

    def decided(self, bandit: Bandit, row: DecisionRow, offered: Offered) -> None:
        """Note a committed decision. Nothing is asked yet."""
        if not (bandit.reaches_all and bandit.knows_chances):  # no estimate for other policies is possible
            return
        desk = self._desks.get(bandit)
        if desk is None:
            desk = self._desks[bandit] = _Desk(self._random.spawn(1)[0])
        held = offered.nbytes
        if (
            len(desk.waiting) >= _MOST_WAITING
            or self._held + held > _MOST_BYTES
            or perf_counter() < desk.not_before
        ):
            self._instruments.judgements_left_out.inc()
            return
        self._held += held
        desk.waiting.append(_Shown(row.first, row.arm_index, offered, held))
        if desk.timer is None:
            desk.timer = asyncio.get_running_loop().call_later(_PAUSE, self._round, bandit)

    def before_learning(self, bandit: Bandit) -> None:
        """Ask about the waiting decisions, because a reward is about to be learned."""
        desk = self._desks.get(bandit)
        if desk is not None and desk.waiting:
            self._ask(bandit, desk)

    def close(self) -> None:
        """Ask and write what waits. The journal takes nothing more after this."""
        for bandit in list(self._desks):
            self._round(bandit)

    def _round(self, bandit: Bandit) -> None:
        """Ask and write."""
        desk = self._desks[bandit]
        desk.timer = None
        if desk.waiting:
            self._ask(bandit, desk)
        self._write(bandit, desk)

    def _ask(self, bandit: Bandit, desk: _Desk) -> None:
        """Ask in the bandit's queue, before everything that comes later."""
        shown, desk.waiting = desk.waiting, []
        self._held -= sum(one.held for one in shown)
        candidates = [*bandit.shadows]
        seconds = sum(
            decide_cost(
                candidate.shape, len(one.offered), nonzeros=one.offered.nonzeros, formed=one.offered.formed
            )
            for candidate in candidates
            for one in shown
        )
        work = partial(_judged, candidates, shown, desk.random)
        try:
            if bandit.lane.is_free_for(seconds):
                self._told(desk, len(shown), work())
            else:
                later = bandit.lane.put(work, seconds)
                later.add_done_callback(partial(self._later, bandit, desk, len(shown)))
        except Exception:  # in any case the next reward is learned
            log.exception("candidates could not be asked")
        if desk.decisions >= _TOGETHER:
            self._write(bandit, desk)

    def _told(self, desk: _Desk, decisions: int, told: tuple[list[Chance], float]) -> None:
        found, seconds = told
        desk.found += found
        desk.decisions += decisions
        desk.not_before = max(desk.not_before, perf_counter()) + _REST * seconds

    def _later(
        self, bandit: Bandit, desk: _Desk, decisions: int, done: asyncio.Future[tuple[list[Chance], float]]
    ) -> None:
        if done.cancelled() or done.exception() is not None:
            return
        self._told(desk, decisions, done.result())
        if desk.timer is None:
            desk.timer = asyncio.get_running_loop().call_later(_PAUSE, self._round, bandit)

    def _write(self, bandit: Bandit, desk: _Desk) -> None:
        """Write with the next commit. A commit of its own would delay decisions and rewards."""
        found, desk.found, desk.decisions = desk.found, [], 0
        if not found:
            return
        row = ChanceRow(0, bandit.number, encode(found))
        try:
            self._registry.check(bandit)
            future = self._journal.append(row, partial(self._registry.apply, bandit), can_wait=True)
        except Problem as problem:
            self._leave_out(problem)
        else:
            future.add_done_callback(self._written)

    def _written(self, future: asyncio.Future[None]) -> None:
        if not future.cancelled() and (problem := future.exception()) is not None:
            self._leave_out(problem)

    def _leave_out(self, problem: BaseException) -> None:
        self._instruments.judgements_left_out.inc()
        log.debug("probabilities of candidates are left out", extra={"reason": str(problem)})


def _judged(
    candidates: Sequence[Candidate], shown: Sequence[_Shown], random: np.random.Generator
) -> tuple[list[Chance], float]:
    """The probabilities, and the seconds it took."""
    started, found = perf_counter(), []
    for candidate in candidates:
        policy = candidate.policy
        if policy.is_warming_up:  # asking would change it
            continue
        for one in shown:
            with suppress(InputError, InputTypeError):  # the scores overflow
                found.append(Chance(one.first, candidate.number, _chance(policy, one, random)))
    return found, perf_counter() - started


def _chance(policy: AnyPolicy, shown: _Shown, random: np.random.Generator) -> float:
    """The probability with which a policy would have chosen the shown arm.

    It is exact, except for Thompson sampling: there one arm is drawn, and the result, 0 or 1, is unbiased.
    """
    (asked, options), rule = shown.offered.question(policy), policy.explore
    if rule.is_random and rule.exact_probabilities:
        return float(policy.scores(asked, **options).probabilities()[shown.chosen])
    chosen = policy.select(asked, random=random, **options)  # many times faster
    is_action = isinstance(shown.offered, ActionSet)
    return float(chosen == (shown.offered.name(shown.chosen) if is_action else shown.chosen))
