"""Making decisions, each once for its idempotency key."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import sqlalchemy as sa

from sketchbandit.explore import Scores
from sketchbandit.service.bandit import Bandit
from sketchbandit.service.choosing import Pick, choose
from sketchbandit.service.clock import Clock
from sketchbandit.service.decision_ids import decision_id, new_tags
from sketchbandit.service.estimating import Estimator
from sketchbandit.service.journal import Journal
from sketchbandit.service.offered import Offered
from sketchbandit.service.open_decisions import held_bytes
from sketchbandit.service.problems import Busy, Conflict, TooLarge
from sketchbandit.service.registry import Registry
from sketchbandit.service.scalings import Scalings
from sketchbandit.service.settings import Limits
from sketchbandit.service.single_flight import SingleFlight
from sketchbandit.service.storage import tables
from sketchbandit.service.storage.records import DecisionRow, Slate
from sketchbandit.service.vectors import Vector, encode

EXACT = "exact"
_UNSAID = {"position": None, "mean": None, "propensity": None}
"""What the rankings in journals of format 1 do not have."""


@dataclass(frozen=True, slots=True)
class Decided:
    """The answer to a decision."""

    decision: str
    index: int
    arm: str | None
    action: str | None
    score: float
    mean: float
    propensity: float | None
    propensity_kind: str
    top: list[dict[str, Any]] | None


class Decisions:
    """The desk where decisions are made."""

    def __init__(
        self,
        registry: Registry,
        journal: Journal,
        estimator: Estimator,
        scalings: Scalings,
        clock: Clock,
        *,
        limits: Limits,
        seed: int | None,
    ) -> None:
        self._registry = registry
        self._journal = journal
        self._estimator = estimator
        self._scalings = scalings
        self._clock = clock
        self._limits = limits
        self._random = np.random.default_rng(seed)
        self._tags = new_tags()
        self._on_the_way: SingleFlight[tuple[int, str]] = SingleFlight()

    async def decide(
        self,
        bandit: Bandit,
        offered: Offered,
        *,
        top: int | None = None,
        key: str | None = None,
        request: str = "",
    ) -> Decided:
        """Choose an arm. With a ``key`` that an open decision has, that decision again.

        ``request`` is a digest of what was asked, so that a key used for something else is noticed.
        """
        if key is not None and (known := await self._known(bandit, key, request)) is not None:
            return known
        self.admit(bandit)
        self._check_slate(bandit, top)
        picks = choose(bandit.policy, offered, top or 1, self._random)
        shown = picks if bandit.config.slates else picks[:1]
        scores = self._estimator.scores(bandit, offered, len(shown))
        features = [offered.row(pick.index) for pick in shown]
        first = DecisionRow(
            seq=0,  # given by the journal
            bandit=bandit.number,
            tag=next(self._tags),
            at=self._clock.now(),
            features=encode(features[0]),
            arm_count=len(offered),
            rounds=bandit.policy.rounds,
            key=key,
            request=None if key is None else request,
            top=json.dumps([_ranked(place, pick) for place, pick in enumerate(picks)]) if top else None,
            arms=offered.log() if bandit.config.log_arms else None,
            **_of(shown[0]),
        )
        further = [
            first._replace(position=place, features=encode(features[place]), top=None, arms=None, **_of(pick))
            for place, pick in enumerate(shown)
            if place
        ]
        return await self._record(bandit, Slate((first, *further)), features, scores)

    def admit(self, bandit: Bandit) -> None:
        """Refuse a decision that could not be kept."""
        bandit.admit()
        self._journal.admit()
        self._admit_bytes(1)

    def _admit_bytes(self, held: int) -> None:
        """Refuse features that do not fit beside those of the open decisions."""
        most = self._limits.open_bytes
        if held > most:
            raise TooLarge(f"the features of the decision take {held} bytes; those of all may take {most}")
        if self._registry.open_bytes + held > most:
            raise Busy(
                f"the features of open decisions may take {most} bytes, and this one does not fit; send "
                "rewards, or wait until old decisions expire"
            )

    def _check_slate(self, bandit: Bandit, top: int | None) -> None:
        if bandit.config.slates and (top or 1) > self._limits.slate:
            raise TooLarge(f"top is {top}; a slate has up to {self._limits.slate} arms")

    async def _record(
        self, bandit: Bandit, slate: Slate, features: Sequence[Vector], scores: Scores | None
    ) -> Decided:
        def apply(slate: Slate) -> Decided:
            self._registry.check(bandit)
            for row, shown in zip(slate.rows, features, strict=True):
                bandit.opened(row, shown)
            if scores is not None:
                self._estimator.begin(bandit, slate.rows, scores)
            return _decided(bandit, slate.rows[0])

        self._registry.check(bandit)
        held = sum(map(held_bytes, features))
        self._admit_bytes(held)
        future = self._journal.append(slate, apply)
        self._scalings.look(bandit)
        bandit.pending_added(held)
        future.add_done_callback(lambda _: bandit.pending_removed(held))
        if (key := slate.rows[0].key) is not None:
            self._on_the_way.add((bandit.number, key), future)
        decided: Decided = await future
        return decided

    async def _known(self, bandit: Bandit, key: str, request: str) -> Decided | None:
        """The decision that was made for this key before, if it is open."""
        await self._on_the_way.over((bandit.number, key))  # and if that fails, this one may try
        if key not in bandit.keys:
            return None
        seq, digest = bandit.keys[key]
        if digest != request:
            raise Conflict(f"the idempotency key {key!r} was used with another request; use a new one")
        table = tables.decisions
        row = await self._journal.read(
            lambda connection: connection.execute(sa.select(table).where(table.c.seq == seq)).one()
        )
        return _decided(bandit, DecisionRow(*row))


def _of(pick: Pick) -> dict[str, Any]:
    """What a row of the journal says of the arm."""
    return {
        "arm_index": pick.index,
        "arm_id": pick.arm,
        "score": pick.score,
        "mean": pick.mean,
        "width": pick.width,
        "propensity": pick.propensity,
    }


def _ranked(position: int, pick: Pick) -> dict[str, Any]:
    """What the answer says of one of the ``top``."""
    return {
        "position": position,
        "index": pick.index,
        "arm": pick.arm,
        "score": pick.score,
        "mean": pick.mean,
        "propensity": pick.propensity or None,
    }


def _decided(bandit: Bandit, row: DecisionRow) -> Decided:
    return Decided(
        decision=decision_id(row.seq, row.tag),
        index=row.arm_index,
        arm=row.arm_id,
        action=None if bandit.config.actions is None else row.arm_id,
        score=row.score,
        mean=row.mean,
        propensity=row.propensity or None,
        propensity_kind=EXACT if row.propensity else bandit.config.propensities,
        top=None if row.top is None else [{**_UNSAID, **ranked} for ranked in json.loads(row.top)],
    )
