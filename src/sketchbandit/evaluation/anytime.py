"""Any-time intervals for estimates and for their differences, all from ``LowerBound``."""

from typing import NamedTuple

import numpy as np

from sketchbandit.arrays import Vector
from sketchbandit.errors import InputError
from sketchbandit.evaluation.intervals import Interval
from sketchbandit.evaluation.sequences import LowerBound, unit_rewards
from sketchbandit.evaluation.terms import Terms

METHODS = ("ips", "dr")
"""The methods that have an any-time interval."""
_ROUNDING = 1e-9  # relative tolerance for weights above max_weight


class Assumed(NamedTuple):
    """The assumptions of an any-time interval."""

    reward_range: tuple[float, float]
    max_weight: float | None
    """An upper bound on all weights. The doubly robust method needs it."""


def interval(terms: Terms, method: str, level: float, assumed: Assumed) -> Interval:
    """The interval of a value, from w r and w (1 - r); for "dr", from the same with the reward model."""
    alpha = (1.0 - level) / 2.0
    low, high = assumed.reward_range
    lower = _bound(*_parts(terms, method, assumed, flip=False), alpha)
    upper = 1.0 - _bound(*_parts(terms, method, assumed, flip=True), alpha)
    return Interval(low + (high - low) * max(lower, 0.0), low + (high - low) * min(upper, 1.0))


def difference(one: Terms, other: Terms, method: str, level: float, assumed: Assumed) -> Interval:
    """The interval of one - other: w r of one plus w (1 - r) of other has the mean 1 + difference."""
    alpha = (1.0 - level) / 2.0
    low, high = assumed.reward_range
    ends = []
    for first, second in ((one, other), (other, one)):
        plus, of_plus = _parts(first, method, assumed, flip=False)
        minus, of_minus = _parts(second, method, assumed, flip=True)
        ends.append(_bound(plus + minus, of_plus + of_minus, alpha, most=2.0) - 1.0)
    return Interval((high - low) * max(ends[0], -1.0), (high - low) * min(-ends[1], 1.0))


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
    most = float(terms.weight.max())
    if most > assumed.max_weight * (1.0 + _ROUNDING):
        raise InputError(
            f"a weight is {most:g}, but max_weight is {assumed.max_weight:g}; give a bound on all weights"
        )
    predicted, value = ((q - low) / (high - low) for q in (terms.predicted, terms.value))  # within the range
    if flip:
        r, predicted, value = 1.0 - r, 1.0 - predicted, 1.0 - value
    return value + terms.weight * (r - predicted), assumed.max_weight
