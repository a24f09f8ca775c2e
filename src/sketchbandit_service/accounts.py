"""The counters of a bandit: for the dashboard, the metrics and the comparison with a uniform choice."""

from collections import deque
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, NotRequired, Self, TypedDict
from zlib import crc32

from sketchbandit_service.comparing import Unweighed
from sketchbandit_service.config import ESTIMATE, BanditConfig
from sketchbandit_service.held_back import HeldBack, SavedHeld
from sketchbandit_service.history import Bucket, Meter
from sketchbandit_service.storage.records import DEFAULT, DecisionRow, EstimateRow, RewardRow
from sketchbandit_service.timeline import RangeView, SavedTimeline, Timeline
from sketchbandit_service.weighted_rewards import WeightedRewards

_MOST_RECENT = 20
_MOST_UNWEIGHED = 1000

Settled = Callable[[float], float]
"""The time, at most the given one, up to which no open decision can still change its outcome."""


@dataclass
class Totals:
    """Counters over the whole life of a bandit."""

    decisions: int = 0
    rewards: int = 0
    defaults: int = 0
    reward_sum: float = 0.0

    @property
    def learned(self) -> int:
        """Rewards that were counted, including defaults."""
        return self.rewards + self.defaults


@dataclass(slots=True)
class Recent:
    """One of the arms shown last, for the dashboard, and its outcome."""

    seq: int
    position: int
    tag: str
    at: float
    arm: str
    arm_count: int
    score: float
    width: float | None
    propensity: float
    reward: float | None = None
    kind: str | None = None
    arm_id: str | None = None
    features: int = 0
    """A checksum of what was learned from, which tells whether it was a stored arm without a context."""

    @classmethod
    def of(cls, row: DecisionRow) -> Self:
        """An arm that was shown just now."""
        shown = (row.seq, row.position, row.tag, row.at, row.arm_name, row.arm_count)
        scores = (row.score, row.width, row.propensity)
        return cls(*shown, *scores, arm_id=row.arm_id, features=crc32(row.features))

    @property
    def first(self) -> int:
        """The first row of its slate, which identifies the decision."""
        return self.seq - self.position


class SavedAccounts(TypedDict):
    """The counters as JSON."""

    totals: dict[str, Any]
    history: SavedTimeline
    waiting: NotRequired[SavedHeld]
    unweighed: NotRequired[list[tuple[int, float, float, int]]]
    recent: NotRequired[list[dict[str, Any]]]


class Accounts:
    """Counts record by record, live and in a replay. ``settled`` is called only if something waits."""

    def __init__(self, config: BanditConfig, created: float, settled: Settled) -> None:
        self._timeout = config.reward_timeout
        self._are_estimated = config.propensities == ESTIMATE
        self._settled = settled
        self.meter = Meter()
        self.totals = Totals()
        self.timeline = Timeline(created)
        self.recent: deque[Recent] = deque(maxlen=_MOST_RECENT)
        self._held = HeldBack(WeightedRewards, config.reward_timeout or 0.0)
        """What is not yet in the timeline. A decision is compared once the time for its reward is over."""
        self._unweighed: dict[int, Unweighed] = {}
        """Rewards that came before the estimate of their propensity."""

    @property
    def rewarded(self) -> int:
        """Rewards that the policy learned from: those of clients, and defaults that are not null."""
        return sum(bucket.rewards for bucket in self.timeline.life.buckets)

    def opened(self, row: DecisionRow) -> None:
        """Count a shown arm."""
        self.recent.append(Recent.of(row))
        self.timeline.showed(row.at, row.arm_name)
        if row.position == 0:
            self.totals.decisions += 1
            self.timeline.add(row.at, Bucket(decisions=1, width_sum=row.width or 0.0))
            self.meter.count(row.at)
            self._release(row.at)

    def closed(self, row: RewardRow, shown: DecisionRow) -> None:
        """Count the reward of a shown arm, or the default in its place."""
        if row.kind == DEFAULT:
            self.totals.defaults += 1
        else:
            self.totals.rewards += 1
        if row.reward is not None:
            self.totals.reward_sum += row.reward
            happened = Bucket(rewards=1, reward_sum=row.reward, defaults=int(row.kind == DEFAULT))
            self.timeline.add(row.at, happened)
            if row.position == 0:
                counts_at = row.at if self._timeout is None else shown.at + self._timeout
                unweighed = Unweighed(counts_at, row.reward, shown.arm_count)
                self._compare(shown.first, unweighed, shown.propensity)
        self._release(row.at)
        for recent in self.recent:
            if recent.seq == row.decision:
                recent.reward, recent.kind = row.reward, row.kind

    def estimated(self, row: EstimateRow) -> None:
        """Note a propensity, which may come before the reward or after it."""
        if (rewarded := self._unweighed.pop(row.decision, None)) is not None:
            self._compare(row.decision, rewarded, row.propensity)
        for recent in self.recent:
            if recent.seq == row.decision:
                recent.propensity = row.propensity

    def compared(self, view: RangeView, now: float) -> WeightedRewards:
        """Everything in a view, including what has become due since the last record."""
        found = WeightedRewards()
        for weighted in view.weighted:
            found += weighted
        for at, weighted in self._held.due(self._settled(now)):
            if at > view.history.start:
                found += weighted
        return found

    def _compare(self, first: int, rewarded: Unweighed, propensity: float) -> None:
        """Count what a uniform choice would have earned by a reward, now or when the propensity is known."""
        if propensity:
            take = self.timeline.compare if self._timeout is None else self._held.add
            take(rewarded.at, rewarded.weighted(propensity))
        elif self._are_estimated:
            self._unweighed[first] = rewarded
            if len(self._unweighed) > _MOST_UNWEIGHED:
                del self._unweighed[next(iter(self._unweighed))]  # the oldest

    def _release(self, now: float) -> None:
        """Count what was held back for decisions whose time is over."""
        if self._held.has_news(now):
            for at, happened in self._held.release(self._settled(now)):
                self.timeline.compare(at, happened)

    # -- snapshots ------------------------------------------------------------------------------------

    def dump(self) -> SavedAccounts:
        """The counters as JSON."""
        return {
            "totals": asdict(self.totals),
            "history": self.timeline.dump(),
            "waiting": self._held.dump(),
            "unweighed": [(first, *rewarded) for first, rewarded in self._unweighed.items()],
            "recent": [asdict(one) for one in self.recent],
        }

    def undump(self, saved: SavedAccounts) -> None:
        """Read what ``dump`` has written. Snapshots of earlier versions do not have all of it."""
        self.totals = Totals(**saved["totals"])
        self.timeline = Timeline.undump(saved["history"])
        if "waiting" in saved:
            self._held.undump(saved["waiting"])
        unweighed = saved.get("unweighed", [])
        self._unweighed = {first: Unweighed(at, reward, arms) for first, at, reward, arms in unweighed}
        self.recent.extend(Recent(**one) for one in saved.get("recent", []))
