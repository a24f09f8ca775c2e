"""The cost of each reward for a one-pass estimate. docs/beyond-linear.md has the proofs."""

import math

_WIDEST = 1.0  # the largest variance to try; the bound holds for any
_MOST_REACH = 1e300  # keeps reach times curvature finite
_SERIES_UP_TO = 1e-4  # below it, 2·exp(v/2)·Phi(sqrt v) - 1 - sqrt(2v/pi) would cancel


def mix_cost(reach: float, curvature: float, *, most_curvature: float = math.inf) -> float:
    """The excess of the mix loss of a round over the loss at the new parameter, apart from the step itself.

    ``reach`` is eta·x'A^-1 x. ``curvature`` is that of the loss along x at the new parameter, and
    ``most_curvature`` an upper bound on it everywhere. With v = min(reach / (1 + reach·curvature), 1) it is

        (v/reach - 1 - ln(v/reach)) / 2 + min(curvature·E[exp|z| - 1 - |z|], most_curvature·v/2),

    where z is from N(0, v). If the reach is small, this is about ln(1 + reach·curvature) / 2.

    Examples
    --------
    >>> mix_cost(0.0, 0.25)
    0.0
    >>> round(mix_cost(0.01, 0.25), 5), round(0.5 * math.log1p(0.0025), 5)
    (0.00132, 0.00125)

    """
    if not reach > 0.0:
        return 0.0
    y = min(reach * curvature, _MOST_REACH)
    variance = min(reach / (1.0 + y), _WIDEST)
    excess = min(curvature * _beyond_linear(variance), 0.5 * most_curvature * variance)
    if variance < _WIDEST:  # the ratio is 1/(1 + y), so its logarithm can be computed to all digits
        return 0.5 * (math.log1p(y) - y / (1.0 + y)) + excess
    ratio = variance / reach
    return 0.5 * (ratio - 1.0 - math.log(ratio)) + excess


def _beyond_linear(variance: float) -> float:
    """E[exp|z| - 1 - |z|], z from N(0, variance)."""
    root = math.sqrt(variance)
    if variance < _SERIES_UP_TO:  # E|z|^k / k! for k = 2 to 5
        odd = math.sqrt(2.0 / math.pi) * root * variance
        return variance / 2.0 + odd / 3.0 + variance * variance / 8.0 + odd * variance / 15.0
    return 2.0 * math.exp(variance / 2.0) * _normal(root) - 1.0 - root * math.sqrt(2.0 / math.pi)


def _normal(z: float) -> float:
    return 0.5 * math.erfc(-z / math.sqrt(2.0))
