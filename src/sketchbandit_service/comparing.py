"""Compares what a bandit earned with what a uniform choice would have earned, by logged propensities.

A decision among K arms whose arm was chosen with probability p has the weight w = 1 / (K p). The estimate is
sum w r / sum w ("snips"), and its interval that of ``sketchbandit.evaluation`` for bounded rewards.
"""

from dataclasses import dataclass
from typing import NamedTuple

from sketchbandit.evaluation.bounded import Bounded, Selected
from sketchbandit.evaluation.intervals import Assumed
from sketchbandit.evaluation.off_policy import range_with
from sketchbandit.evaluation.terms import Terms
from sketchbandit.evaluation.weights import (
    common_reward,
    effective_size,
    mean_weight,
    too_few,
    unbalanced,
    uncommon_decisions,
)
from sketchbandit_service.weighted_rewards import WeightedRewards

LEAST = 100
"""Rewards that are needed: the range of all is taken from those seen."""
_LEVEL = 0.95
_UNIFORM, _METHOD = "uniform", "snips"
_LARGEST = 1e9  # weight: it outweighs all others; its powers are numbers


class Unweighed(NamedTuple):
    """The reward of an arm that was shown first."""

    at: float
    """When it counts: at the deadline of its decision, or when it came if there is no deadline."""
    reward: float
    arm_count: int

    def weighted(self, propensity: float) -> WeightedRewards:
        """What the reward says about a uniform choice, given the propensity of its arm."""
        found = WeightedRewards()
        found.add(min(1.0 / (self.arm_count * propensity), _LARGEST), self.reward)
        return found


@dataclass(frozen=True)
class Comparison:
    """Mean reward of the first arms, as they were chosen and as if drawn uniformly."""

    count: int
    mean_reward: float
    uniform: float
    """The estimate by inverse propensities, self-normalised."""
    low: float
    high: float
    """The ends of its 95 % interval."""


def compare(rewards: WeightedRewards) -> Comparison | str:
    """Compare; or say why the rewards cannot tell what a uniform choice would earn.

    >>> one = WeightedRewards()
    >>> for place in range(1000):
    ...     one.add(weight=1.0, reward=float(place % 2))
    >>> found = compare(one)
    >>> found.uniform, round(found.low, 3), round(found.high, 3)
    (0.5, 0.469, 0.531)
    """
    terms, count = rewards.terms(), rewards.count
    if count < LEAST:
        return f"{count} rewards with a known propensity so far, and {LEAST} are needed. More time helps."
    worth = effective_size(terms)
    if worth < LEAST:
        return (
            f"{count:,} rewards with a known propensity so far are worth {worth:.1f} of a uniform choice, "
            f"and {LEAST} are needed. More time or more exploration helps."
        )
    common = common_reward(terms.reward, terms.times)
    uncommon = uncommon_decisions(terms, common)
    if why := unbalanced(*mean_weight(terms)) or too_few(uncommon, count, common):
        return (
            f"{count:,} rewards with a known propensity so far cannot say what a uniform choice would earn: "
            f"{why}. More time or more exploration helps."
        )
    ends = _interval(terms, Selected(common, uncommon))
    uniform = terms.total(terms.weight * terms.reward) / terms.total(terms.weight)
    return Comparison(count, rewards.reward_sum / count, uniform, *ends)


def _interval(terms: Terms, selected: Selected) -> tuple[float, float]:
    """The interval of the uniform choice; rewards are within the range of those seen."""
    seen = range_with(None, float(terms.reward.min()), float(terms.reward.max()))
    judge = Bounded({_UNIFORM: terms}, _LEVEL, Assumed(seen, None), {_UNIFORM: selected})
    return judge.interval(_UNIFORM, _METHOD)
