"""Intervals for bounded rewards and any weights, from one pair of bounds on a mean (``mean_bounds``).

Every unbiased estimate is the mean of z = b + w (r - q) over the decisions: q = 0, b = 0 for "ips", the model
for "dr", and the estimate itself for both q and b for "snips". The one number more that the bounds need is
that of a decision with the reward that moves the mean furthest, b + W (most - q) above and b + W (least - q)
below. W is the largest possible weight if it is known (``max_weight``). Otherwise it is sum w² / sum w, the
mean weight of decisions as the candidate makes them: a log meets weight w with a chance in proportion to 1/w.

Where few decisions carry sum w², this is too little: what half of the candidate's choices earn may be known
from five heavy decisions. Until a hundred do, by (sum w²)² / sum w⁴, the number added is at least as far out
as any that was seen; until ten do, W is their weight, that above which half of sum w² lies.

With q = b = least, z is at least ``least`` whatever the weights, and with q = b = most it is at most
``most``. So these two give bounds for any weights. They are longer, unless one decision of weight W would
move the mean by more than its own error. Then no interval exceeds them.
"""

import math
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
from scipy.special import gammainc, ndtri

from sketchbandit.arrays import Vector
from sketchbandit.evaluation.estimators import METHODS
from sketchbandit.evaluation.intervals import Assumed, Interval
from sketchbandit.evaluation.mean_bounds import Numbers, lower_bound, upper_bound
from sketchbandit.evaluation.results import LOGGED
from sketchbandit.evaluation.terms import Terms
from sketchbandit.evaluation.weights import LEAST_UNCOMMON

_ROUNDS = 30  # of the correction for selection, at most
_FEW, _MANY = 10, 100  # decisions: (sum w²)² / sum w⁴, the effective size of squared weights
_CERTAIN = 0.999  # a chance of selection that needs no correction


class Selected(NamedTuple):
    """How an interval came to be given: only if enough uncommon rewards were seen."""

    common: float
    """The most common reward; nan if none is."""
    uncommon: float
    """How many decisions count that have another (``Weights.uncommon``)."""


class Bounded:
    """Intervals for rewards within a range. Methods without a model share theirs: it is computed once."""

    def __init__(
        self, terms: Mapping[str, Terms], level: float, assumed: Assumed, selected: Mapping[str, Selected]
    ) -> None:
        self._terms, self._alpha = terms, (1.0 - level) / 2.0
        self._assumed, self._selected = assumed, selected
        self._values: dict[tuple[str, bool], Interval] = {}
        self._differences: dict[tuple[str, str, bool], Interval] = {}

    def of_log(self) -> Interval:
        """The interval of the mean reward of the log."""
        log = self._terms[LOGGED]
        return of_rewards(log.reward, 2.0 * self._alpha, self._assumed.reward_range, log.times)

    def interval(self, name: str, method: str) -> Interval:
        """The interval of a value."""
        key, (least, most) = (name, METHODS[method].needs_model), self._assumed.reward_range
        if key not in self._values:
            self._values[key] = self._value(*key)
        value = METHODS[method].sample(self._terms[name]).value
        return self._values[key].stretched(min(max(value, least), most))

    def difference(self, one: str, other: str, method: str) -> Interval:
        """The interval of one - other, paired."""
        key = (one, other, METHODS[method].needs_model)
        if key not in self._differences:
            self._differences[key] = Interval(
                self._least_difference(*key), -self._least_difference(other, one, key[2])
            )
        return self._differences[key]

    def _value(self, name: str, with_model: bool) -> Interval:
        terms, selected, (least, most) = self._terms[name], self._selected[name], self._assumed.reward_range
        z, q, b = _controlled(terms, with_model)
        further, are_many = self._next_weight(terms)
        lowest = float(b.min()) + further * min(least - float(q.max()), 0.0)
        highest = float(b.max()) + further * max(most - float(q.min()), 0.0)
        if not are_many:
            lowest, highest = min(lowest, float(z.min())), max(highest, float(z.max()))
        numbers, value, times = Numbers.of(z, terms.times), terms.mean(z), terms.times
        is_heavy = self._is_heavy(terms, terms.weight, further)
        below = Numbers.of(least + terms.weight * (terms.reward - least), times) if is_heavy else None
        above = Numbers.of(-most - terms.weight * (terms.reward - most), times) if is_heavy else None

        def low(share: float) -> float:
            return _at_least(lower_bound(numbers, lowest, share), below, least, share)

        def high(share: float) -> float:
            return -_at_least(-upper_bound(numbers, highest, share), above, -most, share)

        ends = Interval(_end(low, self._alpha, value, selected), _end(high, self._alpha, value, selected))
        return Interval(max(ends.low, least), min(ends.high, most))

    def _least_difference(self, name: str, of_other: str, with_model: bool) -> float:
        """The lower end of one - other. What selects ``one`` matters: it makes it look better, or worse."""
        (least, most), alpha = self._assumed.reward_range, self._alpha
        one, other, selected = self._terms[name], self._terms[of_other], self._selected.get(name)
        z, q, b = _controlled(one, with_model)
        z_other, q_other, b_other = _controlled(other, with_model)
        (further, are_many), (further_other, are_others) = self._next_weight(one), self._next_weight(other)
        falls = further * max(float(q.max()) - least, 0.0)
        rises = further_other * max(most - float(q_other.min()), 0.0)
        lowest = float((b - b_other).min()) - max(falls, rises)
        numbers = Numbers.of(z - z_other, one.times)
        if not (are_many and are_others):
            lowest = min(lowest, float(numbers.values[0]))
        robust = one.weight * (one.reward - least) + other.weight * (most - other.reward) - (most - least)
        is_heavy = self._is_heavy(one, one.weight - other.weight, max(further, further_other))
        any_weights, value = Numbers.of(robust, one.times) if is_heavy else None, one.mean(z_other)

        def low(share: float) -> float:
            """As the value of one, if that of the other is as estimated."""
            end = lower_bound(numbers, lowest, share)
            return value + _at_least(end, any_weights, least - most, share)

        found = low(alpha) if selected is None else _end(low, alpha, one.mean(z), selected)
        return max(found - value, least - most)

    def _is_heavy(self, terms: Terms, weight: Vector, further: float) -> bool:
        """Whether one decision of weight W moves the mean by more than the error of the mean.

        The former is about W ln(1/alpha) / n, the latter z·deviation / √n.
        """
        error = -float(ndtri(self._alpha)) * math.sqrt(terms.variance(weight) * len(terms))
        return -further * math.log(self._alpha) > error

    def _next_weight(self, terms: Terms) -> tuple[float, bool]:
        """W, and whether many decisions carry sum w². The weights of the policy that made the log are 1."""
        if self._assumed.max_weight is not None and terms is not self._terms[LOGGED]:
            return self._assumed.max_weight, True
        squares = terms.weight**2
        total = terms.total(squares)
        if not total > 0.0:
            return 0.0, False
        size = total * total / terms.total(squares * squares)
        if size >= _FEW:
            return total / terms.total(terms.weight), size >= _MANY
        order = np.argsort(-squares)
        shares = squares if terms.times is None else terms.times * squares
        half = int(np.searchsorted(np.cumsum(shares[order]), 0.5 * total))
        return float(terms.weight[order[half]]), False


def _at_least(end: float, any_weights: Numbers | None, least: float, share: float) -> float:
    """A lower end, or that for any weights if there is one and it is higher."""
    return end if any_weights is None else max(end, lower_bound(any_weights, least, share))


def of_rewards(
    reward: Vector, error: float, reward_range: tuple[float, float], times: Vector | None = None
) -> Interval:
    """The interval of the mean of rewards within a range, wrong with probability ``error``."""
    numbers, (least, most) = Numbers.of(reward, times), reward_range
    return Interval(lower_bound(numbers, least, error / 2.0), upper_bound(numbers, most, error / 2.0))


def _controlled(terms: Terms, with_model: bool) -> tuple[Vector, Vector, Vector]:
    """z, q and b. The interval of "ips" is that of "snips": the same value, and the constant is free."""
    if with_model:
        q, b = terms.predicted, terms.value
    else:
        total = terms.total(terms.weight)
        q = b = np.array([terms.total(terms.weight * terms.reward) / total if total else 0.0])
    return b + terms.weight * (terms.reward - q), q, b


def _end(bound: Callable[[float], float], alpha: float, value: float, selected: Selected) -> float:
    """An end that is wrong with probability alpha *given* that there is an interval.

    An interval is only given from ``LEAST_UNCOMMON`` uncommon rewards on, so where it is given, there are
    more than usual. If the mean is v, their number is nearly Poisson with a mean in proportion to v. So the
    end is that for alpha times the chance to be given, at the end itself.
    """
    end = bound(alpha)
    away = value - selected.common
    if not away * (end - selected.common) > 0.0 or not abs(end - selected.common) < abs(away):
        return end  # the end beyond the value, or no reward is common
    for _ in range(_ROUNDS):
        expected = selected.uncommon * (end - selected.common) / away
        chance = float(gammainc(LEAST_UNCOMMON, max(expected, 0.0)))
        if chance > _CERTAIN:
            break
        before, end = end, bound(alpha * max(chance, 1e-12))
        if abs(end - before) <= 1e-3 * abs(value - end):
            break
    return end
