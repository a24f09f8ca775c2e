"""What a bandit did in its last hour, day and week and in its whole life, in constant memory."""

from collections import Counter
from collections.abc import Callable
from typing import Generic, NamedTuple, NotRequired, Self, TypeVar

from sketchbandit_service.history import Bucket, History, SavedHistory, Window
from sketchbandit_service.weighted_rewards import WeightedRewards

RANGES = {"hour": 3600.0, "day": 86_400.0, "week": 604_800.0}
ALL = "all"
_PARTS = 12  # of a range
_NAMES = 200  # most arms counted by name in one part
OTHERS = ""
"""The name for all other arms; no arm has it."""


P = TypeVar("P")


class Parts(Generic[P]):
    """The last ``seconds`` in twelve parts, each made when something happens in it. None: one part for ever.

    >>> parts = Parts(12.0, Counter)
    >>> for second in range(100):
    ...     parts.at(float(second))["a" if second % 3 else "b"] += 1
    >>> sorted(sum(parts.until(99.0), Counter()).items())
    [('a', 8), ('b', 4)]
    """

    def __init__(self, seconds: float | None, make: Callable[[], P]) -> None:
        self._width = None if seconds is None else seconds / _PARTS
        self._make = make
        self.by_place: dict[int, P] = {}

    def at(self, at: float) -> P:
        """The part of that time."""
        place = self._place(at)
        found = self.by_place.get(place)
        if found is None:
            found = self.by_place[place] = self._make()
            if len(self.by_place) > _PARTS:
                del self.by_place[min(self.by_place)]
        return found

    def until(self, at: float) -> list[P]:
        """The parts of the range that ends at that time."""
        last = self._place(at)
        return [found for place, found in self.by_place.items() if place > last - _PARTS]

    def _place(self, at: float) -> int:
        return 0 if self._width is None else int(at // self._width)


def _count(shown: Counter[str], arm: str) -> None:
    """Count a shown arm, by its name if there are not too many."""
    shown[arm if arm in shown or len(shown) < _NAMES else OTHERS] += 1


class RangeView(NamedTuple):
    """A time range as it is shown."""

    history: History
    shares: Counter[str]
    """How often each arm was shown, accurate to a twelfth of the range."""
    weighted: list[WeightedRewards]
    """What the rewards say about a uniform choice, also accurate to a twelfth."""

    @property
    def total(self) -> Bucket:
        """The sum over the range."""
        return sum(self.history.buckets, Bucket())


class SavedTimeline(SavedHistory):
    """A timeline as JSON."""

    windows: NotRequired[dict[str, list[list[float]]]]
    shares: NotRequired[dict[str, list[tuple[int, Counter[str]]]]]
    weighted: NotRequired[dict[str, list[list[float]]]]


class Timeline:
    """Takes events with their times in the order of the journal, and gives views of any range."""

    def __init__(self, start: float) -> None:
        self.start = start
        self.life = History(start)
        self._windows = {name: Window(seconds) for name, seconds in RANGES.items()}
        ranges = {ALL: None, **RANGES}
        self._shares = {name: Parts(seconds, Counter[str]) for name, seconds in ranges.items()}
        self._weighted = {name: Parts(seconds, WeightedRewards) for name, seconds in ranges.items()}

    def add(self, at: float, happened: Bucket) -> None:
        """Count what happened at that time."""
        self.life.add(at, happened)
        for window in self._windows.values():
            window.add(at, happened)

    def showed(self, at: float, arm: str) -> None:
        """Count a shown arm."""
        for shares in self._shares.values():
            _count(shares.at(at), arm)

    def compare(self, at: float, rewards: WeightedRewards) -> None:
        """Take what rewards say about a uniform choice, at the time when they count."""
        for weighted in self._weighted.values():
            found = weighted.at(at)
            found += rewards

    def view(self, name: str, now: float) -> RangeView:
        """The view of one of RANGES, or of ALL."""
        seen = self.life.until(now) if name == ALL else self._windows[name].until(now, self.start)
        shares = sum(self._shares[name].until(now), Counter[str]())
        return RangeView(seen, shares, self._weighted[name].until(now))

    def dump(self) -> SavedTimeline:
        """The state as JSON."""
        windows: dict[str, list[list[float]]] = {
            name: [[place, *bucket] for place, bucket in window.buckets.items()]
            for name, window in self._windows.items()
        }
        shares = {name: list(shares.by_place.items()) for name, shares in self._shares.items()}
        weighted: dict[str, list[list[float]]] = {
            name: [[place, *found] for place, found in parts.by_place.items()]
            for name, parts in self._weighted.items()
        }
        return {**self.life.dump(), "windows": windows, "shares": shares, "weighted": weighted}

    @classmethod
    def undump(cls, saved: SavedTimeline) -> Self:
        """Back from ``dump``; snapshots of earlier versions do not have all of it."""
        made = cls(saved["start"])
        made.life = History.undump(saved)
        for name, buckets in saved.get("windows", {}).items():
            made._windows[name].buckets = {int(place): Bucket.undump(rest) for place, *rest in buckets}
        for name, counts in saved.get("shares", {}).items():
            made._shares[name].by_place = {place: Counter(found) for place, found in counts}
        for name, weighted in saved.get("weighted", {}).items():
            made._weighted[name].by_place = {
                int(place): WeightedRewards.undump(rest) for place, *rest in weighted
            }
        return made
