"""What happens by itself: decisions expire, snapshots are written, old and deleted rows go."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import NamedTuple

import sqlalchemy as sa

from sketchbandit.service.bandit import Bandit, Snapshotted
from sketchbandit.service.engine import Engine
from sketchbandit.service.problems import Problem
from sketchbandit.service.storage import tables
from sketchbandit.service.storage.records import DEFAULT, Statements

log = logging.getLogger(__name__)

_EVERY = 0.5
_MOST_EXPIRED = 500
_MOST_DROPPED = 2000
_STRETCH = 20_000
_OF_A_BANDIT = (tables.decisions, tables.rewards, tables.estimates, tables.actions, tables.scalings)
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 600.0
_JOURNAL_AHEAD = 500_000  # records that a restart reads at most, for a bandit that nobody uses


class _PutOff(NamedTuple):
    """A snapshot that is to be tried again."""

    reason: str
    pause: float
    until: float


@asynccontextmanager
async def running(engine: Engine) -> AsyncIterator["Upkeep"]:
    """An engine from its start to its end: everything committed, a last snapshot of what has changed."""
    await engine.start()
    upkeep = Upkeep(engine)
    await upkeep.look_at_clock()
    upkeep.start()
    try:
        yield upkeep
    finally:
        try:
            await upkeep.stop()
            await engine.drain()
            await upkeep.snapshot_all()
        finally:
            engine.release()


class Upkeep:
    """A task beside the requests."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._task: asyncio.Task[None] | None = None
        self._one_round = asyncio.Lock()
        """Two rounds at once would take the same snapshot twice, and count it as two that are kept."""
        self._purged: dict[int, int] = {}
        """Deleted bandits: up to which record their rows are gone."""
        self._swept = 0
        """From which record on old rows are looked for."""
        self._has_free_space = False
        self._put_offs: dict[int, _PutOff] = {}
        """Bandits whose snapshot could not be written."""

    def start(self) -> None:
        """Begin."""
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        """End, between two rounds."""
        if self._task is not None:
            async with self._one_round:
                self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(_EVERY)
            try:
                await self.round()
            except Problem as problem:
                log.debug("upkeep is put off", extra={"reason": str(problem)})
            except Exception:
                log.exception("upkeep failed")

    async def round(self) -> None:
        """Everything that is due; a round that is called meanwhile waits."""
        async with self._one_round:
            await self._round()

    async def _round(self) -> None:
        self._engine.journal.flush()
        if self._engine.journal.trouble is not None:  # nobody else may try, where /readyz keeps traffic away
            await self._engine.journal.probe()
        if not self._engine.database.is_there():
            await self._engine.journal.probe()  # which is refused, as everything from now on
        for bandit in list(self._engine.registry.bandits.values()):
            while self._engine.clock_doubted is None and await self.expire(bandit):
                pass
        for bandit in list(self._engine.registry.bandits.values()):
            if self._wants_snapshot(bandit):
                await self.snapshot(bandit)
        await self._drop_old()
        await self._purge_deleted()
        await self._give_back_space()

    # -- the clock ------------------------------------------------------------------------------------

    async def look_at_clock(self) -> None:
        """Let nothing expire while a leap of the clock is not confirmed; over restarts too."""
        engine = self._engine
        if (doubted := engine.clock_doubted) is None:
            return
        if engine.settings.accept_clock:
            engine.clock_doubted = None
            log.warning("the leap of the clock is confirmed: decisions expire by it")
        else:
            days = (engine.clock.now() - doubted) / 86_400
            log.warning(
                "the clock is far ahead of the journal, and no decision expires: if the clock is right, "
                "start the server once with --accept-clock; if it is wrong, set it and restart the server",
                extra={"days": round(days, 1)},
            )
        remember = tables.service.update().values(clock_doubted=engine.clock_doubted)
        await engine.journal.append(Statements((remember,)), lambda _: None)

    # -- expiry ---------------------------------------------------------------------------------------

    async def expire(self, bandit: Bandit) -> int:
        """The default reward for arms that nobody rewarded in time; how many there were, some 500 at most."""
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
        learned = bandit.told().rounds - last.rounds
        if learned >= settings.snapshot_updates or applied - last.seq >= _JOURNAL_AHEAD:
            return True
        if settings.retention_seconds is not None and applied > last.seq:
            return age >= min(settings.snapshot_seconds, settings.retention_seconds / 4)
        return learned > 0 and age >= settings.snapshot_seconds

    async def snapshot(self, bandit: Bandit) -> bool:
        """Write a snapshot; the loop waits only while memory is copied. Whether that went well."""
        engine = self._engine
        try:
            snapshot = bandit.snapshot(engine.journal.applied)
            waiting, rounds = frozenset(bandit.open), snapshot.policy.rounds
            write = engine.snapshots.write
            await asyncio.get_running_loop().run_in_executor(None, write, bandit.number, snapshot)
        except Exception as error:  # whatever it is, other bandits have theirs written
            self._put_off(bandit, repr(error) if isinstance(error, MemoryError) else str(error))
            return False
        self._put_offs.pop(bandit.number, None)
        if bandit.number in engine.registry.deleted:  # meanwhile
            engine.snapshots.delete(bandit.number)
            return False
        bandit.snapshots.append(Snapshotted(snapshot.seq, waiting, engine.clock.now(), rounds))
        while len(bandit.snapshots) > engine.settings.snapshots_kept:
            bandit.snapshots.popleft()
        return True

    def _put_off(self, bandit: Bandit, reason: str) -> None:
        """Try again later, and later still if that fails too; every reason is logged once."""
        last = self._put_offs.get(bandit.number)
        if last is None or last.reason != reason:
            log.error("a snapshot could not be written", extra={"bandit": bandit.name, "reason": reason})
        pause = _FIRST_PAUSE if last is None else min(2 * last.pause, _LONGEST_PAUSE)
        self._put_offs[bandit.number] = _PutOff(reason, pause, self._engine.clock.now() + pause)

    async def snapshot_all(self) -> None:
        """At shutdown: whatever has changed."""
        for bandit in list(self._engine.registry.bandits.values()):
            if not bandit.snapshots or bandit.snapshots[-1].seq < self._engine.journal.applied:
                await self.snapshot(bandit)

    # -- rows that nobody needs -----------------------------------------------------------------------

    async def _drop_old(self) -> None:
        """Drop decisions older than the retention that no kept snapshot needs: some 2,000 rows a round.

        Those that wait, now or in a kept snapshot, are left behind. They are looked at again and again, and
        go when they were answered.
        """
        engine, retention = self._engine, self._engine.settings.retention_seconds
        if retention is None or (bound := self._not_needed()) is None:
            return
        oldest = [bandit.snapshots[0] for bandit in engine.registry.bandits.values()]
        d, start, cutoff = tables.decisions, self._swept, engine.clock.now() - retention
        query = sa.select(d.c.seq, sa.func.coalesce(d.c.slate, d.c.seq).label("first"))
        query = (
            query.where(d.c.seq.between(start, bound), d.c.at < cutoff).order_by(d.c.seq).limit(_MOST_DROPPED)
        )
        rows = await engine.journal.read(lambda connection: connection.execute(query).all())
        self._swept = rows[-1].seq + 1 if len(rows) == _MOST_DROPPED else 0
        waiting = frozenset().union(*(snapshot.waiting for snapshot in oldest))
        doomed = [row.seq for row in rows if row.first not in waiting]
        if not doomed:
            return
        r, e, s = tables.rewards, tables.estimates, tables.service
        dropped = max(engine.rewards.dropped, doomed[-1] + 1)
        statements = (
            d.delete().where(d.c.seq.in_(doomed)),
            r.delete().where(r.c.decision.in_(doomed)),
            e.delete().where(e.c.decision.in_(doomed)),
            s.update().values(dropped=dropped),
        )

        def apply(_: Statements) -> None:
            engine.rewards.dropped = dropped

        await engine.journal.append(Statements(statements), apply)

    def _not_needed(self) -> int | None:
        """Up to which record every bandit has all the snapshots that it keeps; None if one has not.

        A bandit that is quarantined may need everything since it was created.
        """
        registry, kept = self._engine.registry, self._engine.settings.snapshots_kept
        if not registry.bandits or any(len(one.snapshots) < kept for one in registry.bandits.values()):
            return None
        taken = [bandit.snapshots[0].seq for bandit in registry.bandits.values()]
        return min(
            *taken, *(one.number for one in registry.quarantined.values()), self._engine.journal.applied
        )

    async def _purge_deleted(self) -> None:
        """Remove what is left of a deleted bandit, a stretch of the journal a round."""
        engine = self._engine
        if not engine.registry.deleted:
            return
        number = engine.registry.deleted[0]
        start, end = max(self._purged.get(number, 0), number), engine.journal.applied
        if start <= end:
            self._purged[number] = start + _STRETCH
            statements = tuple(
                table.delete().where(
                    table.c.seq.between(start, start + _STRETCH - 1), table.c.bandit == number
                )
                for table in _OF_A_BANDIT
            )
            await engine.journal.append(Statements(statements), lambda _: None)
            return
        gone = tables.bandits.delete().where(tables.bandits.c.id == number)
        arms = tables.arms.delete().where(tables.arms.c.bandit == number)  # put while it was being deleted
        engine.snapshots.delete(number)
        await engine.journal.append(
            Statements((arms, gone)), lambda _: engine.registry.deleted.remove(number)
        )
        self._purged.pop(number, None)
        self._has_free_space = True

    async def _give_back_space(self) -> None:
        """After a bandit was deleted: make the file shorter, a piece a round."""
        if self._has_free_space:
            shrink = self._engine.database.give_back_space
            self._has_free_space = await asyncio.get_running_loop().run_in_executor(None, shrink)
