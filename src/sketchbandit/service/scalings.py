"""How features are scaled becomes a record of the journal, so that a replay scales where it was scaled."""

import asyncio
import logging

from sketchbandit.errors import SketchBanditError
from sketchbandit.service.bandit import Bandit
from sketchbandit.service.journal import Journal
from sketchbandit.service.registry import Registry
from sketchbandit.service.scaling_bytes import encode
from sketchbandit.service.single_flight import SingleFlight
from sketchbandit.service.storage.records import ScalingRow

log = logging.getLogger(__name__)


class Scalings:
    """The desk that looks whether a scaling is due: after arms were offered, and after rewards."""

    def __init__(self, registry: Registry, journal: Journal) -> None:
        self._registry = registry
        self._journal = journal
        self._taking: SingleFlight[int] = SingleFlight()

    def look(self, bandit: Bandit) -> None:
        """Record the scaling of a bandit, if one is due and none is being written.

        It takes effect with its record: after the rewards before it in the journal, before those after it.
        What fails is tried again when somebody looks the next time.
        """
        if not bandit.policy.is_warming_up or bandit.number in self._taking:
            return
        try:
            if (due := bandit.policy.scaling_due) is not None:
                scaling, is_last = due
                row = ScalingRow(0, bandit.number, encode(scaling), bandit.policy.arms_seen, is_last)
                self._write(bandit, row)
        except SketchBanditError as problem:
            _put_off(problem)

    def _write(self, bandit: Bandit, row: ScalingRow) -> None:
        def apply(row: ScalingRow) -> None:
            self._registry.check(bandit)
            bandit.scaled(row)

        future = self._journal.append(row, apply)
        self._taking.add(bandit.number, future)
        future.add_done_callback(_written)


def _written(future: asyncio.Future[None]) -> None:
    if not future.cancelled() and (problem := future.exception()) is not None:
        _put_off(problem)


def _put_off(problem: BaseException) -> None:
    log.debug("a scaling is put off", extra={"reason": str(problem)})
