"""Compares what a bandit earned with what a uniform choice would have earned, by logged propensities."""

import math
from dataclasses import dataclass
from typing import NamedTuple

from sketchbandit_service.history import Bucket

LEAST = 100
"""The least effective sample size. With fewer rewards the interval is too narrow too often."""
_QUANTILE = 1.959964  # of the normal distribution, for 95 %
_MOST_ERRORS = 4.0  # standard errors by which the mean weight may be off
_ROUNDING = 1e-9


class Unweighed(NamedTuple):
    """The reward of an arm that was shown first."""

    at: float
    """When it counts: at the deadline of its decision, or when it came if there is no deadline."""
    reward: float
    arm_count: int

    def weighted(self, propensity: float) -> Bucket:
        """What the reward says about a uniform choice, given the propensity of its arm."""
        weight = 1.0 / (self.arm_count * propensity)
        value = weight * self.reward
        return Bucket(
            compared=1,
            compared_sum=self.reward,
            uniform_sum=value,
            uniform_squares=value * value,
            weight_sum=weight,
            weight_squares=weight * weight,
        )


@dataclass(frozen=True)
class Comparison:
    """Mean reward of the first arms, as they were chosen and as if drawn uniformly."""

    count: int
    mean_reward: float
    uniform: float
    """The unbiased estimate by inverse propensities: the mean of reward / (arms · propensity)."""
    low: float
    high: float
    """The ends of its 95 % interval, by the normal approximation."""


def compare(total: Bucket) -> Comparison | None:
    """Compare. None if it is not possible; ``doubts`` says why.

    >>> one = Unweighed(at=0.0, reward=1.0, arm_count=2)
    >>> compare(sum([one.weighted(0.5)] * 100, Bucket()))
    Comparison(count=100, mean_reward=1.0, uniform=1.0, low=1.0, high=1.0)
    """
    if doubts(total) is not None:
        return None
    count = total.compared
    uniform, error = _mean(total.uniform_sum, total.uniform_squares, count)
    half = _QUANTILE * error
    return Comparison(count, total.compared_sum / count, uniform, uniform - half, uniform + half)


def doubts(total: Bucket) -> str | None:
    """Why the rewards cannot say what a uniform choice would earn. None if they can.

    The effective sample size of rewards with weights w is (Σ w)² / Σ w². If a few rewards have most of the
    weight, it is about their number. For every rule the mean weight is 1. If it is not, some arms that a
    uniform choice would play were drawn so rarely that the rewards do not represent them. Then the interval
    would be wrong.
    """
    worth = total.weight_sum * total.weight_sum / total.weight_squares if total.compared else 0.0
    if not worth >= LEAST:  # also if it is NaN: the square of a weight overflowed
        return (
            f"{total.compared} rewards with a known propensity so far; their effective sample size for a "
            f"uniform choice is {worth:.1f}, and {LEAST} are needed. More time or more exploration helps."
        )
    if total.uniform_squares == 0.0:
        return f"All {total.compared} rewards with a known propensity are 0: that compares nothing yet."
    mean, error = _mean(total.weight_sum, total.weight_squares, total.compared)
    if abs(mean - 1.0) > _MOST_ERRORS * error + _ROUNDING:
        return (
            "Some arms were drawn too rarely to say what a uniform choice would earn: the mean weight of the "
            f"rewards is {mean:.2g} instead of 1. More time or more exploration helps."
        )
    return None


def _mean(total: float, squares: float, count: int) -> tuple[float, float]:
    """The mean and its standard error."""
    mean = total / count
    return mean, math.sqrt(max(squares / count - mean * mean, 0.0) / (count - 1))
