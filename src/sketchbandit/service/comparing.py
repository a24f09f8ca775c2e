"""What a bandit earned against what a uniform choice would have, from the probabilities it logged."""

import math
from dataclasses import dataclass
from typing import NamedTuple

from sketchbandit.service.history import Bucket

LEAST = 30
"""Rewards: with fewer the interval would say little, and what it says could be wrong."""
_QUANTILE = 1.959964  # of the normal distribution, for 95 %


class Unweighed(NamedTuple):
    """A reward of an arm shown first."""

    at: float
    reward: float
    arm_count: int

    def weighted(self, propensity: float) -> Bucket:
        """What it tells of a uniform choice, given the probability with which its arm was chosen."""
        value = self.reward / (self.arm_count * propensity)
        return Bucket(compared=1, compared_sum=self.reward, uniform_sum=value, uniform_squares=value * value)


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
    """None: too few rewards whose probability is known.

    >>> compare(Bucket(compared=100, compared_sum=60.0, uniform_sum=25.0, uniform_squares=31.0))
    Comparison(count=100, mean_reward=0.6, uniform=0.25, low=0.1517..., high=0.3482...)
    """
    count = total.compared
    if count < LEAST:
        return None
    uniform = total.uniform_sum / count
    variance = max(total.uniform_squares / count - uniform**2, 0.0) / (count - 1)
    half = _QUANTILE * math.sqrt(variance)
    return Comparison(count, total.compared_sum / count, uniform, uniform - half, uniform + half)
