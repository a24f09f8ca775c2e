"""The bandits of a server by name: created, deleted, given arms; and the one way to record what they do."""

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import islice
from typing import Any, TypeVar

from sketchbandit.service import problems
from sketchbandit.service.bandit import Bandit, Learning
from sketchbandit.service.config import BanditConfig
from sketchbandit.service.journal import Journal
from sketchbandit.service.ordering import Clock, Lane, SingleFlight
from sketchbandit.service.problems import Conflict, Invalid, NotFound, Problem, TooLarge
from sketchbandit.service.quarantine import Quarantined
from sketchbandit.service.recovery import Recovered
from sketchbandit.service.settings import Limits
from sketchbandit.service.storage import tables
from sketchbandit.service.storage.records import ADDED, RETIRED, ActionRow, Row, Statements
from sketchbandit.service.vectors import Vector, encode, nbytes

log = logging.getLogger(__name__)

T = TypeVar("T")

_MOST_ARMS = 1000
"""Stored in one commit: more would hold up those of others."""
_MOST_THREADS = 16
Job = Callable[[], Any]


class Registry:
    """All bandits, and the numbers of those whose rows are still to be removed."""

    def __init__(self, found: Recovered, journal: Journal, clock: Clock, limits: Limits) -> None:
        self.bandits: dict[str, Bandit] = {}
        self.quarantined = {one.name: one for one in found.quarantined}
        """Those out of service: their records are kept, and nothing else happens to them."""
        self.deleted = found.deleted
        self._journal = journal
        self._clock = clock
        self._limits = limits
        self._creating: SingleFlight[str] = SingleFlight()
        self._changing: SingleFlight[int] = SingleFlight()
        """Bandits whose arms or actions are being changed."""
        self._threads = ThreadPoolExecutor(_MOST_THREADS, thread_name_prefix="bandit")
        for bandit in found.bandits:
            self._adopt(bandit)

    def _adopt(self, bandit: Bandit) -> None:
        bandit.lane = Lane(self._threads)
        self.bandits[bandit.name] = bandit

    def get(self, name: str) -> Bandit:
        """By name."""
        try:
            return self.bandits[name]
        except KeyError:
            if (found := self.quarantined.get(name)) is not None:
                raise problems.Quarantined(found.reason) from None
            raise NotFound(f"there is no bandit {name!r}; create it with PUT /v1/bandits/NAME") from None

    def check(self, bandit: Bandit) -> None:
        """Refuse what was asked of a bandit that has been deleted since, or put out of service."""
        if self.bandits.get(bandit.name) is not bandit:
            found = self.quarantined.get(bandit.name)
            if found is not None and found.number == bandit.number:
                raise problems.Quarantined(found.reason)
            raise NotFound(f"bandit {bandit.name!r} was deleted meanwhile")

    async def close(self) -> None:
        """When all bandits have learned what they were told."""
        await asyncio.gather(*(bandit.lane.over() for bandit in self.bandits.values()))
        self._threads.shutdown()

    # -- records of a bandit ---------------------------------------------------------------------------

    def apply(self, bandit: Bandit, *rows: Row, then: Job | None = None) -> Any:
        """Take rows that were committed: book them, and have the policy learn what is to be learned.

        Gives what ``then`` gives, which may look at the policy; or a future of it, where that takes long.
        If anything fails that is not the client's fault, the bandit is put out of service: what it holds in
        memory may be wrong, and the journal has everything for a restart.
        """
        self.check(bandit)
        try:
            jobs = [job for row in rows if (job := bandit.book(row)) is not None]
            if then is None and not jobs:
                return None
            work = partial(_all, jobs, then)
            if bandit.lane.is_free_for(bandit.learn_seconds):
                return work()
        except Problem:
            raise
        except Exception as error:
            raise self.fence(bandit, error) from error
        return asyncio.ensure_future(self._later(bandit, work))

    async def _later(self, bandit: Bandit, work: Job) -> Any:
        def unless_fenced() -> Any:
            self.check(bandit)  # a record before this one may have failed
            return work()

        try:
            return await bandit.lane.put(unless_fenced, bandit.learn_seconds)
        except Problem:
            raise
        except Exception as error:
            raise self.fence(bandit, error) from error

    def fence(self, bandit: Bandit, error: Exception) -> problems.Quarantined:
        """Put a bandit out of service, and give what its clients are told."""
        reason = (
            f"bandit {bandit.name!r} is out of service: a record of it could not be applied "
            f"({type(error).__name__}: {str(error)[:200]}). Everything is in the journal: restart the "
            "server, with more memory if that was short; `sketchbandit service repair` says more"
        )
        if self.bandits.get(bandit.name) is bandit:
            log.error("a bandit is out of service", exc_info=error, extra={"bandit": bandit.name})
            del self.bandits[bandit.name]
            self.quarantined[bandit.name] = Quarantined(bandit.number, bandit.name, reason)
        return problems.Quarantined(reason)

    @property
    def open_bytes(self) -> int:
        """Features of open decisions, of all bandits."""
        return sum(bandit.open_bytes + bandit.bytes_on_the_way for bandit in self.bandits.values())

    # -- bandits ----------------------------------------------------------------------------------------

    async def create(self, name: str, config: BanditConfig) -> tuple[Bandit, bool]:
        """A bandit of that name and those settings, and whether it is new."""
        config = await self._in_thread(config.checked, self._limits)
        await self._creating.over(name)
        if name in self.bandits:
            if differing := self.bandits[name].config.differences(config):
                raise Conflict(
                    f"bandit {name!r} exists with other settings ({differing}); DELETE it first, or choose "
                    "another name"
                )
            return self.bandits[name], False
        if name in self.quarantined:
            self.get(name)  # says why
        if len(self.bandits) + len(self.quarantined) + len(self._creating) >= self._limits.bandits:
            raise Conflict(f"this server keeps up to {self._limits.bandits} bandits; DELETE one first")
        creating = asyncio.ensure_future(self._create(name, config))
        self._creating.add(name, creating)
        return await asyncio.shield(creating), True

    async def _create(self, name: str, config: BanditConfig) -> Bandit:
        number, created = self._journal.new_number(), self._clock.now()
        bandit: Bandit = await self._in_thread(partial(Bandit, number, name, config, created=created))
        row = {"id": number, "name": name, "config": config.to_json(), "created": created}

        def apply(_: Statements) -> None:
            self._adopt(bandit)
            log.info("bandit created", extra={"bandit": name, "policy": config.policy, "dim": config.dim})

        await self._journal.append(Statements((tables.bandits.insert().values(row),)), apply)
        return bandit

    async def _in_thread(self, work: Callable[..., Any], *args: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work, *args)

    async def delete(self, name: str) -> None:
        """Forget a bandit, its decisions and its snapshots; its rows are removed by and by."""
        number = self.quarantined[name].number if name in self.quarantined else self.get(name).number
        bandits = tables.bandits

        def apply(_: Statements) -> None:
            for known in (self.bandits, self.quarantined):
                if name in known and known[name].number == number:
                    del known[name]
                    self.deleted.append(number)
                    log.info("bandit deleted", extra={"bandit": name})

        statement = bandits.update().where(bandits.c.id == number).values(name=None)
        await self._journal.append(Statements((statement,)), apply)

    # -- stored arms ------------------------------------------------------------------------------------

    async def put_arms(self, bandit: Bandit, arms: Mapping[str, Vector]) -> int:
        """Store arms under their ids, replacing those known; how many there are now.

        Many are stored in several commits, so that nobody waits long behind them. If the server ends in the
        middle some of them are stored; nothing was acknowledged then, and the same request again is right.
        """
        self.check(bandit)  # its dimension is what the arms were read for
        if bandit.config.actions is not None:
            raise Invalid(f"bandit {bandit.name!r} has actions, and no arms; POST new ones to /actions")
        await self._changing.over(bandit.number)
        storing = asyncio.ensure_future(self._put_arms(bandit, arms))
        self._changing.add(bandit.number, storing)
        return await asyncio.shield(storing)

    async def _put_arms(self, bandit: Bandit, arms: Mapping[str, Vector]) -> int:
        count = len(bandit.arms) + sum(arm not in bandit.arms for arm in arms)
        if count > self._limits.arms:
            raise TooLarge(f"{count} arms; a bandit stores up to {self._limits.arms}")
        added = sum(nbytes(vector) for vector in arms.values())
        if bandit.arms.nbytes + added > self._limits.bandit_bytes:
            raise TooLarge(
                f"the arms of {bandit.name!r} would take more than {self._limits.bandit_bytes} bytes"
            )
        place = self._journal.new_number() * self._limits.arms  # in the order in which they came
        for some in _some_of(enumerate(arms.items(), place), _MOST_ARMS):
            rows = tuple(
                {"bandit": bandit.number, "arm": arm, "place": at, "features": encode(vector)}
                for at, (arm, vector) in some
            )
            await self._journal.append(self._arms_changed(bandit, arms=rows), lambda _: self.check(bandit))
        bandit.arms.put(arms)
        return len(bandit.arms)

    async def remove_arms(self, bandit: Bandit, arms: Sequence[str]) -> None:
        """Forget stored arms; decisions for them stay open."""
        await self._changing.over(bandit.number)
        for arm in arms:
            if arm not in bandit.arms:
                raise NotFound(f"bandit {bandit.name!r} has no stored arm {arm!r}")
        storing = asyncio.ensure_future(self._remove_arms(bandit, arms))
        self._changing.add(bandit.number, storing)
        await asyncio.shield(storing)

    async def _remove_arms(self, bandit: Bandit, arms: Sequence[str]) -> None:
        table = tables.arms
        for some in _some_of(arms, _MOST_ARMS):
            where = (table.c.bandit == bandit.number) & table.c.arm.in_(some)
            await self._journal.append(
                self._arms_changed(bandit, table.delete().where(where)), lambda _: self.check(bandit)
            )
        for arm in arms:
            bandit.arms.remove(arm)

    @staticmethod
    def _arms_changed(
        bandit: Bandit, *statements: Any, arms: tuple[dict[str, object], ...] = ()
    ) -> Statements:
        """With a new version, by which a standby sees that stored arms have changed."""
        table = tables.bandits
        counted = (
            table.update().where(table.c.id == bandit.number).values(arms_version=table.c.arms_version + 1)
        )
        return Statements((*statements, counted), arms)

    # -- actions ----------------------------------------------------------------------------------------

    async def add_actions(self, bandit: Bandit, actions: Sequence[str]) -> None:
        """Offer new actions, or retired ones again; those that are offered stay as they are."""
        _check_has_actions(bandit)
        await self._changing.over(bandit.number)
        offered = set(bandit.actions)
        bandit.config.check_memory(self._limits, len({*offered, *bandit.retired, *actions}))
        await self._change(bandit, [name for name in actions if name not in offered], ADDED)

    async def retire_actions(self, bandit: Bandit, actions: Sequence[str]) -> None:
        """Offer actions no more; decisions for them stay open, and their models learn from their rewards.

        One that is retired already stays so: a client that got no answer asks again.
        """
        _check_has_actions(bandit)
        await self._changing.over(bandit.number)
        offered, retired = set(bandit.actions), set(bandit.retired)
        for action in actions:
            if action not in offered and action not in retired:
                raise NotFound(
                    f"the action {action!r} cannot be retired: bandit {bandit.name!r} has none such"
                )
        await self._change(bandit, [action for action in actions if action in offered], RETIRED)

    async def _change(self, bandit: Bandit, actions: Sequence[str], change: str) -> None:
        self.check(bandit)
        self._journal.admit(len(actions))
        rows = [ActionRow(0, bandit.number, action, change) for action in dict.fromkeys(actions)]
        take = partial(self.apply, bandit)
        future = asyncio.gather(*(self._journal.append(row, take) for row in rows))
        self._changing.add(bandit.number, future)
        await future


def _all(jobs: Sequence[Learning], then: Job | None) -> Any:
    for job in jobs:
        job()
    return None if then is None else then()


def _check_has_actions(bandit: Bandit) -> None:
    if bandit.config.actions is None:
        raise Invalid(f"bandit {bandit.name!r} chooses among arms; one with actions is created with actions")


def _some_of(items: Iterable[T], count: int) -> Iterator[tuple[T, ...]]:
    """So many of them at a time."""
    left = iter(items)
    while some := tuple(islice(left, count)):
        yield some
