"""What a bandit did in its last hour, day and week and in its whole life, in constant memory."""

from collections import Counter
from typing import Any, NamedTuple, Self

from sketchbandit_service.history import Bucket, History, Window

RANGES = {"hour": 3600.0, "day": 86_400.0, "week": 604_800.0}
ALL = "all"
_STRETCHES = 12  # parts of a range, in which shown arms are counted
_NAMES = 200  # most arms counted by name in one part
OTHERS = ""
"""The name for all other arms; no arm has it."""


class Shares:
    """How often each arm was shown in the last ``seconds``, accurate to a twelfth. None: ever.

    >>> shares = Shares(12.0)
    >>> for second in range(100):
    ...     shares.add(float(second), "a" if second % 3 else "b")
    >>> sorted(shares.until(99.0).items())
    [('a', 8), ('b', 4)]
    """

    def __init__(self, seconds: float | None, counts: dict[int, dict[str, int]] | None = None) -> None:
        self._width = None if seconds is None else seconds / _STRETCHES
        self.counts = counts or {}

    def add(self, at: float, arm: str) -> None:
        """Count an arm shown at that time."""
        counts = self.counts.setdefault(self._place(at), {})
        name = arm if arm in counts or len(counts) < _NAMES else OTHERS
        counts[name] = counts.get(name, 0) + 1
        if len(self.counts) > _STRETCHES:
            del self.counts[min(self.counts)]

    def until(self, at: float) -> Counter[str]:
        """The counts of the range that ends at that time."""
        last, found = self._place(at), Counter[str]()
        for place, counts in self.counts.items():
            if place > last - _STRETCHES:
                found.update(counts)
        return found

    def _place(self, at: float) -> int:
        return 0 if self._width is None else int(at // self._width)


class View(NamedTuple):
    """A time range as it is shown."""

    history: History
    shares: Counter[str]

    @property
    def total(self) -> Bucket:
        """The sum over the range."""
        return sum(self.history.buckets, Bucket())


class Timeline:
    """Takes events with their times in the order of the journal, and gives views of any range."""

    def __init__(self, start: float) -> None:
        self.start = start
        self.life = History(start)
        self._windows = {name: Window(seconds) for name, seconds in RANGES.items()}
        self._shares = {ALL: Shares(None), **{name: Shares(seconds) for name, seconds in RANGES.items()}}

    def add(self, at: float, happened: Bucket) -> None:
        """Count what happened at that time."""
        self.life.add(at, happened)
        for window in self._windows.values():
            window.add(at, happened)

    def showed(self, at: float, arm: str) -> None:
        """Count a shown arm."""
        for shares in self._shares.values():
            shares.add(at, arm)

    def view(self, name: str, now: float) -> View:
        """The view of one of RANGES, or of ALL."""
        if name == ALL:
            return View(self.life.until(now), self._shares[ALL].until(now))
        return View(self._windows[name].until(now, self.start), self._shares[name].until(now))

    def dump(self) -> dict[str, Any]:
        """The state as JSON."""
        windows = {
            name: [[place, *bucket] for place, bucket in window.buckets.items()]
            for name, window in self._windows.items()
        }
        shares = {name: list(shares.counts.items()) for name, shares in self._shares.items()}
        return {**self.life.dump(), "windows": windows, "shares": shares}

    @classmethod
    def undump(cls, saved: dict[str, Any]) -> Self:
        """Back from ``dump``; snapshots of earlier versions have the whole life alone."""
        made = cls(saved["start"])
        made.life = History.undump(saved)
        for name, buckets in saved.get("windows", {}).items():
            made._windows[name].buckets = {bucket[0]: Bucket(*bucket[1:]) for bucket in buckets}
        for name, counts in saved.get("shares", {}).items():
            made._shares[name].counts = {place: dict(found) for place, found in counts}
        return made
