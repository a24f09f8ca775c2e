"""New bandits that learn from the log of another bandit."""

import asyncio
import logging
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial

import sqlalchemy as sa

from sketchbandit_service.bandit import Bandit
from sketchbandit_service.config import BanditConfig
from sketchbandit_service.journal import Journal
from sketchbandit_service.origin import Origin
from sketchbandit_service.origins import Rewarded, learn_from
from sketchbandit_service.pacing import politely
from sketchbandit_service.problems import Invalid, Unavailable
from sketchbandit_service.registry import Registry
from sketchbandit_service.storage.database import Database, StorageError
from sketchbandit_service.storage.snapshots import Snapshot, SnapshotStore

log = logging.getLogger(__name__)


class Creation:
    """Creates bandits, empty or from a log."""

    def __init__(
        self, registry: Registry, journal: Journal, database: Database, snapshots: SnapshotStore
    ) -> None:
        self._registry = registry
        self._journal = journal
        self._database = database
        self._snapshots = snapshots

    async def create(self, name: str, config: BanditConfig, origin: str | None) -> tuple[Bandit, bool]:
        """A bandit with this name and these settings, and whether it is new.

        ``origin`` is another bandit. A new one learns from its log before it decides anything.
        """
        if origin is None:
            return await self._registry.create(name, config)
        if (known := self._registry.bandits.get(name)) is not None:
            same = replace(config, actions=known.original.actions) if config.actions is None else config
            return await self._registry.create(name, same, origin=origin)
        before = self._registry.get(origin)
        if config.dim != before.config.dim:
            raise Invalid(
                f"dim is {config.dim}, but {origin!r}, whose log it learns from, has dim {before.config.dim}"
            )
        if config.actions is not None:
            raise Invalid(f"leave out actions; they are taken from {origin!r}, whose log is learned from")
        if before.config.actions is not None:
            config = replace(config, actions=before.known_actions)
        return await self._registry.create(name, config, origin=origin, learn=partial(self._learn, before))

    def _while_open(self, items: Iterable[Rewarded]) -> Iterator[Rewarded]:
        """The items, with pauses for other work. A server that stops does not wait for the rest."""
        for item in politely(items):
            if self._journal.is_closing:
                raise Unavailable("the server is shutting down; try again in a moment")
            yield item

    async def _learn(self, before: Bandit, bandit: Bandit) -> None:
        """Learn from the whole log up to now. A snapshot is written before the bandit exists."""
        booked = before.accounts.rewarded
        origin = Origin(before.number, before.name, self._journal.applied, retired=tuple(before.retired))

        def read(connection: sa.Connection) -> int:
            return learn_from(connection, bandit, origin, self._while_open)

        try:
            found = await asyncio.to_thread(self._database.read, read)
        except StorageError as error:
            raise Unavailable(str(error)) from error
        self._registry.check(before)  # it may have been deleted, and its rows with it
        bandit.origin = origin._replace(rewards=found, dropped=booked - found)
        if booked > found:
            extra = {"bandit": bandit.name, "from": before.name, "dropped": booked - found}
            log.warning(
                "some rewards of the log were dropped, so a new bandit did not learn from them", extra=extra
            )
        snapshot = Snapshot(bandit.number, bandit.policy, bandit.state())
        await asyncio.to_thread(self._snapshots.write, bandit.number, snapshot)
        bandit.look()
