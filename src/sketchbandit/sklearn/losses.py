"""Losses l(z, y) of a margin z, and how much they curve: what online Newton asks of them.

A loss has the curvature sigma at z, on the interval [-C, C], if for every b of it

    l(b) >= l(z) + l'(z) (b - z) + sigma/2 · (l'(z) (b - z))²        (Luo et al. 2016, Assumption 2).

The largest such sigma at one z, times l'(z)², is what ``local`` tells: the weight of x x' in the matrix of
that round. The least of all z and y is the constant that ``uniform`` bounds from below.
"""

import math
from typing import Protocol

_NEAR = 1e-4  # if b - z is smaller, the ratio is computed from its series


class Loss(Protocol):
    """A convex function of the margin."""

    most_weight: float
    """An upper bound on ``local``."""

    def slope(self, z: float, y: float) -> float:
        """l'(z)."""

    def local(self, z: float, bound: float) -> float:
        """The minimum of 2 (l(b) - l(z) - l'(z)(b - z)) / (b - z)² over b within the bound C."""

    def uniform(self, bound: float) -> float:
        """A sigma valid for all z, b and y within the bound C."""

    def most_slope(self, bound: float, largest: float) -> float:
        """An upper bound on |l'|, if |z| is within the bound and |y| is at most ``largest``."""


class SquaredLoss:
    """(z - y)²/2. Its curvature is constant: with ``local``, online Newton is recursive least squares."""

    most_weight = 1.0

    def slope(self, z: float, y: float) -> float:
        """z - y."""
        return z - y

    def local(self, z: float, bound: float) -> float:
        """1: sigma is 1/(z - y)²."""
        del z, bound
        return 1.0

    def uniform(self, bound: float) -> float:
        """1/(2C)², for |z - y| <= 2C."""
        return 0.25 / bound**2

    def most_slope(self, bound: float, largest: float) -> float:
        """The bound for margins within the bound; without one, for the margins at the start."""
        return largest + (bound if math.isfinite(bound) else 0.0)


class LogisticLoss:
    """ln(1 + exp(-y z)), y = -1 or 1.

    Examples
    --------
    >>> loss = LogisticLoss()
    >>> round(loss.local(0.0, bound=1e-6), 6), round(loss.local(0.0, bound=5.0), 3)
    (0.25, 0.145)

    """

    most_weight = 0.25

    def slope(self, z: float, y: float) -> float:
        """-y / (1 + exp(y z))."""
        return -y / (1.0 + math.exp(y * z))

    def local(self, z: float, bound: float) -> float:
        """At b = -C or C: as a function of b, the mean of l'' between z and b rises, and then falls.

        The ratio is the mean of l'' over the way from z to b, with weights 2(1 - s) at the part s of it, and
        l'' rises up to 0 and falls from there.
        """
        return min(_mean_curvature(z, -bound - z), _mean_curvature(z, bound - z))

    def uniform(self, bound: float) -> float:
        """2 gamma (U - ln(1 + U)) / U², gamma = exp(-C), U = 2 C gamma.

        exp(-gamma l) is concave, for l''/l'² = exp(y z) >= gamma. So l(b) >= l(z) - ln(1 - u)/gamma with
        u = gamma l'(z)(b - z) >= -U, and (-ln(1 - u) - u)/u² grows with u.
        """
        gamma = math.exp(-bound)
        U = 2.0 * bound * gamma
        share = 0.5 - U / 3.0 if U < _NEAR else (U - math.log1p(U)) / U**2
        return 2.0 * gamma * share

    def most_slope(self, bound: float, largest: float) -> float:
        """1."""
        del bound, largest
        return 1.0


def _mean_curvature(z: float, h: float) -> float:
    """2 (l(z + h) - l(z) - l'(z) h) / h² of the logistic loss, whatever the label.

    With p = 1/(1 + exp(-z)) the numerator is 2 (ln(1 + p (exp(h) - 1)) - p h); at -z and -h it is the same.
    """
    if z > 0.0:
        z, h = -z, -h  # then p is small, and nothing cancels
    e = math.exp(z)
    p = e / (1.0 + e)
    if abs(h) < _NEAR:
        return p * (1.0 - p) * (1.0 + (1.0 - 2.0 * p) * h / 3.0)
    return 2.0 * (math.log1p(p * math.expm1(h)) - p * h) / h**2
