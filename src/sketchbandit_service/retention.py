"""Removes rows that nobody needs any more: old ones, and those of deleted bandits."""

import asyncio
import logging
from itertools import takewhile

import sqlalchemy as sa

from sketchbandit_service.engine import Engine
from sketchbandit_service.storage import tables
from sketchbandit_service.storage.checksums import ROWS
from sketchbandit_service.storage.database import StorageError
from sketchbandit_service.storage.records import Statements

log = logging.getLogger(__name__)

_MOST_DROPPED = 2000
_STRETCH = 20_000


class Retention:
    """Removes such rows, some at a time."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._swept = 0
        """The record from which old rows are looked for."""
        self._purged: dict[int, int] = {}
        """For deleted bandits: the record up to which their rows are removed."""
        self._has_free_space = False

    async def round(self) -> None:
        """Do some of everything."""
        await self.drop_old()
        await self.purge_deleted()
        await self.give_back_space()

    async def drop_old(self) -> None:
        """Drop decisions older than the retention that no kept snapshot needs, about 2,000 rows per round.

        Waiting decisions, now or in a kept snapshot, stay. They are checked again in later rounds, and go
        once they are answered.
        """
        engine, retention = self._engine, self._engine.settings.retention_seconds
        if retention is None or (bound := self._not_needed()) is None:
            return
        waiting = {bandit.number: bandit.snapshots[0].waiting for bandit in engine.registry.bandits.values()}
        d, start, cutoff = tables.decisions, self._swept, engine.clock.now() - retention
        first = sa.func.coalesce(d.c.slate, d.c.seq).label("first")
        query = sa.select(d.c.seq, d.c.bandit, d.c.at, first).where(d.c.seq.between(start, bound))
        query = query.order_by(d.c.seq).limit(_MOST_DROPPED)  # only seq has an index
        rows = await engine.journal.read(lambda connection: connection.execute(query).all())
        old = list(takewhile(lambda row: row.at < cutoff, rows))
        self._swept = old[-1].seq + 1 if len(old) == _MOST_DROPPED else 0
        doomed = [row.seq for row in old if row.first not in waiting.get(row.bandit, ())]
        if not doomed:
            return
        r, e, c, s = tables.rewards, tables.estimates, tables.chances, tables.service
        dropped = max(engine.rewards.dropped, doomed[-1] + 1)
        statements = (
            d.delete().where(d.c.seq.in_(doomed)),
            r.delete().where(r.c.decision.in_(doomed)),
            e.delete().where(e.c.decision.in_(doomed)),
            c.delete().where(c.c.seq < dropped),
            s.update().values(dropped=dropped),
        )

        def apply(_: Statements) -> None:
            engine.rewards.dropped = dropped

        await engine.journal.append(Statements(statements), apply)

    def _not_needed(self) -> int | None:
        """The record up to which every bandit has all the snapshots it keeps. None if one bandit has not.

        A bandit that is out of service may need everything since it was created.
        """
        registry, kept = self._engine.registry, self._engine.settings.snapshots_kept
        if not registry.bandits or any(len(one.snapshots) < kept for one in registry.bandits.values()):
            return None
        taken = [bandit.snapshots[0].seq for bandit in registry.bandits.values()]
        return min(
            *taken, *(one.number for one in registry.quarantined.values()), self._engine.journal.applied
        )

    async def purge_deleted(self) -> None:
        """Remove what is left of a deleted bandit, one part of the journal per round."""
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
                for table in ROWS
            )
            await engine.journal.append(Statements(statements), lambda _: None)
            return
        gone = tables.bandits.delete().where(tables.bandits.c.id == number)
        arms = tables.arms.delete().where(tables.arms.c.bandit == number)  # stored while it was being deleted
        await asyncio.to_thread(engine.snapshots.delete, number)
        await engine.journal.append(
            Statements((arms, gone)), lambda _: engine.registry.deleted.remove(number)
        )
        self._purged.pop(number, None)
        self._has_free_space = True

    async def give_back_space(self) -> None:
        """After a bandit was deleted, make the file shorter, a piece per round."""
        if self._has_free_space:
            try:
                self._has_free_space = await asyncio.to_thread(self._engine.database.give_back_space)
            except StorageError as error:  # the next deletion tries again
                log.warning("no space was given back", extra={"reason": str(error)})
                self._has_free_space = False
