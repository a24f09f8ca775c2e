"""Holds back figures until the decisions behind them can no longer change."""

from collections.abc import Iterable, Mapping
from typing import Generic, TypeVar

from sketchbandit_service.candidate_value import WeightedSums
from sketchbandit_service.weighted_rewards import WeightedRewards

B = TypeVar("B", WeightedRewards, WeightedSums)

SavedHeld = tuple[int, int, list[list[float]]]
"""The JSON of what is held back."""
_STRETCHES = 120  # intervals in the time for a reward
_LEAST_WIDTH = 1.0  # seconds


class HeldBack(Generic[B]):
    """What rewards say about another choice, until the time for their decisions is over.

    Clicks come at once, and the default comes late. If each counted when it came, arms that are clicked would
    count too much. Sums are kept for intervals of deadlines, about 120 at most.

    >>> clicked = WeightedRewards()
    >>> clicked.add(weight=2.0, reward=1.0)
    >>> held = HeldBack(WeightedRewards, timeout=60.0)
    >>> held.add(100.5, clicked)
    >>> held.due(100.9), [(at, happened.count) for at, happened in held.due(101.0)]
    ([], [(101.0, 1)])
    """

    def __init__(self, kind: type[B], timeout: float) -> None:
        self._kind: type[B] = kind
        self._width = max(timeout / _STRETCHES, _LEAST_WIDTH)
        self._buckets: dict[int, B] = {}
        self._next = 0
        """Intervals before this one were released."""
        self._looked = 0

    def add(self, deadline: float, happened: B) -> None:
        """Hold back what belongs to a decision with that deadline.

        If it is late, it goes to the next interval.
        """
        place = max(int(deadline // self._width), self._next)
        if place in self._buckets:
            self._buckets[place] += happened
        else:
            self._buckets[place] = happened

    def has_news(self, now: float) -> bool:
        """Whether an interval has ended since the last call."""
        place = int(now // self._width)
        is_new = place > self._looked
        self._looked = max(self._looked, place)
        return is_new

    def due(self, until: float) -> list[tuple[float, B]]:
        """The intervals that have ended by then, in order, each with its end."""
        last = int(until // self._width)
        over = sorted(place for place in self._buckets if place < last)
        return [((place + 1) * self._width, self._buckets[place]) for place in over]

    def release(self, until: float) -> list[tuple[float, B]]:
        """The same, and stop holding them."""
        found = self.due(until)
        self._next = max(self._next, int(until // self._width))
        for place in [place for place in self._buckets if place < self._next]:
            del self._buckets[place]
        return found

    def dump(self) -> SavedHeld:
        """The state as JSON."""
        return self._next, self._looked, _rows(self._buckets)

    def undump(self, saved: SavedHeld) -> None:
        """Read what ``dump`` has written."""
        self._next, self._looked, buckets = saved
        self._buckets = {int(place): self._kind.undump(bucket) for place, *bucket in buckets}


def _rows(buckets: Mapping[int, Iterable[float]]) -> list[list[float]]:
    return [[place, *bucket] for place, bucket in buckets.items()]
