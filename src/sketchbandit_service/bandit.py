"""One bandit in memory: its policy, its open decisions and its counters.

Only records of the journal change a bandit, through ``book``, both live and in a replay. So a bandit that was
killed and one that was not are the same. The only exception are the arms that a warm-up has seen. The next
scaling depends on them, and that scaling is a record again.

``book`` counts at once. What the policy has to learn may take long. It is done later in the bandit's queue
(its lane), in the same order.
"""

import weakref
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, cast
from zlib import crc32

import numpy as np

from sketchbandit.policy import PerAction
from sketchbandit_service.accounts import Accounts, SavedAccounts
from sketchbandit_service.arm_store import ArmStore
from sketchbandit_service.candidate import Candidate
from sketchbandit_service.candidate_value import Valued
from sketchbandit_service.config import BanditConfig
from sketchbandit_service.costs import rescale_cost
from sketchbandit_service.describing import Stored
from sketchbandit_service.origin import Origin
from sketchbandit_service.policy_set import Learning, PolicySet, owned
from sketchbandit_service.problems import Busy
from sketchbandit_service.storage import tables
from sketchbandit_service.storage.records import (
    ADDED,
    PROMOTED,
    ActionRow,
    CandidateRow,
    ChanceRow,
    DecisionRow,
    EstimateRow,
    RewardRow,
    Row,
    ScalingRow,
)
from sketchbandit_service.storage.snapshots import Snapshot
from sketchbandit_service.vectors import encode

Last = dict[str, tuple[int, str | float]]
"""The last decision and the last reward, by table: the record, and its tag or its time."""

_COPY_CALLS, _COPY_BYTE = 3e-4, 1e-9  # seconds to copy a policy: per model, and per byte
_RESCALE = 1e-4  # seconds per model to apply another scaling
_LOOKED_AT = 1_000_000  # numbers that may be read to see which stored arms were never tried
_OVERHEAD = 800  # bytes of a waiting arm without its features


class Snapshotted(NamedTuple):
    """What is remembered of a snapshot: the records that a restart from it needs."""

    seq: int
    waiting: frozenset[int]
    """Decisions that were open at that time, by their first rows."""
    at: float
    learned: int


class Promoted(NamedTuple):
    """The candidate that was promoted, and when."""

    name: str
    at: float


def _weakly(method: Callable[[float], float]) -> Callable[[float], float]:
    """The same method, without keeping its object alive: a deleted bandit frees its memory at once."""
    reference = weakref.WeakMethod(method)

    def call(now: float) -> float:
        found = reference()
        return now if found is None else found(now)

    return call


class Bandit(PolicySet):
    """A named bandit."""

    def __init__(
        self, number: int, name: str, config: BanditConfig, *, created: float, source: str | None = None
    ) -> None:
        super().__init__(config)
        self.number = number
        self.name = name
        self.original = config
        """The settings it was created with."""
        self.created = created
        self.origin = None if source is None else Origin.from_json(source)
        """The log that it learned from when it was created, if any."""
        self.promoted: Promoted | None = None
        """The last promotion, if the settings come from one."""
        self.arms = ArmStore()
        self.open: dict[int, dict[int, DecisionRow]] = {}
        """Open decisions: the arms that wait for a reward, by position, for each first row."""
        self.open_bytes = 0
        self.on_the_way = 0
        """Decisions that wait for their commit."""
        self.bytes_on_the_way = 0
        self.keys: dict[str, tuple[int, str]] = {}
        """Idempotency keys of open decisions: the decision, and a digest of the request."""
        self.accounts = Accounts(config, created, _weakly(self._settled))
        self.last: Last = {}
        """Shows whether a snapshot belongs to this journal, and not to another one that began alike."""
        self.failed: Exception | None = None
        """The error at a record that could not be learned.

        From then on the policy differs from the journal.
        """
        self.snapshots: deque[Snapshotted] = deque()
        """Snapshots written by this process, the newest last."""

    @property
    def stored(self) -> Stored | None:
        """The stored arms, if they are few and the last decisions among them had no context."""
        arms, recent = self.arms, self.accounts.recent.copy()
        if not 0 < len(arms) * self.shape.width_numbers <= _LOOKED_AT:
            return None
        known = [
            (one.arm_id, one.features) for one in recent if one.arm_id is not None and one.arm_id in arms
        ]
        if not known or any(crc32(encode(arms.row(arm))) != features for arm, features in known):
            return None
        return Stored(arms.ids(), arms.choose_from(None).matrix)

    # -- bounds ---------------------------------------------------------------------------------------

    def admit(self) -> None:
        """Refuse a decision if too many are open."""
        held = len(self.open) + self.on_the_way
        if held >= self.config.max_open:
            raise Busy(
                f"{held} decisions of {self.name!r} wait for their reward, and its max_open is "
                f"{self.config.max_open}; send rewards, or wait until old decisions expire"
            )

    def pending_added(self, held: int) -> None:
        """Note a decision that waits for its commit, and the bytes of its features."""
        self.on_the_way += 1
        self.bytes_on_the_way += held

    def pending_removed(self, held: int) -> None:
        """Note that it is committed, or failed."""
        self.on_the_way -= 1
        self.bytes_on_the_way -= held

    # -- records of the journal -----------------------------------------------------------------------

    def book(self, row: Row) -> Learning | None:
        """Count a committed record. Returns what the policy still has to learn, for the caller to do."""
        if isinstance(row, RewardRow):
            return self._closed(row)
        if isinstance(row, ActionRow):
            return self._changed(row)
        if isinstance(row, ScalingRow):
            return partial(self._scale, row)
        if isinstance(row, CandidateRow):
            return self._changed_candidates(row)
        if isinstance(row, ChanceRow):
            self.shadows.judged(row, self._waits_for_first)
        elif isinstance(row, DecisionRow):
            self._opened(row)
        else:
            self._estimated(row)
        return None

    def _opened(self, row: DecisionRow) -> None:
        """Note a shown arm: a committed decision, or a further arm of its slate."""
        self.last[tables.decisions.name] = (row.seq, row.tag)
        self.reopen(row)
        self.accounts.opened(row)

    def reopen(self, row: DecisionRow) -> None:
        """Note an arm that was counted before a snapshot and still waits for its reward."""
        kept = row if row.top is None and row.arms is None else row._replace(top=None, arms=None)  # large
        self.open.setdefault(row.first, {})[row.position] = kept
        self.open_bytes += waiting_bytes(row)
        if row.key is not None and row.request is not None:
            self.keys[row.key] = (row.first, row.request)

    def _closed(self, row: RewardRow) -> Learning | None:
        """Note a committed reward, or the default in its place."""
        self.last[tables.rewards.name] = (row.seq, row.at)
        first = row.decision - row.position
        waiting = self.open[first]
        shown = waiting.pop(row.position)
        self.open_bytes -= waiting_bytes(shown)
        if not waiting:
            del self.open[first]
            if shown.key is not None:
                self.keys.pop(shown.key, None)
        self.accounts.closed(row, shown)
        if self.shadows:
            if row.position == 0:
                counts_at = row.at if self.config.reward_timeout is None else self.deadline(shown.at)
                self.shadows.rewarded(first, counts_at, row.reward, shown.propensity)
            self.shadows.release(row.at, self._settled)
        return None if row.reward is None else partial(self._learn, shown, row.reward, [*self.shadows])

    def _estimated(self, row: EstimateRow) -> None:
        """Note a committed propensity, which may come before the reward or after it."""
        if (shown := self.open.get(row.decision, {}).get(0)) is not None:
            self.open[row.decision][0] = shown._replace(propensity=row.propensity)
        self.accounts.estimated(row)
        self.shadows.estimated(row.decision, row.propensity)

    def _waits_for_first(self, first: int) -> bool:
        """Whether the first arm of a decision waits for its reward."""
        return 0 in self.open.get(first, ())

    def valued(self, candidate: Candidate, now: float) -> Valued | None:
        """What a candidate would have earned by now."""
        return candidate.valued(now, self._settled)

    def _settled(self, now: float) -> float:
        """The time up to which no open decision is due. A later one may still get its default."""
        oldest = next(iter(self.open.values()), None)
        return now if oldest is None else min(now, self.deadline(_time_of(oldest)))

    def _changed(self, row: ActionRow) -> Learning | None:
        """Note an action that was added or retired. Nothing changes if it was so already."""
        is_added = row.change == ADDED
        if self._is_offered.get(row.action, False) == is_added:
            return None
        self._is_offered[row.action] = is_added
        return partial(self._add if is_added else self._retire, row.action, [*self.shadows])

    def _changed_candidates(self, row: CandidateRow) -> Learning | None:
        """Note a candidate that was added, removed or promoted."""
        self._has_news = True
        if row.change == ADDED:
            return self.shadows.added(row, self.config, self._is_offered)
        candidate = self.shadows.removed(row.name)
        if candidate is None or row.change != PROMOTED:
            return None
        kept = self.shadows.keep(row, candidate, self.config)
        self.promoted = Promoted(row.name, row.at)
        self._decides_by(candidate.config)
        return partial(self._promote, candidate, kept)

    @property
    def longest_id(self) -> int:
        """Bytes of the longest arm id or action name."""
        return max([self.arms.longest_id, *(len(action.encode()) for action in self._is_offered)])

    def seconds_for(self, row: Row) -> float:
        """How long the policy may need to learn from a record."""
        if isinstance(row, ScalingRow):
            return rescale_cost(self.shape, self.accounts.totals.learned) + _RESCALE * (self._models - 1)
        return self._learn_seconds + self.shadows.seconds

    # -- time -----------------------------------------------------------------------------------------

    def deadline(self, at: float) -> float:
        """When a decision made at that time expires."""
        timeout = self.config.reward_timeout
        return float("inf") if timeout is None else at + timeout

    def overdue(self, now: float, most: int) -> list[tuple[int, int]]:
        """Arms whose time is over, the oldest first: the first row of the decision, and the position."""
        found: list[tuple[int, int]] = []
        for first, waiting in self.open.items():  # in the order of the journal, which is that of time
            if self.deadline(_time_of(waiting)) > now or len(found) >= most:
                break
            found.extend((first, position) for position in waiting)
        return found

    # -- snapshots ------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Everything but the policy.

        Only the numbers of open decisions are in it; the journal has the rest.
        """
        waiting = [first + place for first, shown in self.open.items() for place in shown]
        return {
            "bandit": [self.number, self.created],
            "open": np.array(waiting, dtype=np.int64),
            "last": dict(self.last),
            **self.accounts.dump(),
            **({} if self.promoted is None else {"promoted": [*self.promoted, self.config.to_json()]}),
            **self.shadows.dump(),
        }

    async def snapshot(self, seq: int) -> Snapshot:
        """The bandit after the record ``seq``, the last one booked. The snapshot shares nothing with it."""
        state, shadows = self.state(), [*self.shadows]
        known = [self.about(), *(one.about for one in shadows if one.about is not None)]
        seconds = _COPY_CALLS * self._models + _COPY_BYTE * sum(one.nbytes for one in known)
        policy, candidates, refused = await self.lane.do(partial(self._copied, shadows), seconds)
        for saved, count in zip(state.get("candidates", ()), refused, strict=True):
            saved["refused"] = count
        return Snapshot(seq, policy, state, candidates)

    def owns(self, snapshot: Snapshot) -> bool:
        """Whether a snapshot belongs to this bandit, not to an earlier one with the same number."""
        return bool(snapshot.state.get("bandit") == [self.number, self.created])

    def restore(self, snapshot: Snapshot) -> None:
        """Go back to a snapshot. Open decisions come from the journal."""
        self.policy, state = owned(snapshot.policy), snapshot.state
        if "promoted" in state:
            *promoted, config = state["promoted"]
            self.promoted = Promoted(*promoted)
            self._decides_by(BanditConfig.from_json(config))
        self.shadows.undump(state, snapshot.candidates, self.config)
        if isinstance(self.policy, PerAction):
            offered = set(self.policy.actions)
            self._is_offered = {str(action): action in offered for action in self.policy.policies}
        self.accounts.undump(cast("SavedAccounts", state))
        self.last = {name: tuple(last) for name, last in state.get("last", {}).items()}


def waiting_bytes(row: DecisionRow) -> int:
    """The approximate memory of an arm while it waits."""
    return len(row.features) + _OVERHEAD


def _time_of(waiting: dict[int, DecisionRow]) -> float:
    return next(iter(waiting.values())).at
