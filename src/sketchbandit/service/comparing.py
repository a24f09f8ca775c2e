"""What a bandit earned against what a uniform choice would have, from the probabilities it logged."""

import math
from dataclasses import dataclass
from typing import NamedTuple

from sketchbandit.service.history import Bucket

LEAST = 100
"""Rewards of equal weight that those seen are worth: with fewer the interval is too narrow too often."""
_QUANTILE = 1.959964  # of the normal distribution, for 95 %
_MOST_ERRORS = 4.0  # standard errors by which the mean weight may be off
_ROUNDING = 1e-9


class Unweighed(NamedTuple):
    """A reward of an arm shown first."""

    at: float
    """When it counts: at the deadline of its decision, or when it came if there is none."""
    reward: float
    arm_count: int

    def weighted(self, propensity: float) -> Bucket:
        """What it tells of a uniform choice, given the probability with which its arm was chosen."""
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
    """Mean rewards of the arms shown first, as they were chosen and as if drawn uniformly."""

    count: int
    mean_reward: float
    uniform: float
    """By inverse propensities: the mean of reward / (arms · probability), which is unbiased."""
    low: float
    high: float
    """A 95 % interval around it, by the normal approximation."""


def compare(total: Bucket) -> Comparison | None:
    """None: ``doubts`` says why not.

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
    """Why the rewards cannot tell what a uniform choice would earn; None: they can.

    n rewards of weights w are worth (Σ w)² / Σ w² of equal weight (the effective sample size): where a few
    rewards weigh most, it is their number that counts.
    Weights are 1 on average, whatever the rule. If they are not, arms that a uniform choice would play were
    drawn so rarely that the rewards seen do not stand for them, and the interval would be wrong.
    """
    worth = total.weight_sum * total.weight_sum / total.weight_squares if total.compared else 0.0
    if not worth >= LEAST:  # or it is not a number: a weight was too large for its square
        return (
            f"{total.compared} rewards with a known probability so far, worth {worth:.1f} of a "
            f"uniform choice; {LEAST} are needed. More time helps, or a larger uniform share."
        )
    mean, error = _mean(total.weight_sum, total.weight_squares, total.compared)
    if abs(mean - 1.0) > _MOST_ERRORS * error + _ROUNDING:
        return (
            "Some arms were drawn too rarely to tell what a uniform choice would earn: the weights of the "
            f"rewards seen have a mean of {mean:.2g}, not 1. More time helps, or a larger uniform share."
        )
    return None


def _mean(total: float, squares: float, count: int) -> tuple[float, float]:
    """The mean and its standard error."""
    mean = total / count
    return mean, math.sqrt(max(squares / count - mean * mean, 0.0) / (count - 1))
