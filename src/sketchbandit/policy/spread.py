"""The standard deviation of the rewards, as a running value."""

import math
import sys
from collections.abc import Sequence
from typing import Self

import numpy as np

from sketchbandit.arrays import AnyArray

STRENGTH = 0.15
"""The factor on the standard deviation of the rewards for ``beta="auto"`` and ``scale="auto"``."""
_MOST = sys.float_info.max  # so that a reward of 1e160 does not make the radius infinite for ever


class Spread:
    """Running mean and sum of squares of the rewards (Welford). Batches do not change the result."""

    __slots__ = ("count", "mean", "squares")

    def __init__(self, count: float = 0, mean: float = 0.0, squares: float = 0.0) -> None:
        self.count = count
        self.mean = mean
        self.squares = squares
        """The sum of (reward - mean)²."""

    def see(self, reward: float) -> None:
        """Add one reward."""
        self.count += 1
        off = reward - self.mean
        self.mean += off / self.count
        self.squares = min(self.squares + off * (reward - self.mean), _MOST)

    def forget(self, factor: float) -> None:
        """Multiply the weight of the rewards so far by this factor."""
        self.count *= factor
        self.squares *= factor

    def add(self, other: "Spread") -> None:
        """Add the rewards of another spread."""
        total = self.count + other.count
        if other.count:
            off = other.mean - self.mean
            between = off * off * (self.count * other.count / total) if self.count else 0.0
            self.squares = min(self.squares + other.squares + between, _MOST)
            self.mean += off * (other.count / total)
            self.count = total

    @classmethod
    def of_all(cls, spreads: AnyArray) -> Self:
        """The spread of all rewards together, from the rows that several spreads ``dump``."""
        counts, means, squares = spreads[spreads[:, 0] > 0.0].T
        if not len(counts):
            return cls()
        count, first = float(counts.sum()), float(means[0])
        with np.errstate(over="ignore", invalid="ignore"):
            off = means - first  # exactly 0 if all are equal
            between = float(counts @ np.square(off - counts @ off / count))
            total = float(squares.sum()) + between
        mean = first + float(counts @ off) / count
        return cls(count, mean, total if total < _MOST else _MOST)

    @property
    def radius(self) -> float:
        """The radius for "auto". While all rewards are equal, their size replaces their deviation."""
        if self.squares > 0.0:
            return STRENGTH * math.sqrt(self.squares / self.count)
        return STRENGTH * (abs(self.mean) or 1.0)

    def dump(self) -> Sequence[float]:
        """The values for ``Spread(*...)``."""
        return self.count, self.mean, self.squares
