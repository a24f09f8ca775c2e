"""Changes what a bandit chooses from: its stored arms, and its actions."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import count, islice

import sqlalchemy as sa

from sketchbandit_service.arm_store import ArmStore
from sketchbandit_service.bandit import Bandit
from sketchbandit_service.journal import Journal
from sketchbandit_service.ordering import SingleFlight, Threads
from sketchbandit_service.problems import Invalid, NotFound, Problem, TooLarge
from sketchbandit_service.promotions import check_together
from sketchbandit_service.registry import Registry
from sketchbandit_service.settings import Limits
from sketchbandit_service.storage import tables
from sketchbandit_service.storage.records import ADDED, RETIRED, ActionRow, ArmRow, Statements
from sketchbandit_service.types import Matrix
from sketchbandit_service.vectors import encode_rows, nbytes

_MOST_ARMS, _MOST_BYTES = 500, 1 << 20  # most that is stored in one commit; others wait for the commit


class Stock:
    """Changes stored arms and actions, one change per bandit at a time."""

    def __init__(self, registry: Registry, journal: Journal, threads: Threads, limits: Limits) -> None:
        self._registry = registry
        self._journal = journal
        self._threads = threads
        self._limits = limits
        self._changing: SingleFlight[int] = SingleFlight()
        self._copying = asyncio.Lock()
        """A change copies all stored arms of its bandit. Only one runs at a time, to bound the memory."""

    # -- stored arms ------------------------------------------------------------------------------------

    async def put_arms(self, bandit: Bandit, ids: Sequence[str], matrix: Matrix) -> int:
        """Store arms under their ids, replacing known ones. Returns how many are stored now.

        Many arms are stored in several commits, so nobody waits long for them. If the server stops half-way,
        some arms are stored, but nothing was acknowledged. Sending the same request again is safe.
        """
        self._registry.check(bandit)  # the arms were read for the dimension of this bandit
        if bandit.config.actions is not None:
            raise Invalid(f"bandit {bandit.name!r} has actions, not arms; POST new actions to /actions")
        await self._changing.over(bandit.number)
        storing = asyncio.ensure_future(self._put_arms(bandit, ids, matrix))
        self._changing.add(bandit.number, storing)
        return await asyncio.shield(storing)

    async def _put_arms(self, bandit: Bandit, ids: Sequence[str], matrix: Matrix) -> int:
        made = await self._copied(self._with_arms, bandit, ids, matrix)
        place = self._journal.new_number() * self._limits.arms  # arms stay in the order in which they came
        rows = zip(count(place), ids, encode_rows(matrix), strict=False)
        most = max(1, min(_MOST_ARMS, _MOST_BYTES * len(ids) // max(nbytes(matrix), 1)))
        written = 0
        try:
            while some := await self._threads.run(_next_rows, bandit.number, rows, most):
                await self._journal.append(
                    self._arms_changed(bandit, arms=some), partial(self._still, bandit)
                )
                written += len(some)
        except Problem:
            if written:  # offer what is in the journal, as after a restart
                bandit.arms = await self._copied(bandit.arms.with_arms, ids[:written], matrix[:written])
            raise
        bandit.arms = made
        return len(made)

    def _with_arms(self, bandit: Bandit, ids: Sequence[str], matrix: Matrix) -> ArmStore:
        """The arms as they will be. Too many arms are refused before anything is copied."""
        limits, new = self._limits, sum(arm not in bandit.arms for arm in ids)
        if (together := len(bandit.arms) + new) > limits.arms:
            raise TooLarge(f"{together} arms; a bandit stores up to {limits.arms}; delete some first")
        needed = bandit.arms.nbytes + nbytes(matrix) if new == len(ids) else 0
        if (
            needed > limits.bandit_bytes
            or (made := bandit.arms.with_arms(ids, matrix)).nbytes > limits.bandit_bytes
        ):
            raise TooLarge(f"the arms of {bandit.name!r} would take more than {limits.bandit_bytes} bytes")
        return made

    async def _copied(self, work: Callable[..., ArmStore], *args: object) -> ArmStore:
        async with self._copying:
            return await self._threads.run(work, *args)

    async def remove_arms(self, bandit: Bandit, arms: Sequence[str]) -> None:
        """Delete stored arms. Their decisions stay open."""
        await self._changing.over(bandit.number)
        for arm in arms:
            if arm not in bandit.arms:
                raise NotFound(f"bandit {bandit.name!r} has no stored arm {arm!r}")
        storing = asyncio.ensure_future(self._remove_arms(bandit, arms))
        self._changing.add(bandit.number, storing)
        await asyncio.shield(storing)

    async def _remove_arms(self, bandit: Bandit, arms: Sequence[str]) -> None:
        table, left = tables.arms, iter(arms)
        made = await self._copied(bandit.arms.without, arms)
        while some := tuple(islice(left, _MOST_ARMS)):
            where = (table.c.bandit == bandit.number) & table.c.arm.in_(some)
            deleting = self._arms_changed(bandit, table.delete().where(where))
            await self._journal.append(deleting, partial(self._still, bandit))
        bandit.arms = made

    def _still(self, bandit: Bandit, _: Statements) -> None:
        self._registry.check(bandit)

    @staticmethod
    def _arms_changed(
        bandit: Bandit, *statements: sa.Executable, arms: tuple[ArmRow, ...] = ()
    ) -> Statements:
        """The statements of a change, with a new version.

        A standby sees by it that stored arms have changed.
        """
        table = tables.bandits
        counted = (
            table.update().where(table.c.id == bandit.number).values(arms_version=table.c.arms_version + 1)
        )
        return Statements((*statements, counted), arms)

    # -- actions ----------------------------------------------------------------------------------------

    async def add_actions(self, bandit: Bandit, actions: Sequence[str]) -> None:
        """Offer new actions, or offer retired actions again. Offered actions stay as they are."""
        _check_has_actions(bandit)
        await self._changing.over(bandit.number)
        offered = set(bandit.actions)
        check_together(bandit, self._limits, models=len({*offered, *bandit.retired, *actions}))
        await self._change(bandit, [name for name in actions if name not in offered], ADDED)

    async def retire_actions(self, bandit: Bandit, actions: Sequence[str]) -> None:
        """Stop offering actions. Their decisions stay open, and their models learn from late rewards.

        Retiring an action again is no error: a client that got no answer asks again.
        """
        _check_has_actions(bandit)
        await self._changing.over(bandit.number)
        offered, retired = set(bandit.actions), set(bandit.retired)
        for action in actions:
            if action not in offered and action not in retired:
                raise NotFound(
                    f"the action {action!r} cannot be retired: bandit {bandit.name!r} has no such action"
                )
        await self._change(bandit, [action for action in actions if action in offered], RETIRED)

    async def _change(self, bandit: Bandit, actions: Sequence[str], change: str) -> None:
        self._registry.check(bandit)
        self._journal.admit(len(actions))
        rows = [ActionRow(0, bandit.number, action, change) for action in dict.fromkeys(actions)]
        take = partial(self._registry.apply, bandit)
        future = asyncio.gather(*(self._journal.append(row, take) for row in rows))
        self._changing.add(bandit.number, future)
        await future


def _check_has_actions(bandit: Bandit) -> None:
    if bandit.config.actions is None:
        raise Invalid(f"bandit {bandit.name!r} was created without actions; it chooses among arms")


def _next_rows(bandit: int, rows: Iterator[tuple[int, str, bytes]], most: int) -> tuple[ArmRow, ...]:
    """The next rows for the table of stored arms."""
    return tuple(ArmRow(bandit, arm, place, features) for place, arm, features in islice(rows, most))
