# mypy: allow-untyped-defs, allow-untyped-calls
"""One context and many models: their means, and the leverage of those that can still win."""

from math import isfinite

from sketchbandit.kernels.compiling import compiled
from sketchbandit.kernels.rows import leverage_until, need_rows
from sketchbandit.kernels.scores import upper_bound_of
from sketchbandit.kernels.sums import dot_and_norm, need


@compiled
def score_models(x, thetas, which, shifts, radii, means, bounds):
    """Means and optimistic bounds of some models; which bound is largest (-1: one is infinite), and |x|²."""
    need(thetas.shape[1] == len(x) and min(len(shifts), len(radii)) >= len(thetas))
    need(len(which) > 0 and min(len(means), len(bounds)) >= len(which))
    first, norm_sq, are_finite = 0, 0.0, True
    for i in range(len(which)):
        k = which[i]
        need(0 <= k < len(thetas))
        means[i], norm_sq = dot_and_norm(x, thetas[k])
        bounds[i] = upper_bound_of(means[i], radii[k], norm_sq / shifts[k])
        are_finite = are_finite and isfinite(bounds[i])
        if bounds[i] > bounds[first]:
            first = i
    return first if are_finite else -1, norm_sq


@compiled
def leverage_above(x, norm_sq, mean, radius, least, rows, factor, count, shift, y, u):
    """``leverage_rows``, but -1 as soon as the score must stay below ``least``."""
    need_rows(len(x), rows, factor, count, y, u)
    return leverage_until(x, norm_sq, mean, radius, least, rows, factor, count, shift, y, u)
