"""Any-time intervals for estimates and for their differences, all from ``LowerBound``."""

from collections.abc import Mapping

import numpy as np

from sketchbandit.arrays import Vector
from sketchbandit.errors import InputError
from sketchbandit.evaluation.intervals import Assumed, Interval
from sketchbandit.evaluation.results import LOGGED
from sketchbandit.evaluation.sequences import LowerBound, unit_rewards
from sketchbandit.evaluation.terms import Terms

METHODS = ("ips", "dr")
"""The methods that have an any-time interval."""


class Anytime:
    """Intervals that hold at every moment of a log."""

    def __init__(self, terms: Mapping[str, Terms], level: float, assumed: Assumed) -> None:
        self._terms, self._alpha, self._assumed = terms, (1.0 - level) / 2.0, assumed

    def interval(self, name: str, method: str) -> Interval:
        """The interval of a value, from w r and w (1 - r); for "dr", from the same with the reward model."""
        terms, (low, high) = self._terms[name], self._assumed.reward_range
        lower = _bound(*_parts(terms, method, self._assumed, flip=False), self._alpha)
        upper = 1.0 - _bound(*_parts(terms, method, self._assumed, flip=True), self._alpha)
        return Interval(low + (high - low) * max(lower, 0.0), low + (high - low) * min(upper, 1.0))

    def difference(self, one: str, other: str, method: str) -> Interval:
        """The interval of one - other: w r of one plus w (1 - r) of other has the mean 1 + difference."""
        low, high = self._assumed.reward_range
        ends = []
        for first, second in ((one, other), (other, one)):
            plus, of_plus = _parts(self._terms[first], method, self._assumed, flip=False)
            minus, of_minus = _parts(self._terms[second], method, self._assumed, flip=True)
            ends.append(_bound(plus + minus, of_plus + of_minus, self._alpha, most=2.0) - 1.0)
        return Interval((high - low) * max(ends[0], -1.0), (high - low) * min(-ends[1], 1.0))

    def of_log(self) -> Interval:
        """The interval of the mean reward of the log."""
        return self.interval(LOGGED, "ips")


def _bound(numbers: Vector, shift: float, alpha: float, most: float = 1.0) -> float:
    """A lower bound on the mean of numbers >= -shift, if the mean is at most ``most``."""
    bound = LowerBound(alpha)
    bound.update(np.maximum(numbers + shift, 0.0) / (most + shift))  # only rounding is below zero
    return bound.value * (most + shift) - shift


def _parts(terms: Terms, method: str, assumed: Assumed, *, flip: bool) -> tuple[Vector, float]:
    """Numbers whose mean is the value (flipped: 1 - value), and how far they may be below zero."""
    low, high = assumed.reward_range
    r = unit_rewards(terms.reward, assumed.reward_range)
    if method == "ips":
        return terms.weight * (1.0 - r if flip else r), 0.0
    if assumed.max_weight is None:
        raise InputError(
            "the any-time interval of dr needs max_weight, an upper bound on pi(a|x)/p known in advance; for "
            "a log made with a floor it is K / floor; the interval of ips needs none"
        )
    predicted, value = ((q - low) / (high - low) for q in (terms.predicted, terms.value))  # within the range
    if flip:
        r, predicted, value = 1.0 - r, 1.0 - predicted, 1.0 - value
    return value + terms.weight * (r - predicted), assumed.max_weight
