"""Where the rewards lie and how far they spread: the baseline, and the unit of a rule's strength."""

import math
import sys
from bisect import insort
from collections.abc import Sequence
from typing import Self

from sketchbandit.arrays import Scalars

STRENGTH = 0.15
"""The factor on the standard deviation of the rewards for ``beta="auto"`` and ``scale="auto"``."""
_MOST = sys.float_info.max  # so that a reward of 1e160 does not make the radius infinite for ever
_FIRST = 31  # rewards whose median a robust location starts from


class RewardScale:
    """Running location and deviation of the rewards. The models of one ``PerAction`` share it.

    With a baseline, rewards are measured from the first one, the origin, so that a constant that all rewards
    have in common costs no digits. Without a baseline the origin is 0.

    Parameters
    ----------
    baseline : bool
        Whether models learn from the rewards less their location.
    robust : tuple of float, optional
        The size of the noise and its moment, for a location that outliers do not move: the median of the
        first rewards, then the mean of rewards that are clipped at size·count^(1/moment) around it.

    """

    __slots__ = (
        "_first",
        "baseline",
        "count",
        "has_begun",
        "is_held",
        "location",
        "origin",
        "reach",
        "robust",
        "shift",
        "squares",
    )

    def __init__(self, *, baseline: bool = False, robust: tuple[float, float] | None = None) -> None:
        self.baseline = baseline
        self.robust = robust
        self.origin = 0.0
        """What rewards are measured from."""
        self.count = 0.0
        """The weight of the rewards so far: their number, as far as they are not forgotten."""
        self.shift = 0.0
        """The mean of reward - origin."""
        self.squares = 0.0
        """The sum of (reward - mean)²."""
        self.location = 0.0
        """The robust location of reward - origin; the shift if the location is not robust."""
        self.reach = 0.0
        """The largest |reward - origin|."""
        self.is_held = False
        """Whether rewards are not counted now, because they were counted before."""
        self._first: list[float] = []  # sorted; empty once the robust location has started
        self.has_begun = False
        """Whether the origin is set."""

    @property
    def mean(self) -> float:
        """The mean of the rewards."""
        return self.origin + self.shift

    @property
    def deviation(self) -> float:
        """The standard deviation of the rewards."""
        return math.sqrt(self.squares / self.count) if self.squares > 0.0 else 0.0

    @property
    def radius(self) -> float:
        """The radius for "auto".

        While all rewards are equal, their size replaces their deviation. With a baseline any number serves
        then, because all means are equal, and a number that depends on the rewards would depend on what a
        caller adds to them.
        """
        if self.squares > 0.0:
            return STRENGTH * math.sqrt(self.squares / self.count)
        return STRENGTH if self.baseline else STRENGTH * (abs(self.mean) or 1.0)

    def begin(self, reward: float) -> None:
        """Set the origin by the first reward. It is counted later."""
        self.has_begun = True
        self.origin = reward if self.baseline else 0.0

    def shift_after(self, reward: float) -> float:
        """``shift`` as it will be when this reward is counted."""
        if self.is_held:
            return self.shift
        return self.shift + (reward - self.origin - self.shift) / (self.count + 1.0)

    def see(self, reward: float) -> None:
        """Count one reward. Batches do not change the result."""
        if self.is_held:
            return
        if not self.has_begun:
            self.begin(reward)
        value = reward - self.origin
        self.reach = max(self.reach, abs(value))
        self.count += 1.0
        shift = self.shift + (value - self.shift) / self.count
        self.squares = min(self.squares + (value - self.shift) * (value - shift), _MOST)
        self.shift = shift
        self.location = self.shift if self.robust is None else self._robust_location(value)

    def _robust_location(self, value: float) -> float:
        assert self.robust is not None  # noqa: S101  (for the type checker)
        if len(self._first) < _FIRST:
            insort(self._first, value)
            middle = len(self._first) // 2
            return (self._first[middle] + self._first[-1 - middle]) / 2.0
        size, moment = self.robust
        count = max(self.count, 1.0)
        most = size * math.pow(count, 1.0 / moment)
        return self.location + min(max(value - self.location, -most), most) / count

    def forget(self, factor: float) -> None:
        """Multiply the weight of the rewards so far by this factor."""
        self.count *= factor
        self.squares *= factor

    def add(self, other: "RewardScale") -> None:
        """Add the rewards of another scale."""
        if not other.count:
            return
        if not self.has_begun:
            self.restore(other.dump())
            return
        apart = other.origin - self.origin
        total = self.count + other.count
        off = other.shift - self.shift + apart
        between = off * off * (self.count * other.count / total) if self.count else 0.0
        self.squares = min(self.squares + other.squares + between, _MOST)
        self.shift += off * (other.count / total)
        self.location += (other.location - self.location + apart) * (other.count / total)
        self.count = total
        self.reach = max(self.reach, other.reach + abs(apart))

    # -- files ----------------------------------------------------------------------------------------

    def dump(self) -> Scalars:
        """JSON values that ``restore`` takes."""
        return {
            "baseline": self.baseline,
            "moments": [self.origin, self.count, self.shift, self.squares, self.location],
            "reach": self.reach,
            "first": self._first,
            "has_begun": self.has_begun,
        }

    def restore(self, saved: Scalars) -> None:
        """Restore what ``dump`` returned."""
        self.baseline, self.has_begun = bool(saved["baseline"]), bool(saved["has_begun"])
        self.origin, self.count, self.shift, self.squares, self.location = map(float, saved["moments"])
        self.reach = float(saved["reach"])
        self._first = sorted(map(float, saved["first"]))

    @classmethod
    def of_moments(cls, moments: Sequence[float] | None) -> Self:
        """The scale of a file of 0.14 or before, which has count, mean and squares, and no baseline."""
        made = cls()
        count, mean, squares = (float(value) for value in moments) if moments else (0.0, 0.0, 0.0)
        made.count, made.shift, made.squares, made.has_begun = count, mean, squares, count > 0.0
        return made
