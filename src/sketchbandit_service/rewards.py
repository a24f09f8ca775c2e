"""Takes rewards, each once, whenever they come."""

import asyncio
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import sqlalchemy as sa

from sketchbandit_service.bandit import Bandit
from sketchbandit_service.decision_ids import decision_id, parse_decision_id
from sketchbandit_service.journal import Journal
from sketchbandit_service.ordering import Clock, SingleFlight
from sketchbandit_service.problems import Conflict, Expired, Invalid, NotFound
from sketchbandit_service.registry import Registry
from sketchbandit_service.reward_models import check_reward
from sketchbandit_service.scalings import Scalings, due_for
from sketchbandit_service.settings import Limits
from sketchbandit_service.shadow_propensities import Judge
from sketchbandit_service.storage import tables
from sketchbandit_service.storage.records import DEFAULT, GIVEN, DecisionRow, RewardRow
from sketchbandit_service.storage.tables import StoredRow

LEARNED, KNOWN = "learned", "known"


class Given(NamedTuple):
    """The reward of a shown arm: of the first one, unless ``position`` or ``arm`` says which."""

    reward: float
    position: int | None = None
    arm: str | None = None


class Taken(NamedTuple):
    """What happened to a reward: LEARNED, or KNOWN if the same reward had come before."""

    position: int
    status: str


class Rewards:
    """Ends decisions: with a reward, or with the default in its place."""

    def __init__(
        self,
        registry: Registry,
        journal: Journal,
        judge: Judge,
        scalings: Scalings,
        clock: Clock,
        *,
        limits: Limits,
        dropped: int,
    ) -> None:
        self._registry = registry
        self._journal = journal
        self._judge = judge
        self._scalings = scalings
        self._clock = clock
        self._limits = limits
        self._closing: SingleFlight[int] = SingleFlight()
        self.dropped = dropped
        """Decisions before this record are no longer in the journal."""

    async def take(self, bandit: Bandit, decision: str, given: Sequence[Given]) -> list[Taken]:
        """Learn from rewards, each once. If one of them is refused, none is learned from."""
        parsed = parse_decision_id(decision)
        if parsed is None:
            raise NotFound(f"{decision!r} is not the id of a decision; send the id from the answer to decide")
        first, tag = parsed
        if (opened := _first_of(bandit, first)) is not None and opened.tag != tag:
            raise NotFound(f"there is no decision {decision!r}")
        rewards = await self._by_position(bandit, first, tag, given)
        known: set[int] = set()
        while True:
            await self._settled(first, rewards)  # if another reward for the same arm fails, this may try
            self._registry.check(bandit)  # it may be out of service by now
            waiting = bandit.open.get(first, {})
            if not (over := [place for place in rewards if place not in waiting and place not in known]):
                break
            await self._check_again(bandit, first, tag, {place: rewards[place] for place in over})
            known.update(over)
        if new := [place for place in rewards if place not in known]:
            self._journal.admit(len(new))  # all of them or none; a doubtful one may be written already
            opened = _first_of(bandit, first)
            if opened is not None and bandit.deadline(opened.at) <= self._clock.now():
                raise Expired(_too_late(decision, bandit))
            closing = [self.close(bandit, first, place, GIVEN, rewards[place]) for place in new]
            await (closing[0] if len(closing) == 1 else asyncio.gather(*closing))
        return [Taken(place, KNOWN if place in known else LEARNED) for place in rewards]

    def close(
        self, bandit: Bandit, first: int, position: int, kind: str, value: float | None
    ) -> asyncio.Future[None]:
        """Record the outcome of a waiting arm, and learn from it. Nothing may be awaited before this."""

        def apply(row: RewardRow) -> object:
            self._judge.before_learning(bandit)
            done = self._registry.apply(bandit, row, then=lambda: due_for(bandit.policy))
            return self._scalings.follow(bandit, done)

        self._registry.check(bandit)
        seq = first + position
        row = RewardRow(0, seq, bandit.number, kind, value, self._clock.now(), position)
        future = self._journal.append(row, apply)
        self._closing.add(seq, future)
        return future

    def is_closing(self, seq: int) -> bool:
        """Whether a reward of the decision is being written."""
        return seq in self._closing

    async def _settled(self, first: int, places: Iterable[int]) -> None:
        """Wait until no reward of any of these arms is being written."""
        while any(self.is_closing(first + place) for place in places):
            for place in places:
                await self._closing.over(first + place)

    async def _by_position(
        self, bandit: Bandit, first: int, tag: str, given: Sequence[Given]
    ) -> dict[int, float]:
        """The rewards by position. Checks everything except whether they are known already."""
        found: dict[int, float] = {}
        places = await self._positions(bandit, first, tag, [one.arm for one in given if one.arm is not None])
        for one in given:
            if not abs(one.reward) <= self._limits.magnitude:
                most = f"{self._limits.magnitude:g}"
                raise Invalid(f"the reward is {one.reward}; rewards must be numbers up to {most} in size")
            check_reward(bandit.model, one.reward)
            place = one.position or 0 if one.arm is None else places[one.arm]
            if place in found:
                raise Invalid(f"position {place} is given twice; a shown arm has one reward")
            found[place] = one.reward
        return found

    async def _positions(self, bandit: Bandit, first: int, tag: str, arms: Sequence[str]) -> dict[str, int]:
        """The first position of each arm, by id. Read from the journal once, if memory does not have it."""
        places = _positions(bandit.open.get(first, {})) if arms else {}
        if all(arm in places for arm in arms):
            return places
        row = await self._row(bandit, first, tag)
        ids = [row.arm_id]
        if row.top is not None and bandit.config.slates:
            ids = [ranked["arm"] for ranked in json.loads(row.top)]
        places = {arm: place for place, arm in reversed([*enumerate(ids)])}
        for arm in arms:
            if arm not in places:
                raise Invalid(
                    f"decision {decision_id(first, tag)} did not show the arm {arm!r}; name a shown arm, "
                    f"or give its position, 0 to {len(ids) - 1}"
                )
        return places

    async def _row(self, bandit: Bandit, first: int, tag: str) -> StoredRow:
        """The first row of a decision."""
        d, name = tables.decisions, decision_id(first, tag)
        query = sa.select(d).where(d.c.seq == first, d.c.bandit == bandit.number, d.c.tag == tag)
        found = await self._journal.read(lambda connection: connection.execute(query).one_or_none())
        if found is None or found.position:
            if bandit.number < first < self.dropped:
                raise Expired(f"decision {name} is too old: it was removed from the journal")
            raise NotFound(f"bandit {bandit.name!r} has no decision {name!r}")
        return found

    async def _check_again(self, bandit: Bandit, first: int, tag: str, given: dict[int, float]) -> None:
        """Check rewards for arms that do not wait for one: they must equal the known rewards."""
        d, r = tables.decisions, tables.rewards
        query = sa.select(d.c.position, r.c.kind, r.c.reward).join_from(d, r, r.c.decision == d.c.seq)
        query = query.where(d.c.seq.in_([first + position for position in given]))
        query = query.where(d.c.bandit == bandit.number, d.c.tag == tag, d.c.position == d.c.seq - first)
        rows = await self._journal.read(lambda connection: connection.execute(query).all())
        known = {row.position: row for row in rows}
        name = decision_id(first, tag)
        for position, value in given.items():
            if (found := known.get(position)) is None:
                raise _no_position(await self._row(bandit, first, tag), bandit, position)
            if found.kind == DEFAULT:
                raise Expired(_too_late(name, bandit))
            if found.reward != value:
                at = f" at position {position}" if bandit.config.slates else ""
                raise Conflict(f"decision {name} already has the reward {found.reward!r}{at}, not {value!r}")


def _first_of(bandit: Bandit, first: int) -> DecisionRow | None:
    """One of the waiting arms of a decision, if it is open."""
    return next(iter(bandit.open.get(first, {}).values()), None)


def _positions(waiting: Mapping[int, DecisionRow]) -> dict[str, int]:
    """The first position of each arm, by id, as far as it is certain: while no earlier arm is answered."""
    found: dict[str, int] = {}
    for place, (position, shown) in enumerate(waiting.items()):
        if position != place:
            break
        if shown.arm_id is not None:
            found.setdefault(shown.arm_id, place)
    return found


def _no_position(row: StoredRow, bandit: Bandit, position: int) -> Invalid:
    name = decision_id(row.seq, row.tag)
    if not bandit.config.slates:
        return Invalid(
            f"position {position} of decision {name} takes no reward: bandit {bandit.name!r} learns from "
            "the first arm only; create a bandit with slates: true to reward every ranked arm"
        )
    shown = 1 if row.top is None else len(json.loads(row.top))
    return Invalid(f"decision {name} has no position {position}: it showed {shown} arms, counted from 0")


def _too_late(decision: str, bandit: Bandit) -> str:
    return (
        f"decision {decision} has expired: no reward came within {bandit.config.reward_timeout:g} seconds, "
        f"and the default ({bandit.config.default_reward}) was taken"
    )
