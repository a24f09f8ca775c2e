"""One bandit in memory: its policy, its open decisions, what it counts.

Everything here is changed by records of the journal alone, through ``opened``, ``closed`` and the like, live
and in a replay, so that a bandit that was killed and one that was not are the same; but for the arms that a
warm-up has looked at, from which the next scaling will follow, a record too.
"""

import copy
from collections import deque
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from sketchbandit.errors import SketchTooSmallWarning
from sketchbandit.service.arm_store import ArmStore
from sketchbandit.service.comparing import Unweighed
from sketchbandit.service.config import ESTIMATE, BanditConfig
from sketchbandit.service.held_back import HeldBack
from sketchbandit.service.history import Bucket, Meter
from sketchbandit.service.open_decisions import OpenDecision, Shown, held_bytes
from sketchbandit.service.problems import Busy
from sketchbandit.service.recent_arms import RecentArms, arm_name
from sketchbandit.service.scaling_bytes import decode
from sketchbandit.service.storage.records import (
    ADDED,
    DEFAULT,
    RETIRED,
    ActionRow,
    DecisionRow,
    EstimateRow,
    RewardRow,
    ScalingRow,
)
from sketchbandit.service.storage.snapshots import Snapshot
from sketchbandit.service.timeline import Timeline, View
from sketchbandit.service.vectors import Vector

_MOST_UNWEIGHED = 1000


@dataclass
class Totals:
    """Counters over the whole life of a bandit."""

    decisions: int = 0
    rewards: int = 0
    defaults: int = 0
    reward_sum: float = 0.0


class Snapshotted(NamedTuple):
    """What is remembered of a snapshot: which records a restart from it would need."""

    seq: int
    oldest_open: int
    at: float
    rounds: int


def _owned(policy: Any) -> Any:
    """It scales nothing by itself: scalings are records."""
    policy._scales_itself = False
    return policy


class Bandit:
    """A named bandit."""

    def __init__(self, number: int, name: str, config: BanditConfig, *, created: float) -> None:
        self.number = number
        self.name = name
        self.config = config
        self.created = created
        self.policy = _owned(config.build())
        self.arms = ArmStore()
        self.open: dict[int, OpenDecision] = {}
        self.open_bytes = 0
        self.on_the_way = 0
        """Decisions whose commit is awaited."""
        self.bytes_on_the_way = 0
        self.keys: dict[str, tuple[int, str]] = {}
        """Idempotency keys of open decisions: which decision, and a digest of the request."""
        self.meter = Meter()
        self.totals = Totals()
        self.timeline = Timeline(created)
        self.held = HeldBack(config.reward_timeout or 0.0)
        """What is not yet in the timeline: decisions are compared when the time for their reward is over."""
        self.unweighed: dict[int, Unweighed] = {}
        """Rewards that came before the estimate of their probability."""
        self.recent = RecentArms()
        self.snapshots: deque[Snapshotted] = deque()
        """Those written by this process, the newest last."""

    # -- bounds ---------------------------------------------------------------------------------------

    def admit(self) -> None:
        """Refuse a decision beyond the bound on open ones."""
        held = len(self.open) + self.on_the_way
        if held >= self.config.max_open:
            raise Busy(
                f"{held} decisions of {self.name!r} wait for their reward, and its max_open is "
                f"{self.config.max_open}: send rewards, or wait until old decisions expire"
            )

    def pending_added(self, held: int) -> None:
        """A decision waits for its commit, and its features take so many bytes."""
        self.on_the_way += 1
        self.bytes_on_the_way += held

    def pending_removed(self, held: int) -> None:
        """It is committed, or failed."""
        self.on_the_way -= 1
        self.bytes_on_the_way -= held

    # -- records of the journal -----------------------------------------------------------------------

    def opened(self, row: DecisionRow, features: Vector) -> None:
        """An arm was shown: a decision was committed, or a further arm of its slate."""
        self.reopened(row, features)
        self.timeline.showed(row.at, arm_name(row))
        if row.position == 0:
            self.totals.decisions += 1
            self.timeline.add(row.at, Bucket(decisions=1, width_sum=row.width or 0.0))
            self.meter.count(row.at)
            self._release(row.at)

    def reopened(self, row: DecisionRow, features: Vector) -> None:
        """An arm that was counted before a snapshot, and still waits for its reward."""
        first = row.seq - row.position
        decision = self.open.setdefault(first, OpenDecision.of(row))
        decision.waiting[row.position] = Shown(row.arm_id, features)
        self.open_bytes += held_bytes(features)
        if row.key is not None and row.request is not None:
            self.keys[row.key] = (first, row.request)
        self.recent.showed(row)

    def closed(self, row: RewardRow) -> None:
        """A reward was committed, or the default in its place: learn from it."""
        first = row.decision - row.position
        decision = self.open[first]
        shown = decision.waiting.pop(row.position)
        self.open_bytes -= held_bytes(shown.features)
        if not decision.waiting:
            del self.open[first]
            if decision.key is not None:
                self.keys.pop(decision.key, None)
        if row.kind == DEFAULT:
            self.totals.defaults += 1
        else:
            self.totals.rewards += 1
        if row.reward is not None:
            self.totals.reward_sum += row.reward
            self.timeline.add(row.at, Bucket(rewards=1, reward_sum=row.reward))
            if row.position == 0:
                counts_at = row.at if self.config.reward_timeout is None else self.deadline(decision.at)
                rewarded = Unweighed(counts_at, row.reward, decision.arm_count)
                self._compare(first, rewarded, decision.propensity)
            with suppress(SketchTooSmallWarning):  # it comes when all is learned; health() keeps saying it
                self._learn(shown, row.reward)
        self._release(row.at)
        self.recent.rewarded(row)

    def estimated(self, row: EstimateRow) -> None:
        """A probability was committed, before the reward or after it."""
        if (decision := self.open.get(row.decision)) is not None:
            decision.propensity = row.propensity
        if (rewarded := self.unweighed.pop(row.decision, None)) is not None:
            self._compare(row.decision, rewarded, row.propensity)
        self.recent.estimated(row)

    def _compare(self, first: int, rewarded: Unweighed, propensity: float) -> None:
        """Count what a uniform choice would have earned by a reward, now or when the probability is known."""
        if propensity:
            takes = self.timeline if self.config.reward_timeout is None else self.held
            takes.add(rewarded.at, rewarded.weighted(propensity))
        elif self.config.propensities == ESTIMATE:
            self.unweighed[first] = rewarded
            if len(self.unweighed) > _MOST_UNWEIGHED:
                del self.unweighed[next(iter(self.unweighed))]  # the oldest

    def _release(self, now: float) -> None:
        """Count what was held back of decisions whose time is over."""
        if self.held.has_news(now):
            for at, happened in self.held.release(self._settled(now)):
                self.timeline.add(at, happened)

    def _settled(self, now: float) -> float:
        """Until when no deadline is ahead of a decision that is open: its default may not be taken yet."""
        oldest = next(iter(self.open.values()), None)
        return now if oldest is None else min(now, self.deadline(oldest.at))

    def compared(self, view: View, now: float) -> Bucket:
        """Everything in a view, with what was due since the last record."""
        due = self.held.due(self._settled(now))
        return sum((happened for at, happened in due if at > view.history.start), view.total)

    def changed(self, row: ActionRow) -> None:
        """An action was added or retired; what it is already it stays."""
        is_offered = row.action in self.policy.actions
        if row.change == ADDED and not is_offered:
            self.policy.add(row.action)
        elif row.change == RETIRED and is_offered:
            self.policy.retire(row.action)

    def scaled(self, row: ScalingRow) -> None:
        """A scaling was committed: what was learned so far is learned anew with it. The last one is fixed."""
        if self.policy.is_warming_up:
            scaling = decode(row.scaling, self.config.dim)
            self.policy.read_by(scaling, is_last=row.is_last, seen=row.arms)

    def _learn(self, shown: Shown, reward: float) -> None:
        if self.config.actions is None:
            self.policy.update(shown.features, reward)
        else:
            self.policy.update(shown.features, shown.arm, reward)

    # -- time -----------------------------------------------------------------------------------------

    def deadline(self, at: float) -> float:
        """When a decision of that time expires."""
        timeout = self.config.reward_timeout
        return float("inf") if timeout is None else at + timeout

    def overdue(self, now: float, most: int) -> list[tuple[int, int]]:
        """Arms whose time is over, the oldest first: the first row of their decision, and the position."""
        found: list[tuple[int, int]] = []
        for first, decision in self.open.items():  # in the order of the journal, so in that of time
            if self.deadline(decision.at) > now or len(found) >= most:
                break
            found.extend((first, position) for position in decision.waiting)
        return found

    # -- snapshots ------------------------------------------------------------------------------------

    def snapshot(self, seq: int) -> Snapshot:
        """The bandit after the record ``seq``, sharing nothing with it."""
        state = {
            "bandit": [self.number, self.created],
            "oldest_open": min(self.open, default=seq + 1),
            "totals": asdict(self.totals),
            "history": self.timeline.dump(),
            "held": self.held.dump(),
            "unweighed": [[first, *rewarded] for first, rewarded in self.unweighed.items()],
        }
        return Snapshot(seq, copy.deepcopy(self.policy), state)

    def owns(self, snapshot: Snapshot) -> bool:
        """Whether a snapshot is of this bandit, not of another one that had its number."""
        return bool(snapshot.state.get("bandit") == [self.number, self.created])

    def restore(self, snapshot: Snapshot) -> None:
        """Go back to a snapshot; open decisions come from the journal."""
        self.policy = _owned(snapshot.policy)
        self.totals = Totals(**snapshot.state["totals"])
        self.timeline = Timeline.undump(snapshot.state["history"])
        if "held" in snapshot.state:  # those of earlier versions do not have it
            self.held.undump(snapshot.state["held"])
        unweighed = snapshot.state.get("unweighed", [])
        self.unweighed = {first: Unweighed(*rewarded) for first, *rewarded in unweighed}
