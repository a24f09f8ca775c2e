"""The service without HTTP: it runs one state folder, from start to stop."""

import logging
import time
from contextlib import ExitStack

from sketchbandit.array_api import torch_on
from sketchbandit.errors import InputError
from sketchbandit.files import lock_folder
from sketchbandit_service.bandit import Bandit
from sketchbandit_service.budget import Budget
from sketchbandit_service.creation import Creation
from sketchbandit_service.decisions import After, Decisions
from sketchbandit_service.estimating import Estimator
from sketchbandit_service.journal import Journal
from sketchbandit_service.metrics import Instruments
from sketchbandit_service.ordering import Clock, Threads
from sketchbandit_service.problems import Problem, Standby, Unavailable
from sketchbandit_service.promotions import Candidates
from sketchbandit_service.recovery import Recovered, recognise, recover
from sketchbandit_service.registry import Registry
from sketchbandit_service.rewards import Rewards
from sketchbandit_service.scalings import Scalings
from sketchbandit_service.settings import Settings
from sketchbandit_service.shadow_propensities import Judge
from sketchbandit_service.standby import Follower
from sketchbandit_service.stock import Stock
from sketchbandit_service.storage.connecting import default_url
from sketchbandit_service.storage.database import Database
from sketchbandit_service.storage.snapshots import snapshots_of
from sketchbandit_service.warmup import warm_up

log = logging.getLogger(__name__)


class Engine:
    """All bandits of one state folder. Everything runs on one event loop."""

    def __init__(self, settings: Settings, *, seed: int | None = None) -> None:
        self.settings = settings
        self.limits = settings.limits
        self.instruments = Instruments()
        self._seed = seed
        self.is_ready = False
        self.budget = Budget(settings.limits.request_bytes)
        """The memory of requests."""
        self.threads = Threads()
        """Threads for long work that belongs to no bandit: reading large bodies, writing large answers."""
        self.follower: Follower | None = None
        """Set while this server is a standby."""

    # -- life -----------------------------------------------------------------------------------------

    async def start(self, *, standby: bool = False) -> None:
        """Lock the state folder, read everything back, and begin.

        ``standby``: if another server has the database, follow that server until it is gone.
        """
        if self.settings.device is not None:
            torch_on(self.settings.device)  # a wrong device is refused now, not at the first decision
        state = self.settings.state
        if state.exists() and not state.is_dir():
            raise InputError(f"the state must be a folder, but {state} is a file")
        state.mkdir(parents=True, exist_ok=True)
        log.info("starting", extra={"state": str(state)})
        warm_up()
        with ExitStack() as taken:
            taken.enter_context(lock_folder(state))
            url = self.settings.database or default_url(state)
            self.database = Database(url, patience=self.settings.storage_patience)
            taken.callback(self.database.close)
            in_database = self.settings.snapshots == "database"
            self.snapshots = snapshots_of(
                state, self.database, in_database=in_database, keep=self.settings.snapshots_kept
            )
            self._begin(await self._follow() if standby else self._recover())
            self._taken = taken.pop_all()
        self.journal.start()
        self.is_ready = True

    async def drain(self) -> None:
        """Accept nothing more, and commit what waits."""
        log.info("stopping")
        self.is_ready = False
        await self.estimator.close()
        self.judge.close()
        await self.journal.close()
        await self.registry.over()

    def release(self) -> None:
        """Release the database and the folder."""
        log.info("stopped")
        self.registry.close()
        self.threads.close()
        self._taken.close()

    def refusal(self) -> Problem | None:
        """Why nothing but /healthz is answered. None if requests are answered."""
        if self.follower is not None:
            return Standby(
                "this server is a standby: it follows the server that has the database, and takes over when "
                "that server is gone; ask the other address, or give both addresses to the client"
            )
        if self.is_ready and self.journal.fenced is not None:
            return Unavailable(self.journal.fenced)
        return None

    async def _follow(self) -> Recovered:
        self.follower = Follower(self.database, self.settings.state, self.snapshots)
        try:
            return await self.follower.until_primary()
        finally:
            self.follower = None

    def _recover(self) -> Recovered:
        self.database.open()
        recognise(self.settings.state, self.database)
        return recover(self.database, self.snapshots)

    def _clock(self, found: Recovered) -> Clock:
        """The clock. If it leapt and --accept-clock is not given, time goes on from the last record."""
        if not found.has_leapt or self.settings.accept_clock:
            return Clock(found.last_time)
        days = (time.time() - found.last_time) / 86_400
        log.warning(
            "the clock is far ahead of the journal, so time goes on from the last record and nothing "
            "expires by mistake; if the clock is right, start the server once with --accept-clock; if it is "
            "wrong, set it and restart the server",
            extra={"days": round(days, 1)},
        )
        return Clock(wall=lambda: found.last_time)

    def _begin(self, found: Recovered) -> None:
        limits = self.limits
        self.clock = clock = self._clock(found)
        self.journal = Journal(
            self.database,
            last_seq=found.last_seq,
            most_waiting=limits.waiting,
            instruments=self.instruments,
            patience=self.settings.storage_patience,
        )
        self.registry = Registry(found, self.journal, clock, limits)
        self.creation = Creation(self.registry, self.journal, self.database, self.snapshots)
        self.estimator = Estimator(self.registry, self.journal, self.instruments)
        self.stock = Stock(self.registry, self.journal, self.threads, limits)
        self.candidates = Candidates(self.registry, self.journal, self.threads, clock, limits)
        self.judge = Judge(self.registry, self.journal, self.instruments, seed=self._seed)
        scalings = Scalings(self.registry, self.journal)
        after = After(self.estimator, self.judge)
        self.decisions = Decisions(
            self.registry, self.journal, after, scalings, clock, limits=limits, seed=self._seed
        )
        self.rewards = Rewards(
            self.registry, self.journal, self.judge, scalings, clock, limits=limits, dropped=found.dropped
        )
        registry = self.registry
        self.instruments.watch(lambda: list(registry.bandits.values()), lambda: len(registry.quarantined))
        log.info("state read", extra={"bandits": len(found.bandits), "records": found.last_seq})

    def bandit(self, name: str) -> Bandit:
        """The bandit with this name."""
        return self.registry.get(name)
