"""Makes decisions, each once per idempotency key."""

import asyncio
from functools import partial
from typing import NamedTuple, TypedDict
from weakref import WeakKeyDictionary

import numpy as np
import sqlalchemy as sa

from sketchbandit.explore import Scores
from sketchbandit_service.bandit import Bandit, waiting_bytes
from sketchbandit_service.choosing import Told, choose, ranking_json
from sketchbandit_service.costs import decide_cost
from sketchbandit_service.decision_ids import new_tags
from sketchbandit_service.estimating import Estimator
from sketchbandit_service.journal import Journal
from sketchbandit_service.offered import Offered
from sketchbandit_service.ordering import Clock, SingleFlight
from sketchbandit_service.problems import Busy, Conflict, TooLarge
from sketchbandit_service.registry import Registry
from sketchbandit_service.scalings import Due, Scalings, due_for
from sketchbandit_service.settings import Limits
from sketchbandit_service.shadow_propensities import Judge
from sketchbandit_service.storage import tables
from sketchbandit_service.storage.records import DecisionRow, Slate
from sketchbandit_service.vectors import encode

_IN_LANE = 4096  # bytes of a decision that waits for its turn


class _Chosen(NamedTuple):
    """A decision to be recorded, and what was computed on the way."""

    slate: Slate
    top: str | None
    """The ranking that was asked for, as JSON."""
    scores: Scores | None
    """The scores from which propensities are estimated, if they are."""
    due: Due | None
    """A scaling of the bandit, if one is due."""
    offered: Offered | None
    """What the decision was made among, if candidates must be asked."""


class After(NamedTuple):
    """What happens to a decision after it was answered."""

    estimator: Estimator
    judge: Judge


class Decisions:
    """Makes the decisions of all bandits."""

    def __init__(
        self,
        registry: Registry,
        journal: Journal,
        after: After,
        scalings: Scalings,
        clock: Clock,
        *,
        limits: Limits,
        seed: int | None,
    ) -> None:
        self._registry = registry
        self._journal = journal
        self._estimator, self._judge = after
        self._scalings = scalings
        self._clock = clock
        self._limits = limits
        self._random = np.random.default_rng(seed)
        self._generators: WeakKeyDictionary[Bandit, np.random.Generator] = WeakKeyDictionary()
        """One for each bandit, since bandits choose in threads."""
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
    ) -> DecisionRow:
        """Choose an arm. Returns the first row of the decision, with the ranking, once it is on disk.

        If an open decision has this ``key``, that decision is returned again. ``request`` is a digest of the
        request. It shows when a key is used again for another request.
        """
        if key is not None and (known := await self._known(bandit, key, request)) is not None:
            return known
        self.admit(bandit)
        self._check_slate(bandit, top)
        seconds = decide_cost(
            bandit.shape, len(offered), top=top or 1, nonzeros=offered.nonzeros, formed=offered.formed
        )
        self._admit_seconds(bandit, seconds)
        keyed = (None, None) if key is None else (key, request)
        work = partial(self._choose, bandit, offered, top, keyed, self._draw(bandit))
        if bandit.lane.is_free_for(seconds):
            future = self._record(bandit, work())
        else:
            self._admit_bytes(_IN_LANE)
            bandit.pending_added(_IN_LANE)
            choosing = bandit.lane.put(work, seconds)
            choosing.add_done_callback(lambda _: bandit.pending_removed(_IN_LANE))
            future = asyncio.ensure_future(self._later(bandit, choosing))
        if key is None:
            return await future
        self._on_the_way.add((bandit.number, key), future)
        return await asyncio.shield(future)

    def admit(self, bandit: Bandit) -> None:
        """Refuse a decision that could not be kept."""
        bandit.admit()
        self._journal.admit()
        self._admit_bytes(1)

    def _draw(self, bandit: Bandit) -> tuple[np.random.Generator, str]:
        """The bandit's own generator, and a tag.

        They are made here because threads may not share their source.
        """
        if (random := self._generators.get(bandit)) is None:
            random = self._generators[bandit] = self._random.spawn(1)[0]
        return random, next(self._tags)

    async def _later(self, bandit: Bandit, choosing: asyncio.Future[_Chosen]) -> DecisionRow:
        chosen = await asyncio.shield(choosing)  # it stays in the queue, even if nobody waits for it
        return await self._record(bandit, chosen)

    def _choose(
        self,
        bandit: Bandit,
        offered: Offered,
        top: int | None,
        keyed: tuple[str | None, str | None],
        drawn: tuple[np.random.Generator, str],
    ) -> _Chosen:
        """Choose, and prepare the rows. It asks the policy, so it runs in the queue of the bandit."""
        policy, config, (random, tag) = bandit.policy, bandit.config, drawn
        found = choose(policy, offered, top or 1, random)
        shown = found.rows(len(found.index) if config.slates else 1)
        scores = self._estimator.scores(bandit, offered, len(shown))
        ranking = ranking_json(found, offered) if top else None
        first = DecisionRow(
            seq=0,  # the journal sets it
            bandit=bandit.number,
            tag=tag,
            at=self._clock.now(),
            arm_count=len(offered),
            rounds=policy.rounds,
            key=keyed[0],
            request=keyed[1],
            top=ranking if keyed[0] is not None or config.slates else None,  # otherwise never read again
            arms=offered.log() if config.log_arms else None,
            **_of(shown[0], offered),
        )
        further = [
            first._replace(position=place, top=None, arms=None, **_of(told, offered))
            for place, told in enumerate(shown)
            if place
        ]
        asked = offered if bandit.shadows else None
        return _Chosen(Slate((first, *further)), ranking, scores, due_for(policy), asked)

    # -- recording ----------------------------------------------------------------------------------------

    def _record(self, bandit: Bandit, chosen: _Chosen) -> asyncio.Future[DecisionRow]:
        """Append the decision to the journal.

        If the choice was made at once, nothing may be awaited before.
        """

        def apply(slate: Slate) -> DecisionRow:
            self._registry.apply(bandit, *slate.rows)
            if chosen.scores is not None:
                self._estimator.begin(bandit, slate.rows, chosen.scores)
            if chosen.offered is not None and (slate.rows[0].propensity or chosen.scores is not None):
                self._judge.decided(bandit, slate.rows[0], chosen.offered)
            first = slate.rows[0]
            return first if chosen.top is None else first._replace(top=chosen.top)

        self._registry.check(bandit)
        held = sum(map(waiting_bytes, chosen.slate.rows))
        self._admit_bytes(held)
        future = self._journal.append(chosen.slate, apply)
        if chosen.due is not None:
            self._scalings.write(bandit, chosen.due)
        bandit.pending_added(held)
        future.add_done_callback(lambda _: bandit.pending_removed(held))
        return future

    async def _known(self, bandit: Bandit, key: str, request: str) -> DecisionRow | None:
        """The decision made earlier for this key, if it is still open."""
        await self._on_the_way.over((bandit.number, key))  # if that one fails, this one may try
        self._registry.check(bandit)
        if key not in bandit.keys:
            return None
        seq, digest = bandit.keys[key]
        if digest != request:
            raise Conflict(f"the idempotency key {key!r} was used with another request; use a new key")
        columns = [tables.decisions.c[name] for name in DecisionRow._fields]
        query = sa.select(*columns).where(tables.decisions.c.seq == seq)
        row = await self._journal.read(lambda connection: connection.execute(query).one_or_none())
        return None if row is None else DecisionRow(*row)

    # -- bounds -------------------------------------------------------------------------------------------

    def _admit_bytes(self, held: int) -> None:
        """Refuse features that do not fit beside those of the open decisions."""
        most = self._limits.open_bytes
        if held > most:
            raise TooLarge(f"the features of the decision take {held} bytes; all together may take {most}")
        if self._registry.open_bytes + held > most:
            raise Busy(
                f"the features of open decisions may take {most} bytes, and this decision does not fit; "
                "send rewards, or wait until old decisions expire"
            )

    def _admit_seconds(self, bandit: Bandit, seconds: float) -> None:
        """Refuse a decision that takes too long, alone or after the work that waits already."""
        most = self._limits.decide_seconds
        if seconds > most:
            raise TooLarge(
                f"a decision among so many arms may take {seconds:,.0f} seconds, and this server allows "
                f"{most:g}; send fewer arms, or use a policy with a smaller sketch"
            )
        if bandit.lane.busy_seconds + seconds > most:
            raise Busy(f"bandit {bandit.name!r} is busy with long work; try again in a moment")

    def _check_slate(self, bandit: Bandit, top: int | None) -> None:
        if bandit.config.slates and (top or 1) > self._limits.slate:
            raise TooLarge(f"top is {top}; a slate can have up to {self._limits.slate} arms")


class _ShownArm(TypedDict):
    """The fields of a journal row that describe the arm."""

    arm_index: int
    arm_id: str | None
    features: bytes
    score: float
    mean: float
    width: float
    propensity: float


def _of(told: Told, offered: Offered) -> _ShownArm:
    """The fields of a journal row that describe the arm."""
    return {
        "arm_index": told.index,
        "arm_id": offered.name(told.index),
        "features": encode(offered.row(told.index)),
        "score": told.score,
        "mean": told.mean,
        "width": told.width,
        "propensity": told.propensity,
    }
