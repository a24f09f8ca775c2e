"""Taking rewards, each once, whenever they come."""

import asyncio

import sqlalchemy as sa

from sketchbandit.service.bandit import Bandit
from sketchbandit.service.clock import Clock
from sketchbandit.service.decision_ids import decision_id, parse_decision_id
from sketchbandit.service.journal import Journal
from sketchbandit.service.problems import Conflict, Expired, Invalid, NotFound
from sketchbandit.service.registry import Registry
from sketchbandit.service.settings import Limits
from sketchbandit.service.single_flight import SingleFlight
from sketchbandit.service.storage import tables
from sketchbandit.service.storage.tables import DEFAULT, GIVEN, RewardRow

LEARNED, KNOWN = "learned", "known"


class Rewards:
    """The desk where decisions end: by a reward, or by the default in its place."""

    def __init__(
        self, registry: Registry, journal: Journal, clock: Clock, limits: Limits, dropped: int
    ) -> None:
        self._registry = registry
        self._journal = journal
        self._clock = clock
        self._limits = limits
        self._closing: SingleFlight[int] = SingleFlight()
        self.dropped = dropped
        """Decisions before this record are no longer in the journal."""

    async def take(self, bandit: Bandit, decision: str, value: float) -> str:
        """Learn from a reward once: LEARNED, or KNOWN if the same was there before."""
        if not abs(value) <= self._limits.magnitude:
            raise Invalid(
                f"the reward is {value}; rewards are numbers up to {self._limits.magnitude:g} in size"
            )
        parsed = parse_decision_id(decision)
        if parsed is None:
            raise NotFound(f"{decision!r} is not the id of a decision")
        seq, tag = parsed
        await self._closing.over(seq)  # another answer to the same decision; if that fails, this one may try
        opened = bandit.open.get(seq)
        if opened is None:
            return await self._answer_again(bandit, seq, tag, value)
        if opened.tag != tag:
            raise NotFound(f"there is no decision {decision!r}")
        now = self._clock.now()
        if bandit.deadline(opened.at) <= now:
            raise Expired(_too_late(decision, bandit))
        await self.close(bandit, seq, GIVEN, value)
        return LEARNED

    def close(self, bandit: Bandit, decision: int, kind: str, value: float | None) -> asyncio.Future[None]:
        """Record the end of an open decision, and learn from it. Nothing may be awaited before this."""

        def apply(row: RewardRow) -> None:
            self._registry.check(bandit)
            bandit.closed(row)

        self._registry.check(bandit)
        row = RewardRow(0, decision, bandit.number, kind, value, self._clock.now())
        future = self._journal.append(row, apply)
        self._closing.add(decision, future)
        return future

    def is_closing(self, seq: int) -> bool:
        """Whether an answer to the decision is being written."""
        return seq in self._closing

    async def _answer_again(self, bandit: Bandit, seq: int, tag: str, value: float) -> str:
        """A reward for a decision that is not open."""
        name = decision_id(seq, tag)
        d, r = tables.decisions, tables.rewards
        query = sa.select(r.c.kind, r.c.reward).join_from(d, r, r.c.decision == d.c.seq)
        query = query.where(d.c.seq == seq, d.c.bandit == bandit.number, d.c.tag == tag)
        found = await self._journal.read(lambda connection: connection.execute(query).one_or_none())
        if found is None:
            if bandit.number < seq < self.dropped:
                raise Expired(f"decision {name} is so old that it was dropped from the journal")
            raise NotFound(f"bandit {bandit.name!r} has no decision {name!r}")
        if found.kind == DEFAULT:
            raise Expired(_too_late(name, bandit))
        if found.reward != value:
            raise Conflict(f"decision {name} has the reward {found.reward!r} already, not {value!r}")
        return KNOWN


def _too_late(decision: str, bandit: Bandit) -> str:
    return (
        f"decision {decision} has expired: no reward came within {bandit.config.reward_timeout:g} seconds, "
        f"and the default ({bandit.config.default_reward}) was taken"
    )
