"""Periodic work: expires decisions, writes snapshots, removes old and deleted rows."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import NamedTuple

from sketchbandit_service.bandit import Bandit, Snapshotted
from sketchbandit_service.engine import Engine
from sketchbandit_service.problems import NotFound, Problem, Quarantined
from sketchbandit_service.retention import Retention
from sketchbandit_service.scrubbing import Scrubber
from sketchbandit_service.storage.records import DEFAULT

log = logging.getLogger(__name__)

_EVERY = 0.5
_MOST_EXPIRED = 500
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 600.0
_JOURNAL_AHEAD = 500_000  # most records that a restart reads for a bandit that nobody uses


class _PutOff(NamedTuple):
    """A snapshot to be tried again."""

    reason: str
    pause: float
    until: float


@asynccontextmanager
async def running(engine: Engine, *, standby: bool = False) -> AsyncIterator["Upkeep"]:
    """Run an engine from its start to its end. At the end everything is committed, with last snapshots."""
    await engine.start(standby=standby)
    upkeep = Upkeep(engine)
    upkeep.start()
    try:
        yield upkeep
    finally:
        try:
            await upkeep.stop()
            await engine.drain()
            if engine.journal.fenced is None:  # otherwise the snapshots belong to the other server now
                await upkeep.snapshot_all()
        finally:
            engine.release()


class Upkeep:
    """A task that runs beside the requests."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._task: asyncio.Task[None] | None = None
        self._one_round = asyncio.Lock()
        """Two rounds at once would write the same snapshot twice, and count it twice among those kept."""
        self._working: dict[int, asyncio.Task[None]] = {}
        """The bandits that are being worked on."""
        self._retention = Retention(engine)
        self._scrubber = Scrubber(engine)
        self._put_offs: dict[int, _PutOff] = {}
        """The bandits whose snapshot could not be written."""

    def start(self) -> None:
        """Start the task."""
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        """Stop between two rounds."""
        if self._task is not None:
            async with self._one_round:
                self._task.cancel()
            await asyncio.gather(self._task, *self._working.values(), return_exceptions=True)

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(_EVERY)
            try:
                await self.round(patience=_EVERY)
            except Problem as problem:
                log.debug("upkeep is put off", extra={"reason": str(problem)})
            except Exception:
                log.exception("upkeep failed")

    async def round(self, patience: float | None = None) -> None:
        """Do everything that is due. Another round that is called in the meantime waits.

        If a bandit is busy for longer than ``patience`` (seconds), its work goes on in the background.
        """
        async with self._one_round:
            await self._round(patience)

    async def _round(self, patience: float | None) -> None:
        engine = self._engine
        engine.journal.flush()
        if engine.journal.trouble is not None:  # /readyz may keep all traffic away, so nobody else tries
            await engine.journal.probe()
        elif not engine.database.is_sqlite:
            await engine.journal.verify()
        if not engine.database.is_there():
            await engine.journal.probe()  # it is refused, as is everything from now on
        for bandit in list(engine.registry.bandits.values()):
            if bandit.number not in self._working:
                self._working[bandit.number] = asyncio.create_task(self._look_after(bandit))
        if self._working:
            await asyncio.wait(self._working.values(), timeout=patience)
        over = {number: task for number, task in self._working.items() if task.done()}
        for number in over:
            del self._working[number]
        await self._retention.round()
        await self._scrubber.round()
        for task in over.values():
            task.result()  # raises what went wrong

    async def _look_after(self, bandit: Bandit) -> None:
        """Do what is due for one bandit. Other bandits do not wait for it."""
        while await self.expire(bandit):
            pass
        if self._engine.journal.fenced is None and self._wants_snapshot(bandit):
            await self.snapshot(bandit)

    # -- expiry ---------------------------------------------------------------------------------------

    async def expire(self, bandit: Bandit) -> int:
        """Take the default reward for arms that nobody rewarded in time.

        Returns how many, about 500 at most.
        """
        engine = self._engine
        overdue = [
            (first, position)
            for first, position in bandit.overdue(engine.clock.now(), _MOST_EXPIRED)
            if not engine.rewards.is_closing(first + position)
        ]
        default = bandit.config.default_reward
        futures = [engine.rewards.close(bandit, *waiting, DEFAULT, default) for waiting in overdue]
        for outcome in await asyncio.gather(*futures, return_exceptions=True):
            if isinstance(outcome, BaseException):
                raise outcome
        return len(overdue)

    # -- snapshots ------------------------------------------------------------------------------------

    def _wants_snapshot(self, bandit: Bandit) -> bool:
        settings, applied = self._engine.settings, self._engine.journal.applied
        if (put_off := self._put_offs.get(bandit.number)) is not None:
            return self._engine.clock.now() >= put_off.until
        none = Snapshotted(bandit.number, frozenset(), bandit.created, 0)
        last = bandit.snapshots[-1] if bandit.snapshots else none
        age = self._engine.clock.now() - last.at
        learned = bandit.accounts.totals.learned - last.learned
        if learned >= settings.snapshot_updates or applied - last.seq >= _JOURNAL_AHEAD:
            return True
        if settings.retention_seconds is not None and applied > last.seq:
            return age >= min(settings.snapshot_seconds, settings.retention_seconds / 4)
        return learned > 0 and age >= settings.snapshot_seconds

    async def snapshot(self, bandit: Bandit) -> bool:
        """Write a snapshot from a copy that is made in the bandit's queue. Returns whether it worked."""
        engine = self._engine
        try:
            waiting, learned = frozenset(bandit.open), bandit.accounts.totals.learned
            snapshot = await bandit.snapshot(engine.journal.applied)
            engine.registry.check(bandit)  # it may be out of service, and the copy wrong
            await asyncio.to_thread(engine.snapshots.write, bandit.number, snapshot)
        except (NotFound, Quarantined):
            return False
        except Exception as error:  # in any case the other bandits get their snapshots
            self._put_off(bandit, repr(error) if isinstance(error, MemoryError) else str(error))
            return False
        self._put_offs.pop(bandit.number, None)
        if bandit.number in engine.registry.deleted:  # in the meantime
            await asyncio.to_thread(engine.snapshots.delete, bandit.number)
            return False
        bandit.snapshots.append(Snapshotted(snapshot.seq, waiting, engine.clock.now(), learned))
        while len(bandit.snapshots) > engine.settings.snapshots_kept:
            bandit.snapshots.popleft()
        return True

    def _put_off(self, bandit: Bandit, reason: str) -> None:
        """Try again later, with growing pauses. Every reason is logged once."""
        last = self._put_offs.get(bandit.number)
        if last is None or last.reason != reason:
            log.error("a snapshot could not be written", extra={"bandit": bandit.name, "reason": reason})
        pause = _FIRST_PAUSE if last is None else min(2 * last.pause, _LONGEST_PAUSE)
        self._put_offs[bandit.number] = _PutOff(reason, pause, self._engine.clock.now() + pause)

    async def snapshot_all(self) -> None:
        """At shutdown, write snapshots of all bandits that have changed."""
        for bandit in list(self._engine.registry.bandits.values()):
            if not bandit.snapshots or bandit.snapshots[-1].seq < self._engine.journal.applied:
                await self.snapshot(bandit)
