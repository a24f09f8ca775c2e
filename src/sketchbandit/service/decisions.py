"""Making decisions, each once for its idempotency key."""

import json
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import sqlalchemy as sa

from sketchbandit.service.bandit import Bandit
from sketchbandit.service.choosing import choose
from sketchbandit.service.clock import Clock
from sketchbandit.service.decision_ids import decision_id, new_tags
from sketchbandit.service.journal import Journal
from sketchbandit.service.problems import Busy, Conflict
from sketchbandit.service.registry import Registry
from sketchbandit.service.settings import Limits
from sketchbandit.service.single_flight import SingleFlight
from sketchbandit.service.storage import tables
from sketchbandit.service.storage.tables import DecisionRow
from sketchbandit.service.vectors import ArmSet, Vector, encode, encode_all


@dataclass(frozen=True, slots=True)
class Decided:
    """The answer to a decision."""

    decision: str
    index: int
    arm: str | None
    score: float
    mean: float
    propensity: float
    top: list[dict[str, Any]] | None


class Decisions:
    """The desk where decisions are made."""

    def __init__(
        self, registry: Registry, journal: Journal, clock: Clock, limits: Limits, seed: int | None
    ) -> None:
        self._registry = registry
        self._journal = journal
        self._clock = clock
        self._limits = limits
        self._random = np.random.default_rng(seed)
        self._tags = new_tags()
        self._on_the_way: SingleFlight[tuple[int, str]] = SingleFlight()

    async def decide(
        self,
        bandit: Bandit,
        arms: ArmSet,
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
        choice = choose(bandit.policy, arms, top or 1, bandit.config.exploration, self._random)
        chosen = choice.ranking[0]
        features = arms.row(chosen.index)
        row = DecisionRow(
            seq=0,  # given by the journal
            bandit=bandit.number,
            tag=next(self._tags),
            at=self._clock.now(),
            arm_index=chosen.index,
            arm_id=chosen.arm,
            arm_count=len(arms),
            features=encode(features),
            score=choice.score,
            mean=choice.mean,
            propensity=choice.propensity,
            rounds=bandit.policy.rounds,
            key=key,
            request=None if key is None else request,
            top=json.dumps([asdict(ranked) for ranked in choice.ranking]) if top else None,
            arms=encode_all(arms.matrix) if bandit.config.log_arms else None,
        )
        return await self._record(bandit, row, features)

    def admit(self, bandit: Bandit) -> None:
        """Refuse a decision that could not be kept."""
        bandit.admit()
        self._journal.admit()
        if self._registry.open_bytes >= self._limits.open_bytes:
            raise Busy(
                f"the features of open decisions take {self._limits.open_bytes} bytes; send rewards, or wait "
                "until old decisions expire"
            )

    async def _record(self, bandit: Bandit, row: DecisionRow, features: Vector) -> Decided:
        def apply(row: DecisionRow) -> Decided:
            self._registry.check(bandit)
            bandit.opened(row, features)
            return _decided(row)

        self._registry.check(bandit)
        future = self._journal.append(row, apply)
        bandit.pending_added(features)
        future.add_done_callback(lambda _: bandit.pending_removed(features))
        if row.key is not None:
            self._on_the_way.add((bandit.number, row.key), future)
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
        return _decided(DecisionRow(*row))


def _decided(row: DecisionRow) -> Decided:
    return Decided(
        decision=decision_id(row.seq, row.tag),
        index=row.arm_index,
        arm=row.arm_id,
        score=row.score,
        mean=row.mean,
        propensity=row.propensity,
        top=None if row.top is None else json.loads(row.top),
    )
