"""A learning curve over a whole life in constant memory."""

import math
from collections.abc import Sequence
from operator import add
from typing import NamedTuple, Self, TypedDict

BUCKETS = 240
STRETCHES = 120
_WITH_DEFAULTS = (3, 9)  # numbers after decisions and rewards: now, and before 0.16


class Bucket(NamedTuple):
    """What happened in one interval of time."""

    decisions: int = 0
    rewards: int = 0
    reward_sum: float = 0.0
    width_sum: float = 0.0
    """Sum of the confidence widths of the first arms: how unsure the policy was."""
    defaults: int = 0
    """Of the rewards, the defaults: no reward came in time."""

    def __add__(self, other: "Bucket") -> "Bucket":  # type: ignore[override]
        return Bucket(*map(add, self, other))

    @classmethod
    def undump(cls, saved: Sequence[float]) -> Self:
        """Read what JSON keeps. Before 0.16, sums for a comparison stood after the widths."""
        decisions, rewards, *sums = saved
        reward_sum, width_sum = [*sums, 0.0][:2]
        defaults = sums[-1] if len(sums) in _WITH_DEFAULTS else 0
        return cls(int(decisions), int(rewards), reward_sum, width_sum, int(defaults))


class SavedHistory(TypedDict):
    """A history as JSON."""

    start: float
    width: float
    buckets: list[list[float]]


class History:
    """At most 240 intervals of equal length since ``start``. When they are full, pairs are merged.

    >>> history = History(start=0.0)
    >>> for second in range(1000):
    ...     history.add(float(second), Bucket(rewards=1, reward_sum=0.5))
    >>> history.width, len(history.buckets), sum(bucket.rewards for bucket in history.buckets)
    (8.0, 125, 1000)
    """

    def __init__(self, start: float, width: float = 1.0, buckets: list[Bucket] | None = None) -> None:
        self.start = start
        self.width = width
        self.buckets = buckets or [Bucket()]

    def add(self, at: float, happened: Bucket) -> None:
        """Count what happened at that time."""
        self.reach(at)
        place = min(max(int((at - self.start) / self.width), 0), len(self.buckets) - 1)
        self.buckets[place] += happened

    def reach(self, at: float) -> None:
        """Extend to that time, with empty intervals where nothing happened."""
        while (at - self.start) / self.width >= BUCKETS:
            pairs = [*self.buckets, Bucket()] if len(self.buckets) % 2 else self.buckets
            self.buckets = [a + b for a, b in zip(pairs[::2], pairs[1::2], strict=True)]
            self.width *= 2
        missing = int((at - self.start) / self.width) + 1 - len(self.buckets)
        self.buckets.extend([Bucket()] * missing)

    def until(self, at: float) -> "History":
        """A copy that is extended to that time."""
        copied = History(self.start, self.width, list(self.buckets))
        copied.reach(at)
        return copied

    def dump(self) -> SavedHistory:
        """The state as JSON."""
        return {"start": self.start, "width": self.width, "buckets": [list(b) for b in self.buckets]}

    @classmethod
    def undump(cls, saved: SavedHistory) -> Self:
        """Read what ``dump`` has written."""
        return cls(saved["start"], saved["width"], [Bucket.undump(bucket) for bucket in saved["buckets"]])


class Window:
    """The last ``seconds``, in 120 intervals of equal length.

    >>> window = Window(seconds=120.0)
    >>> for second in range(1000):
    ...     window.add(float(second), Bucket(rewards=1))
    >>> seen = window.until(999.5, since=0.0)
    >>> seen.start, len(seen.buckets), sum(bucket.rewards for bucket in seen.buckets)
    (880.0, 120, 120)
    """

    def __init__(self, seconds: float, buckets: dict[int, Bucket] | None = None) -> None:
        self.width = seconds / STRETCHES
        self.buckets = buckets or {}

    def add(self, at: float, happened: Bucket) -> None:
        """Count what happened at that time."""
        place = int(at // self.width)
        self.buckets[place] = self.buckets.get(place, Bucket()) + happened
        if len(self.buckets) > STRETCHES:
            del self.buckets[min(self.buckets)]

    def until(self, at: float, since: float) -> History:
        """The intervals up to that time. There are fewer if counting began only lately."""
        end = int(at // self.width)
        start = max(end - STRETCHES + 1, int(since // self.width))
        seen = [self.buckets.get(place, Bucket()) for place in range(start, end + 1)]
        return History(start * self.width, self.width, seen)


class Meter:
    """Events per second over the last few seconds.

    >>> meter = Meter(seconds=10)
    >>> for at in range(100):
    ...     meter.count(at / 10)
    >>> meter.rate(10.0, since=0.0)
    10.0
    """

    def __init__(self, seconds: int = 10) -> None:
        self._seconds = seconds
        self._counts: dict[int, int] = {}

    def count(self, at: float) -> None:
        """Count one event at that time."""
        second = int(at)
        self._counts[second] = self._counts.get(second, 0) + 1
        if len(self._counts) > 2 * self._seconds:
            self._counts = {s: n for s, n in self._counts.items() if s >= second - self._seconds}

    def rate(self, now: float, since: float) -> float:
        """The mean over the last whole seconds. There are fewer if counting began only lately."""
        end = int(now)
        start = max(end - self._seconds, math.ceil(since))
        if start >= end:
            return sum(self._counts.values()) / max(now - since, 1.0)
        return sum(self._counts.get(second, 0) for second in range(start, end)) / (end - start)
