"""Lets a new bandit learn from the log of another one."""

from collections.abc import Callable, Iterable, Iterator

import sqlalchemy as sa

from sketchbandit.errors import SketchBanditError
from sketchbandit_service.bandit import Bandit
from sketchbandit_service.origin import Origin
from sketchbandit_service.storage import tables
from sketchbandit_service.storage.checksums import LOGGED, unsealed
from sketchbandit_service.storage.records import DecisionRow, RewardRow

Rewarded = tuple[DecisionRow, float]
"""A shown arm, and its reward."""
Slowly = Callable[[Iterable[Rewarded]], Iterable[Rewarded]]
_PAGE, _MOST_BYTES = 500, 4 * 1024 * 1024  # rows and bytes read at once


def learn_from(connection: sa.Connection, bandit: Bandit, origin: Origin, slowly: Slowly = iter) -> int:
    """Let a new bandit learn from all rewards of a log, in their order. Returns how many there are.

    It is the same as calling ``update`` of its policy with every arm and reward. ``slowly`` may add pauses.
    """
    policy, count = bandit.policy, 0
    policy._scales_itself = True  # there are no records of its scalings
    for shown, reward in slowly(_rewarded(connection, bandit, origin)):
        bandit.learn_again(shown, reward)
        count += 1
    policy._scales_itself = False
    bandit.retire_all(origin.retired)
    return count


def begin(connection: sa.Connection, bandit: Bandit) -> None:
    """Learn again what a bandit learned when it was created, if that is not in its own journal."""
    origin = bandit.origin
    if origin is not None and (found := learn_from(connection, bandit, origin)) != origin.rewards:
        raise SketchBanditError(
            f"bandit {bandit.name!r} cannot be restored: it has no intact snapshot, and the journal has only "
            f"{found} of the {origin.rewards} rewards of {origin.name!r} that it began with; put its "
            "snapshots back"
        )


def _rewarded(connection: sa.Connection, bandit: Bandit, origin: Origin) -> Iterator[Rewarded]:
    """The arms of a log that have a reward, each with its reward."""
    d, r = tables.decisions, tables.rewards
    of_arm = [(sa.null() if c.name in LOGGED else c).label(f"arm_{c.name}") for c in d.columns]
    query = sa.select(*r.columns, *of_arm).join_from(r, d, d.c.seq == r.c.decision)
    query = query.where(r.c.bandit == origin.bandit, r.c.seq <= origin.until, r.c.reward.is_not(None))
    page = max(1, min(_PAGE, _MOST_BYTES // (8 * bandit.config.dim)))
    for row in tables.in_order(connection, query, r.c.seq, page):
        try:
            reward, shown = unsealed(r, row[: len(r.columns)]), unsealed(d, row[len(r.columns) :])
        except ValueError as error:
            raise SketchBanditError(
                f"the log of {origin.name!r} is damaged at record {row.seq}: {error}; `sketchbandit service "
                "check` says more"
            ) from error
        assert isinstance(reward, RewardRow)  # noqa: S101  (for the type checker)
        assert isinstance(shown, DecisionRow)  # noqa: S101
        if reward.reward is not None:
            yield shown, reward.reward
