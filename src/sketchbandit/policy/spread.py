"""How far rewards lie apart, as they come."""

import math
import sys
from collections.abc import Sequence
from typing import Self

import numpy as np

from sketchbandit.arrays import AnyArray

STRENGTH = 0.15
"""By which ``beta="auto"`` or ``scale="auto"`` multiplies the deviation of the rewards."""
_MOST = sys.float_info.max  # so that one reward of 1e160 does not make the radius infinite for ever


class Spread:
    """Mean and squares of the rewards so far (Welford): the same whatever the portions they came in."""

    __slots__ = ("count", "mean", "squares")

    def __init__(self, count: float = 0, mean: float = 0.0, squares: float = 0.0) -> None:
        self.count = count
        self.mean = mean
        self.squares = squares
        """The sum of (reward - mean)²."""

    def see(self, reward: float) -> None:
        """One more reward."""
        self.count += 1
        off = reward - self.mean
        self.mean += off / self.count
        self.squares = min(self.squares + off * (reward - self.mean), _MOST)

    def forget(self, factor: float) -> None:
        """Rewards so far count by this factor."""
        self.count *= factor
        self.squares *= factor

    def add(self, other: "Spread") -> None:
        """The rewards of another too."""
        total = self.count + other.count
        if other.count:
            off = other.mean - self.mean
            between = off * off * (self.count * other.count / total) if self.count else 0.0
            self.squares = min(self.squares + other.squares + between, _MOST)
            self.mean += off * (other.count / total)
            self.count = total

    @classmethod
    def of_all(cls, spreads: AnyArray) -> Self:
        """Of several, as the rows of what they ``dump``: that of all their rewards."""
        counts, means, squares = spreads[spreads[:, 0] > 0.0].T
        if not len(counts):
            return cls()
        count, first = float(counts.sum()), float(means[0])
        with np.errstate(over="ignore", invalid="ignore"):
            off = means - first  # exactly 0 where all are equal
            between = float(counts @ np.square(off - counts @ off / count))
            total = float(squares.sum()) + between
        mean = first + float(counts @ off) / count
        return cls(count, mean, total if total < _MOST else _MOST)

    @property
    def radius(self) -> float:
        """How far to explore. While all rewards are equal, their size stands in for their deviation."""
        if self.squares > 0.0:
            return STRENGTH * math.sqrt(self.squares / self.count)
        return STRENGTH * (abs(self.mean) or 1.0)

    def dump(self) -> Sequence[float]:
        """What ``Spread(*...)`` makes the same of."""
        return self.count, self.mean, self.squares
