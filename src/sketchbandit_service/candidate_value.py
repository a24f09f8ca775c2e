"""What a candidate would have earned, estimated from the decisions of the deciding policy.

A decision has the weight w = q/p. Here p is the propensity of its arm, and q is the probability with which
the candidate would have chosen that arm (inverse propensity weighting). The mean of w r is an unbiased
estimate of the mean reward of the candidate, as it was when each decision was made. Weights are not clipped:
the confidence sequence (``evaluation.sequences``, an empirical-Bernstein mixture) needs no bound on them. Let
u be the reward, scaled to [0, 1] by the given range. The lower end depends on w u, the upper end on w (1 -
u).

Decisions are added in intervals of time. V = sum (x - g)² has the same g within an interval: the mean of all
that came before it. So g does not depend on the interval itself.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from operator import add
from typing import NamedTuple, Self

import numpy as np

from sketchbandit.evaluation.sequences import mixture_boundary
from sketchbandit.evaluation.weights import unbalanced, undecided


class WeightedSums(NamedTuple):
    """Sums over decisions with weights w and rewards u, scaled to [0, 1].

    >>> found = weighted_sums(2.0, 0.25) + weighted_sums(0.0, 1.0)
    >>> found.count, found.weight, found.up, found.down_sq, found.own
    (2, 2.0, 0.5, 2.25, 1.25)
    """

    count: int  # type: ignore[assignment]  # tuples have a method of that name
    weight: float
    weight_sq: float
    up: float
    """The sum of w u, ..."""
    up_sq: float
    """... the sum of its squares, ..."""
    down_sq: float
    """... and the sum of the squares of w (1 - u)."""
    own: float
    """The sum of u, ..."""
    own_sq: float
    """... and the sum of its squares."""
    outside: int
    """Rewards outside their range."""

    def __add__(self, other: "WeightedSums") -> "WeightedSums":  # type: ignore[override]
        return WeightedSums(*map(add, self, other))

    @classmethod
    def undump(cls, saved: Iterable[float]) -> Self:
        """Back from a list."""
        return cls._make(saved)


NOTHING = WeightedSums(0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0)


def weighted_sums(weight: float, u: float) -> WeightedSums:
    """The sums for one decision."""
    up, down = weight * u, weight * (1.0 - u)
    is_outside = not 0.0 <= u <= 1.0
    return WeightedSums(1, weight, weight * weight, up, up * up, down * down, u, u * u, int(is_outside))


LEVEL = 0.95
"""The probability with which the interval holds at all times at once."""


class Interval(NamedTuple):
    """A mean reward, and an interval that holds at any time. No ends if nothing can be said."""

    value: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Valued:
    """What a candidate would have earned, and what the same decisions really earned."""

    count: int
    effective: float
    """The effective sample size of these decisions."""
    candidate: Interval
    live: Interval
    verdict: str
    """Why this does not show that one of them earns more; empty if their intervals are apart."""


class Value:
    """The state of an estimate: sums, and the V of four confidence sequences."""

    def __init__(self, total: WeightedSums = NOTHING, variances: tuple[float, ...] = (0.0,) * 4) -> None:
        self.total = total
        self._variances = variances

    def plus(self, stretch: WeightedSums) -> "Value":
        """The value with the decisions of one more interval."""
        pairs = zip(self._variances, _series(self.total), _series(stretch), strict=True)
        total, count = self.total, stretch.count
        variances = []
        for variance, (before, _), (added, squares) in pairs:
            guess = min(max((0.5 + before) / (total.count + 1), 0.0), 1.0)  # 1/2 counts as one more
            seen = squares - 2.0 * guess * added + count * guess * guess
            variances.append(variance + max(seen, 0.0))
        return Value(total + stretch, tuple(variances))

    def told(self, reward_range: tuple[float, float]) -> Valued | None:
        """The estimate in the unit of rewards. None if there is nothing yet."""
        total, (least, most) = self.total, reward_range
        if not total.count:
            return None
        sums = np.array([one for one, _ in _series(total)])
        reach = mixture_boundary(np.array(self._variances), (1.0 - LEVEL) / 2.0)
        bounds = np.clip((sums - reach) / total.count, 0.0, 1.0)
        width, gap = most - least, self._gap()

        def interval(mean: float, low: float, high: float, *, is_said: bool) -> Interval:
            value = least + width * mean
            return Interval(value, *((least + width * low, most - width * high) if is_said else (None, None)))

        low, high, own_low, own_high = bounds.tolist()
        worth = total.weight * total.weight / total.weight_sq if total.weight_sq else 0.0
        live = interval(total.own / total.count, own_low, own_high, is_said=not total.outside)
        candidate = interval(total.up / total.count, low, high, is_said=not (total.outside or gap))
        verdict = gap or _undecided(total.count, candidate, live)
        return Valued(total.count, worth, candidate, live, verdict)

    def _gap(self) -> str:
        """Why there is no interval: the weights are not 1 on average, or rewards were outside their range."""
        total = self.total
        if total.outside:
            return "some rewards are outside of reward_range"
        mean, count = total.weight / total.count, total.count
        error = (
            math.sqrt(max(total.weight_sq / count - mean * mean, 0.0) / (count - 1))
            if count > 1
            else math.inf
        )
        return unbalanced(mean, error)

    def dump(self) -> list[list[float]]:
        """The state as JSON."""
        return [list(self.total), list(self._variances)]

    @classmethod
    def undump(cls, saved: list[list[float]]) -> "Value":
        """Read what ``dump`` has written."""
        return cls(WeightedSums.undump(saved[0]), tuple(saved[1]))


def _undecided(count: int, candidate: Interval, live: Interval) -> str:
    """Why the intervals do not show which of the two earns more; empty if they are apart."""
    better, worse = sorted((candidate, live), key=lambda one: -one.value)
    if better.low is None or worse.high is None or better.low > worse.high:
        return ""
    halves = better.value - better.low + worse.high - worse.value
    return undecided(f"{count:,} decisions", count, better.value - worse.value, halves)


def _series(of: WeightedSums) -> tuple[tuple[float, float], ...]:
    """Sums, and sums of squares, of w u, w (1 - u), u and 1 - u."""
    return (
        (of.up, of.up_sq),
        (of.weight - of.up, of.down_sq),
        (of.own, of.own_sq),
        (of.count - of.own, of.count - 2.0 * of.own + of.own_sq),
    )
