"""What happens by itself: decisions expire, snapshots are written, old and deleted rows go."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import sqlalchemy as sa

from sketchbandit.service.bandit import Bandit, Snapshotted
from sketchbandit.service.engine import Engine
from sketchbandit.service.problems import Problem
from sketchbandit.service.recovery import snapshot_folder
from sketchbandit.service.storage import tables
from sketchbandit.service.storage.records import DEFAULT, Statements

log = logging.getLogger(__name__)

_EVERY = 0.5
_MOST_EXPIRED = 500
_MOST_DROPPED = 2000
_STRETCH = 20_000
_OF_A_BANDIT = (tables.decisions, tables.rewards, tables.estimates, tables.actions, tables.scalings)
_JOURNAL_AHEAD = 500_000  # records that a restart reads at most, for a bandit that nobody uses


@asynccontextmanager
async def running(engine: Engine) -> AsyncIterator["Upkeep"]:
    """An engine from its start to its end: everything committed, a last snapshot of what has changed."""
    await engine.start()
    upkeep = Upkeep(engine)
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
        for bandit in list(self._engine.registry.bandits.values()):
            while await self.expire(bandit):
                pass
        for bandit in list(self._engine.registry.bandits.values()):
            if self._wants_snapshot(bandit):
                await self.snapshot(bandit)
        await self._drop_old()
        await self._purge_deleted()

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
        last = bandit.snapshots[-1] if bandit.snapshots else Snapshotted(bandit.number, 0, bandit.created, 0)
        age = self._engine.clock.now() - last.at
        learned = bandit.told().rounds - last.rounds
        if learned >= settings.snapshot_updates or applied - last.seq >= _JOURNAL_AHEAD:
            return True
        if settings.retention_seconds is not None and applied > last.seq:
            return age >= min(settings.snapshot_seconds, settings.retention_seconds / 4)
        return learned > 0 and age >= settings.snapshot_seconds

    async def snapshot(self, bandit: Bandit) -> None:
        """Write the bandit to a file; the loop waits only while memory is copied."""
        engine = self._engine
        snapshot = await bandit.snapshot(engine.journal.applied)
        folder = snapshot_folder(engine.settings.state, bandit.number, engine.settings.snapshots_kept)
        try:
            await asyncio.get_running_loop().run_in_executor(None, folder.write, snapshot)
        except OSError as error:
            log.error("a snapshot could not be written", extra={"bandit": bandit.name, "reason": str(error)})
            return
        if engine.registry.bandits.get(bandit.name) is not bandit:
            folder.delete()  # it was deleted meanwhile
            return
        oldest_open = int(snapshot.state["oldest_open"])
        rounds = snapshot.policy.rounds
        bandit.snapshots.append(Snapshotted(snapshot.seq, oldest_open, engine.clock.now(), rounds))
        while len(bandit.snapshots) > engine.settings.snapshots_kept:
            bandit.snapshots.popleft()

    async def snapshot_all(self) -> None:
        """At shutdown: whatever has changed."""
        for bandit in list(self._engine.registry.bandits.values()):
            if not bandit.snapshots or bandit.snapshots[-1].seq < self._engine.journal.applied:
                await self.snapshot(bandit)

    # -- rows that nobody needs -----------------------------------------------------------------------

    async def _drop_old(self) -> None:
        """Drop answered decisions that are older than the retention and that no kept snapshot needs."""
        engine, retention = self._engine, self._engine.settings.retention_seconds
        if retention is None or not engine.registry.bandits:
            return
        bound = engine.journal.applied
        for bandit in engine.registry.bandits.values():
            if len(bandit.snapshots) < engine.settings.snapshots_kept:
                return
            bound = min(bound, bandit.snapshots[0].oldest_open)
        d, cutoff = tables.decisions, engine.clock.now() - retention
        first = sa.select(d.c.seq, d.c.at).where(d.c.seq < bound).order_by(d.c.seq).limit(_MOST_DROPPED)
        some = first.subquery()
        query = sa.select(sa.func.max(some.c.seq)).where(some.c.at < cutoff)
        last = await engine.journal.read(lambda connection: connection.execute(query).scalar())
        if last is None:
            return
        r, e, s = tables.rewards, tables.estimates, tables.service
        statements = (
            d.delete().where(d.c.seq <= last),
            r.delete().where(r.c.decision <= last),
            e.delete().where(e.c.decision <= last),
            s.update().values(dropped=last + 1),
        )

        def apply(_: Statements) -> None:
            engine.rewards.dropped = last + 1

        await engine.journal.append(Statements(statements), apply)

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
        snapshot_folder(engine.settings.state, number).delete()
        await engine.journal.append(
            Statements((arms, gone)), lambda _: engine.registry.deleted.remove(number)
        )
        self._purged.pop(number, None)
