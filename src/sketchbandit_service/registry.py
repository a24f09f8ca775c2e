"""The bandits of a server by name: creating and deleting them, and applying their records."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import TypeVar

from sketchbandit_service import problems
from sketchbandit_service.bandit import Bandit
from sketchbandit_service.config import BanditConfig
from sketchbandit_service.journal import Journal
from sketchbandit_service.ordering import Clock, Lane, SingleFlight
from sketchbandit_service.policy_set import Learning
from sketchbandit_service.problems import Conflict, NotFound, Problem
from sketchbandit_service.recovery import Quarantined, Recovered
from sketchbandit_service.settings import Limits
from sketchbandit_service.storage import tables
from sketchbandit_service.storage.records import Row, Statements

log = logging.getLogger(__name__)

_MOST_THREADS = 16
_OUT_OF_SERVICE = "the bandit is out of service: one of its records could not be applied; restart the server"
T = TypeVar("T")
Job = Callable[[], object]
Begin = Callable[[Bandit], Awaitable[None]]


class Registry:
    """All bandits, and the numbers of deleted bandits whose rows are still to be removed."""

    def __init__(self, found: Recovered, journal: Journal, clock: Clock, limits: Limits) -> None:
        self.bandits: dict[str, Bandit] = {}
        self.quarantined = {one.name: one for one in found.quarantined}
        """Bandits out of service. Their records are kept, and nothing else happens to them."""
        self.deleted = found.deleted
        self._journal = journal
        self._clock = clock
        self._limits = limits
        self._creating: SingleFlight[str] = SingleFlight()
        self._threads = ThreadPoolExecutor(_MOST_THREADS, thread_name_prefix="bandit")
        for bandit in found.bandits:
            bandit.look()
            self._adopt(bandit)

    def _adopt(self, bandit: Bandit) -> None:
        bandit.lane = Lane(self._threads)
        self.bandits[bandit.name] = bandit

    def get(self, name: str) -> Bandit:
        """The bandit with this name."""
        try:
            return self.bandits[name]
        except KeyError:
            if (found := self.quarantined.get(name)) is not None:
                raise problems.Quarantined(found.reason) from None
            raise NotFound(f"there is no bandit {name!r}; create it with PUT /v1/bandits/NAME") from None

    def check(self, bandit: Bandit) -> None:
        """Refuse a request to a bandit that was deleted or put out of service in the meantime."""
        if bandit.failed is not None:
            raise self.fence(bandit, bandit.failed)
        if self.bandits.get(bandit.name) is not bandit:
            found = self.quarantined.get(bandit.name)
            if found is not None and found.number == bandit.number:
                raise problems.Quarantined(found.reason)
            raise NotFound(f"bandit {bandit.name!r} was deleted in the meantime")

    async def over(self) -> None:
        """Wait until all bandits have learned from all their records."""
        await asyncio.gather(*(bandit.lane.over() for bandit in self.bandits.values()))

    def close(self) -> None:
        """End the threads. No more work is accepted."""
        self._threads.shutdown()

    # -- records of a bandit ---------------------------------------------------------------------------

    def apply(self, bandit: Bandit, *rows: Row, then: Job | None = None) -> object:
        """Apply committed rows: count them, and let the policy learn from them.

        Returns what ``then`` returns, which may look at the policy, or a future of it if that takes long. If
        anything fails that is not the client's fault, the bandit is put out of service: its state in memory
        may be wrong. The journal has everything for a restart.
        """
        self.check(bandit)
        try:
            jobs = [job for row in rows if (job := bandit.book(row)) is not None]
            if then is None and not jobs:
                return None
            work, seconds = partial(_all, jobs, then), sum(map(bandit.seconds_for, rows))
            if bandit.lane.is_free_for(seconds):
                return work()
            learning = bandit.lane.put(partial(self._unless_failed, bandit, work), seconds)  # in order
        except Problem:
            raise
        except Exception as error:
            raise self.fence(bandit, error) from error
        return asyncio.ensure_future(self._learned(bandit, learning))

    def _unless_failed(self, bandit: Bandit, work: Job) -> object:
        """Runs in the bandit's queue. A failure is noted here, before anybody can copy the policy."""
        if bandit.failed is not None:  # at an earlier record
            raise bandit.failed
        self.check(bandit)
        try:
            return work()
        except Problem:
            raise
        except Exception as error:
            bandit.failed = error
            raise

    async def _learned(self, bandit: Bandit, learning: asyncio.Future[object]) -> object:
        try:
            return await learning
        except Problem:
            raise
        except Exception as error:
            raise self.fence(bandit, error) from error

    def fence(self, bandit: Bandit, error: Exception) -> problems.Quarantined:
        """Put a bandit out of service. Returns the problem that its clients are told."""
        bandit.failed = error  # first of all: the rest needs memory, which may be short
        is_new = self.bandits.get(bandit.name) is bandit
        if is_new:
            self.quarantined[bandit.name] = Quarantined(bandit.number, bandit.name, _OUT_OF_SERVICE)
            del self.bandits[bandit.name]
        reason = (
            f"bandit {bandit.name!r} is out of service: one of its records could not be applied "
            f"({type(error).__name__}: {str(error)[:200]}). Everything is in the journal. Restart the "
            "server, with more memory if that was short; `sketchbandit service repair` says more"
        )
        if is_new:
            self.quarantined[bandit.name] = Quarantined(bandit.number, bandit.name, reason)
            with suppress(Exception):  # it is out of service even if that cannot be logged
                log.error("a bandit is out of service", exc_info=error, extra={"bandit": bandit.name})
        return problems.Quarantined(reason)

    @property
    def open_bytes(self) -> int:
        """Bytes of features of open decisions, over all bandits."""
        return sum(
            one.open_bytes + one.bytes_on_the_way + one.shadows.nbytes for one in self.bandits.values()
        )

    # -- bandits ----------------------------------------------------------------------------------------

    async def create(
        self, name: str, config: BanditConfig, *, origin: str | None = None, learn: Begin | None = None
    ) -> tuple[Bandit, bool]:
        """A bandit with this name and these settings, and whether it is new.

        ``learn`` is what a new bandit does first: it learns from the log of ``origin``.
        """
        config = await self._in_thread(config.checked, self._limits)
        await self._creating.over(name)
        if name in self.bandits:
            if differing := _differences(self.bandits[name], config, origin):
                raise Conflict(
                    f"bandit {name!r} exists with other settings ({differing}); DELETE it first, or choose "
                    "another name"
                )
            return self.bandits[name], False
        if name in self.quarantined:
            self.get(name)  # raises, and says why
        if len(self.bandits) + len(self.quarantined) + len(self._creating) >= self._limits.bandits:
            raise Conflict(f"this server keeps up to {self._limits.bandits} bandits; DELETE one first")
        creating = asyncio.ensure_future(self._create(name, config, learn))
        self._creating.add(name, creating)
        return await asyncio.shield(creating), True

    async def _create(self, name: str, config: BanditConfig, learn: Begin | None) -> Bandit:
        number, created = self._journal.new_number(), self._clock.now()
        bandit: Bandit = await self._in_thread(_built, partial(Bandit, number, name, config, created=created))
        if learn is not None:
            await learn(bandit)
        source = None if bandit.origin is None else bandit.origin.to_json()
        row = {"id": number, "name": name, "config": config.to_json(), "created": created, "source": source}

        def apply(_: Statements) -> None:
            self.bandits[name] = bandit
            try:
                self._adopt(bandit)
            except Exception as error:
                raise self.fence(bandit, error) from error
            log.info("bandit created", extra={"bandit": name, "policy": config.policy, "dim": config.dim})

        await self._journal.append(Statements((tables.bandits.insert().values(row),)), apply)
        return bandit

    async def _in_thread(self, work: Callable[..., T], *args: object) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work, *args)

    async def delete(self, name: str) -> None:
        """Delete a bandit, its decisions and its snapshots. Its rows are removed gradually."""
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


def _differences(bandit: Bandit, config: BanditConfig, origin: str | None) -> str:
    """The settings in which a bandit differs from the requested ones."""
    mine = None if bandit.origin is None else bandit.origin.name
    found = bandit.original.differences(config)
    return ", ".join(
        [*filter(None, [found]), *([f"from is {mine!r}, not {origin!r}"] if mine != origin else [])]
    )


def _built(make: Callable[[], Bandit]) -> Bandit:
    bandit = make()
    bandit.look()
    return bandit


def _all(jobs: Sequence[Learning], then: Job | None) -> object:
    for job in jobs:
        job()
    return None if then is None else then()
