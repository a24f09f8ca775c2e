"""Records scalings of features in the journal, so that a replay scales at the same place."""

import asyncio
import logging
from functools import partial
from typing import Any, NamedTuple

from sketchbandit.errors import SketchBanditError
from sketchbandit_service.bandit import Bandit
from sketchbandit_service.journal import Journal
from sketchbandit_service.ordering import SingleFlight
from sketchbandit_service.registry import Registry
from sketchbandit_service.scaling_bytes import encode
from sketchbandit_service.storage.records import ScalingRow
from sketchbandit_service.types import AnyPolicy

log = logging.getLogger(__name__)


class Due(NamedTuple):
    """A scaling that is due."""

    scaling: bytes
    arms: int
    is_last: bool


def due_for(policy: AnyPolicy) -> Due | None:
    """The scaling that is due after arms were offered or rewards came. It is asked in the bandit's queue."""
    if not policy.is_warming_up:
        return None
    try:
        if (due := policy.scaling_due) is not None:
            return Due(encode(due[0]), policy.requests_seen, due[1])
    except SketchBanditError as problem:
        _put_off(problem)
    return None


class Scalings:
    """Writes the records of scalings."""

    def __init__(self, registry: Registry, journal: Journal) -> None:
        self._registry = registry
        self._journal = journal
        self._taking: SingleFlight[int] = SingleFlight()

    def write(self, bandit: Bandit, due: Due | None) -> None:
        """Record the scaling of a bandit, if one is due and none is being written.

        It takes effect at its record: after the rewards before it in the journal, and before those after it.
        If it fails, it is tried again when the next one is due.
        """
        if due is None or bandit.number in self._taking:
            return
        try:
            row, take = ScalingRow(0, bandit.number, *due), partial(self._registry.apply, bandit)
            future = self._journal.append(row, take)
        except SketchBanditError as problem:
            _put_off(problem)
            return
        self._taking.add(bandit.number, future)
        future.add_done_callback(_written)

    def follow(self, bandit: Bandit, done: Any) -> asyncio.Future[Any] | None:
        """Record what has become due by a reward: at once, or when the reward is learned."""
        if not isinstance(done, asyncio.Future):
            self.write(bandit, done)
            return None
        done.add_done_callback(partial(self._learned, bandit))
        return done

    def _learned(self, bandit: Bandit, done: asyncio.Future[Any]) -> None:
        if not done.cancelled() and done.exception() is None:
            self.write(bandit, done.result())


def _written(future: asyncio.Future[None]) -> None:
    if not future.cancelled() and (problem := future.exception()) is not None:
        _put_off(problem)


def _put_off(problem: BaseException) -> None:
    log.debug("a scaling is put off", extra={"reason": str(problem)})
