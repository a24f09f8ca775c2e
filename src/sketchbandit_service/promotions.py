"""Adds, removes and promotes candidates of bandits."""

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial

from sketchbandit_service.bandit import Bandit
from sketchbandit_service.candidate import Candidate, settings_of
from sketchbandit_service.config import BanditConfig
from sketchbandit_service.costs import held_bytes
from sketchbandit_service.journal import Journal
from sketchbandit_service.ordering import Clock, SingleFlight, Threads
from sketchbandit_service.problems import Busy, Conflict, Invalid, NotFound, TooLarge
from sketchbandit_service.registry import Registry
from sketchbandit_service.settings import MIB, Limits
from sketchbandit_service.storage.records import ADDED, PROMOTED, REMOVED, CandidateRow
from sketchbandit_service.types import Json


class Candidates:
    """Changes candidates, one change per bandit at a time."""

    def __init__(
        self, registry: Registry, journal: Journal, threads: Threads, clock: Clock, limits: Limits
    ) -> None:
        self._registry = registry
        self._journal = journal
        self._threads = threads
        self._clock = clock
        self._limits = limits
        self._changing: SingleFlight[int] = SingleFlight()

    def get(self, bandit: Bandit, name: str) -> Candidate:
        """The candidate with this name."""
        try:
            return bandit.shadows.by_name[name]
        except KeyError:
            raise NotFound(
                f"bandit {bandit.name!r} has no candidate {name!r}; add it with PUT "
                "/v1/bandits/NAME/candidates/CANDIDATE"
            ) from None

    async def put(
        self, bandit: Bandit, name: str, settings: Mapping[str, Json], reward_range: Sequence[float]
    ) -> tuple[Candidate, bool]:
        """A candidate with this name and these settings, and whether it is new."""
        low, high = reward_range
        if not low < high:
            raise Invalid(
                f"reward_range must be [lowest, highest] with lowest < highest, got [{low}, {high}]"
            )
        config = await self._threads.run(bandit.config.with_policy(settings).checked, self._limits)
        await self._changing.over(bandit.number)
        self._registry.check(bandit)
        known = bandit.shadows.by_name.get(name)
        if known is not None:
            differing = known.config.differences(config)
            if known.reward_range != (low, high):
                differing = ", ".join([*filter(None, [differing]), f"reward_range is {known.reward_range}"])
            if differing:
                raise Conflict(
                    f"candidate {name!r} exists with other settings ({differing}); DELETE it first, or "
                    "choose another name"
                )
            return known, False
        if len(bandit.shadows) >= self._limits.candidates:
            raise Conflict(
                f"bandit {bandit.name!r} has {len(bandit.shadows)} candidates, and a bandit can have up to "
                f"{self._limits.candidates}; DELETE one first"
            )
        check_together(bandit, self._limits, new=config)
        await self._record(bandit, name, ADDED, settings=settings_of(config, reward_range))
        return self.get(bandit, name), True

    async def remove(self, bandit: Bandit, name: str) -> None:
        """Delete a candidate and all it has learned."""
        await self._changing.over(bandit.number)
        self.get(bandit, name)
        await self._record(bandit, name, REMOVED)

    async def promote(self, bandit: Bandit, name: str, keep: str | None) -> None:
        """Let the policy of a candidate decide. The old policy becomes the candidate ``keep``.

        Promoting the candidate that was promoted last is no error: a client that got no answer asks again.
        """
        await bandit.lane.over()  # learning may end a warm-up
        await self._changing.over(bandit.number)
        self._registry.check(bandit)
        known = bandit.shadows.by_name
        if bandit.promoted is not None and bandit.promoted.name == name and name not in known:
            return
        candidate = self.get(bandit, name)
        if keep in known:
            raise Conflict(
                f"bandit {bandit.name!r} already has a candidate {keep!r}; choose another name to keep"
            )
        if not candidate.is_made:
            raise Busy(f"candidate {name!r} is still being made; try again in a moment")
        if candidate.policy.is_warming_up:
            raise Conflict(
                f"candidate {name!r} is warming up: it learns its scaling from the first requests, and has "
                f"seen {candidate.policy.requests_seen} of them; promote it after the warm-up"
            )
        if keep is not None and bandit.policy.is_warming_up:
            raise Conflict(
                f"the policy of bandit {bandit.name!r} is warming up and cannot become a candidate; leave "
                "out keep, or wait"
            )
        await self._record(bandit, name, PROMOTED, kept=keep)

    async def _record(
        self, bandit: Bandit, name: str, change: str, *, settings: str | None = None, kept: str | None = None
    ) -> None:
        self._registry.check(bandit)
        row = CandidateRow(0, bandit.number, name, change, settings, kept, self._clock.now())
        future = self._journal.append(row, partial(self._registry.apply, bandit))
        self._changing.add(bandit.number, future)
        await asyncio.shield(future)


def check_together(
    bandit: Bandit, limits: Limits, *, new: BanditConfig | None = None, models: int | None = None
) -> None:
    """Refuse a candidate, or this many models of each policy, if all together may need too much memory."""
    count = models or len(bandit.known_actions) or 1
    bandit.config.check_memory(limits, count)
    shapes = [bandit.shape, *(one.shape for one in bandit.shadows), *([] if new is None else [new.shape])]
    held = sum(held_bytes(shape, count) for shape in shapes)
    if len(shapes) > 1 and held > limits.bandit_bytes:
        raise TooLarge(
            f"the policy of bandit {bandit.name!r} and {len(shapes) - 1} candidates can grow to "
            f"{held // MIB:,} MiB together, and this server allows {limits.bandit_bytes // MIB:,}; use "
            "policies with a smaller size, or start the server with a larger --max-bandit-mib"
        )
