"""Any-time intervals of estimates and of their differences, all from ``LowerBound``."""

from typing import NamedTuple

from sketchbandit.arrays import Vector
from sketchbandit.errors import InputError
from sketchbandit.evaluation.intervals import Interval
from sketchbandit.evaluation.sequences import LowerBound, unit_rewards
from sketchbandit.evaluation.terms import Terms

METHODS = ("ips", "dr")
"""Those that have such an interval."""


class Assumed(NamedTuple):
    """What an any-time interval rests on."""

    reward_range: tuple[float, float]
    max_weight: float | None
    """No weight is ever larger: the doubly robust needs it."""


def interval(terms: Terms, method: str, level: float, assumed: Assumed) -> Interval:
    """Of a value: from w r and w (1 - r), or, doubly robust, from the same with the model in it."""
    alpha = (1.0 - level) / 2.0
    low, high = assumed.reward_range
    lower = _bound(*_parts(terms, method, assumed, flip=False), alpha)
    upper = 1.0 - _bound(*_parts(terms, method, assumed, flip=True), alpha)
    return Interval(low + (high - low) * max(lower, 0.0), low + (high - low) * min(upper, 1.0))


def difference(one: Terms, other: Terms, method: str, level: float, assumed: Assumed) -> Interval:
    """Of one less other: w r of the one and w (1 - r) of the other have together the mean 1 + difference."""
    alpha = (1.0 - level) / 2.0
    low, high = assumed.reward_range
    ends = []
    for first, second in ((one, other), (other, one)):
        plus, of_plus = _parts(first, method, assumed, flip=False)
        minus, of_minus = _parts(second, method, assumed, flip=True)
        ends.append(_bound(plus + minus, of_plus + of_minus, alpha, most=2.0) - 1.0)
    return Interval((high - low) * max(ends[0], -1.0), (high - low) * min(-ends[1], 1.0))


def _bound(numbers: Vector, shift: float, alpha: float, most: float = 1.0) -> float:
    """The bound on the mean of numbers of at least -shift, which is at most ``most``."""
    bound = LowerBound(alpha)
    bound.update((numbers + shift) / (most + shift))
    return bound.value * (most + shift) - shift


def _parts(terms: Terms, method: str, assumed: Assumed, *, flip: bool) -> tuple[Vector, float]:
    """Numbers whose mean is the value (flipped: 1 less it), and by how much they may lie below zero."""
    low, high = assumed.reward_range
    r = unit_rewards(terms.reward, assumed.reward_range)
    if method == "ips":
        return terms.weight * (1.0 - r if flip else r), 0.0
    if assumed.max_weight is None:
        raise InputError(
            "the any-time interval of dr needs max_weight, a bound on pi(a|x)/p known beforehand: K / floor, "
            "where the log was made with a floor; that of ips needs none"
        )
    most = float(terms.weight.max())
    if most > assumed.max_weight:
        raise InputError(f"a weight is {most:g}, and max_weight is {assumed.max_weight:g}")
    predicted, value = ((q - low) / (high - low) for q in (terms.predicted, terms.value))  # within the range
    if flip:
        r, predicted, value = 1.0 - r, 1.0 - predicted, 1.0 - value
    return value + terms.weight * (r - predicted), assumed.max_weight
