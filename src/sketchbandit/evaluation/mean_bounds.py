"""Bounds on the mean of bounded numbers, as short as the normal ones for many numbers and honest for few.

Gaffke's bound (Gaffke 2005, Three test statistics for a nonparametric one-sided hypothesis on the mean of a
nonnegative variable; Learned-Miller and Thomas 2019, arXiv:1905.06208): one more number is added at the least
possible value, all n + 1 numbers get random weights, uniform over those that sum to one, and the bound is the
alpha-quantile of the weighted mean. For numbers 0 and 1 it is the bound of Clopper and Pearson. No upper
limit is needed for a lower bound. That it holds for every distribution is a conjecture; docs/coverage.md
has the measured coverage.

The weights are independent exponential variables E_i over their sum, so the weighted mean is at most t if and
only if Y = sum E_i (x_i - t) <= 0. The saddlepoint s of K(s) = -sum ln(1 - s (x_i - t)), where K'(s) = 0, is
that of the empirical likelihood: r² = -2 K(s) is the likelihood ratio. With u = s K''(s)^½ and Phi the normal
distribution function (Lugannani and Rice 1980, in the form of Barndorff-Nielsen),

    P(Y <= 0) = Phi(r + ln(u/r)/r).

With a = t + 1/s the condition K'(s) = 0 gives t = sum x_i/(a - x_i) / sum 1/(a - x_i), so only a is searched.
"""

import math
from functools import cache
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtri

from sketchbandit.arrays import Vector
from sketchbandit.linalg import inner

_EXACT = 4_000  # up to so many different numbers are kept; of more, those in the middle are pooled
_TAIL = 1_000  # numbers at either end that are never pooled
_STEP = 2.0  # of the search for a bracket, in the logarithm of the distance of a from the least number
_STEPS = 400  # at most: exp(-800) is 0
_TOLERANCE = 1e-9  # of that logarithm
_TINY = 1e-100  # of numbers: their squares may be rounded to 0


class Numbers(NamedTuple):
    """Numbers in ascending order, each with how often it occurs."""

    values: Vector
    counts: Vector

    @classmethod
    def of(cls, values: Vector, times: Vector | None = None) -> "Numbers":
        """Numbers, pooled if there are many: neighbours in the middle of the order become their mean.

        Pooling keeps the mean, and loses about one part in a million of the variance. ``times`` says how
        often each number occurs; None: once.
        """
        found, counts = counted(values, times)
        if len(found) <= _EXACT:
            return cls(found, counts)
        starts = np.arange(
            _TAIL, len(found) - _TAIL, max(1, (len(found) - 2 * _TAIL) // (_EXACT - 2 * _TAIL))
        )
        starts = np.concatenate([np.arange(_TAIL), starts, np.arange(len(found) - _TAIL, len(found))])
        together = np.add.reduceat(counts, starts)
        return cls(np.add.reduceat(found * counts, starts) / together, together)

    def flipped(self) -> "Numbers":
        """The negative numbers."""
        return Numbers(-self.values[::-1], self.counts[::-1])


def counted(values: Vector, times: Vector | None = None) -> tuple[Vector, Vector]:
    """The different numbers in ascending order, and how often each occurs.

    >>> counted(np.array([1.0, 0.0, 1.0]), np.array([2.0, 1.0, 3.0]))
    (array([0., 1.]), array([1., 5.]))
    """
    if times is None:
        found, often = np.unique(values, return_counts=True)
        return found, often.astype(np.float64)
    found, places = np.unique(values, return_inverse=True)
    return found, np.bincount(places, times).astype(np.float64)


def lower_bound(numbers: Numbers, least: float, alpha: float) -> float:
    """A lower bound on the mean, wrong with probability alpha < 1/2.

    ``least`` is the number that is added. That the bound holds is conjectured if no number can be below it.
    """
    base = min(least, float(numbers.values[0]))
    above, counts = np.append(least, numbers.values) - base, np.append(1.0, numbers.counts)
    span = float(above.max())
    if not span > 0.0:
        return base
    if span < _TINY:  # squares would be 0
        unit = Numbers((numbers.values - base) / span, numbers.counts)
        return base + span * lower_bound(unit, (least - base) / span, alpha)
    wanted, size = float(ndtri(alpha)), float(counts.sum())

    @cache
    def at(power: float) -> tuple[float, float]:
        return _signed_root(above, counts, size, span * math.exp(power))

    def excess(power: float) -> float:
        return at(power)[1] - wanted

    spread = math.sqrt(float((counts * (above - float((counts * above).sum()) / size) ** 2).sum()) / size)
    high = math.log(spread / span) + 0.5 * math.log(size) - math.log(-wanted)  # where normal numbers have it
    for _ in range(_STEPS):
        if excess(high) > 0.0:
            break
        high += _STEP
    low = high - _STEP
    for _ in range(_STEPS):
        if excess(low) <= 0.0:
            break
        low -= _STEP
    return base + at(brentq(excess, low, high, xtol=_TOLERANCE))[0]


def upper_bound(numbers: Numbers, most: float, alpha: float) -> float:
    """An upper bound on the mean, wrong with probability alpha; ``most`` is the number that is added."""
    return -lower_bound(numbers.flipped(), -most, alpha)


def _signed_root(above: Vector, counts: Vector, size: float, distance: float) -> tuple[float, float]:
    """For a at this distance below 0: the t that belongs to it, and the normal quantile of P(mean <= t).

    With gaps x - a and reach t - a = -1/s, a term 1 - s (x - t) is gap / reach.
    """
    gaps = above + distance
    shares = counts / gaps
    reach = size / float(shares.sum())
    ratio = 2.0 * (inner(counts, np.log(gaps)) - size * math.log(reach))
    root = -math.sqrt(max(ratio, 0.0))
    if root > -1e-3:  # ln(u/r)/r is of the order of the skewness there, and the root is not looked for
        return reach - distance, root
    spread = math.sqrt(reach**2 * float((shares / gaps).sum()) - size)
    return reach - distance, root + math.log(spread / -root) / root
