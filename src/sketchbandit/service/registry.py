"""The bandits of a server by name: created, deleted, given arms."""

import asyncio
import logging
from collections.abc import Mapping, Sequence

from sketchbandit.policy import PerAction
from sketchbandit.service.bandit import Bandit
from sketchbandit.service.clock import Clock
from sketchbandit.service.config import BanditConfig
from sketchbandit.service.journal import Journal
from sketchbandit.service.problems import Conflict, Invalid, NotFound, TooLarge
from sketchbandit.service.recovery import Recovered
from sketchbandit.service.settings import Limits
from sketchbandit.service.single_flight import SingleFlight
from sketchbandit.service.storage import tables
from sketchbandit.service.storage.records import ADDED, RETIRED, ActionRow, Statements
from sketchbandit.service.vectors import Vector, encode, nbytes

log = logging.getLogger(__name__)


class Registry:
    """All bandits, and the numbers of those whose rows are still to be removed."""

    def __init__(self, found: Recovered, journal: Journal, clock: Clock, limits: Limits) -> None:
        self.bandits = {bandit.name: bandit for bandit in found.bandits}
        self.deleted = found.deleted
        self._journal = journal
        self._clock = clock
        self._limits = limits
        self._creating: SingleFlight[str] = SingleFlight()
        self._changing: SingleFlight[int] = SingleFlight()
        """Bandits whose actions are being changed."""

    def get(self, name: str) -> Bandit:
        """By name."""
        try:
            return self.bandits[name]
        except KeyError:
            raise NotFound(f"there is no bandit {name!r}; create it with PUT /v1/bandits/NAME") from None

    def check(self, bandit: Bandit) -> None:
        """Refuse what was asked of a bandit that has been deleted since."""
        if self.bandits.get(bandit.name) is not bandit:
            raise NotFound(f"bandit {bandit.name!r} was deleted meanwhile")

    @property
    def open_bytes(self) -> int:
        """Features of open decisions, of all bandits."""
        return sum(bandit.open_bytes + bandit.bytes_on_the_way for bandit in self.bandits.values())

    async def create(self, name: str, config: BanditConfig) -> tuple[Bandit, bool]:
        """A bandit of that name and those settings, and whether it is new."""
        config = config.checked(self._limits)
        await self._creating.over(name)
        if name in self.bandits:
            if differing := self.bandits[name].config.differences(config):
                raise Conflict(
                    f"bandit {name!r} exists with other settings ({differing}); DELETE it first, or choose "
                    "another name"
                )
            return self.bandits[name], False
        if len(self.bandits) + len(self._creating) >= self._limits.bandits:
            raise Conflict(f"this server keeps up to {self._limits.bandits} bandits; DELETE one first")
        bandit = Bandit(self._journal.new_number(), name, config, created=self._clock.now())
        row = {"id": bandit.number, "name": name, "config": config.to_json(), "created": bandit.created}

        def apply(_: Statements) -> None:
            self.bandits[name] = bandit
            log.info("bandit created", extra={"bandit": name, "policy": config.policy, "dim": config.dim})

        future = self._journal.append(Statements((tables.bandits.insert().values(row),)), apply)
        self._creating.add(name, future)
        await future
        return bandit, True

    async def delete(self, name: str) -> None:
        """Forget a bandit, its decisions and its snapshots."""
        bandit = self.get(name)
        arms, bandits = tables.arms, tables.bandits
        statements = Statements(
            (
                bandits.update().where(bandits.c.id == bandit.number).values(name=None),
                arms.delete().where(arms.c.bandit == bandit.number),
            )
        )

        def apply(_: Statements) -> None:
            if self.bandits.get(name) is bandit:
                del self.bandits[name]
                self.deleted.append(bandit.number)
                log.info("bandit deleted", extra={"bandit": name})

        await self._journal.append(statements, apply)

    async def put_arms(self, bandit: Bandit, arms: Mapping[str, Vector]) -> int:
        """Store arms under their ids, replacing those known; how many there are now."""
        self.check(bandit)  # its dimension is what the arms were read for
        if bandit.config.actions is not None:
            raise Invalid(f"bandit {bandit.name!r} has actions, and no arms; POST new ones to /actions")
        count = len(bandit.arms) + sum(arm not in bandit.arms for arm in arms)
        if count > self._limits.arms:
            raise TooLarge(f"{count} arms; a bandit stores up to {self._limits.arms}")
        added = sum(nbytes(vector) for vector in arms.values())
        if bandit.arms.nbytes + added > self._limits.bandit_bytes:
            raise TooLarge(
                f"the arms of {bandit.name!r} would take more than {self._limits.bandit_bytes} bytes"
            )
        place = self._journal.new_number() * self._limits.arms  # in the order in which they came
        rows = tuple(
            {"bandit": bandit.number, "arm": arm, "place": place + at, "features": encode(vector)}
            for at, (arm, vector) in enumerate(arms.items())
        )

        def apply(_: Statements) -> int:
            self.check(bandit)
            bandit.arms.put(arms)
            return len(bandit.arms)

        stored: int = await self._journal.append(Statements((), rows), apply)
        return stored

    async def remove_arm(self, name: str, arm: str) -> None:
        """Forget a stored arm; decisions for it stay open."""
        bandit = self.get(name)
        if arm not in bandit.arms:
            raise NotFound(f"bandit {name!r} has no stored arm {arm!r}")
        table = tables.arms
        where = (table.c.bandit == bandit.number) & (table.c.arm == arm)
        await self._journal.append(
            Statements((table.delete().where(where),)),
            lambda _: bandit.arms.remove(arm) if arm in bandit.arms else None,
        )

    async def add_actions(self, bandit: Bandit, actions: Sequence[str]) -> None:
        """Offer new actions, or retired ones again; those that are offered stay as they are."""
        models = models_of(bandit)
        await self._changing.over(bandit.number)
        known = {*models.actions, *models.retired}
        bandit.config.check_memory(self._limits, len(known | set(actions)))
        await self._change(bandit, [name for name in actions if name not in models.actions], ADDED)

    async def retire_action(self, bandit: Bandit, action: str) -> None:
        """Offer an action no more; decisions for it stay open, and its model learns from their rewards.

        One that is retired already stays so: a client that got no answer asks again.
        """
        models = models_of(bandit)
        await self._changing.over(bandit.number)
        if action in models.actions:
            await self._change(bandit, [action], RETIRED)
        elif action not in models.retired:
            raise NotFound(f"the action {action!r} cannot be retired: bandit {bandit.name!r} has none such")

    async def _change(self, bandit: Bandit, actions: Sequence[str], change: str) -> None:
        def apply(row: ActionRow) -> None:
            self.check(bandit)
            bandit.changed(row)

        self.check(bandit)
        self._journal.admit(len(actions))
        rows = [ActionRow(0, bandit.number, action, change) for action in actions]
        future = asyncio.gather(*(self._journal.append(row, apply) for row in rows))
        self._changing.add(bandit.number, future)
        await future


def models_of(bandit: Bandit) -> PerAction:
    """The models of a bandit with actions."""
    if not isinstance(bandit.policy, PerAction):
        raise Invalid(f"bandit {bandit.name!r} chooses among arms; one with actions is created with actions")
    return bandit.policy
