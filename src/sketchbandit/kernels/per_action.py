# mypy: allow-untyped-defs, allow-untyped-calls
"""One context and many models: their means, and the leverage of those that can still win."""

from math import isfinite

from sketchbandit.kernels.compiling import compiled, compiled_sum
from sketchbandit.kernels.dense import need_dense
from sketchbandit.kernels.rows import leverage_until, need_rows
from sketchbandit.kernels.scores import upper_bound_of
from sketchbandit.kernels.sums import dot, dot_and_norm, need

_MARGIN = 1e-9  # of |x|² / shift: far more than rounding, so that none is ruled out that could be the best
_LOOK_EVERY = 16  # rows of P between two looks whether the model can still win


@compiled
def score_models(x, thetas, images, lags, which, shifts, radii, means, bounds):
    """Means and optimistic bounds of some models; which bound is largest (-1: one is infinite), and |x|².

    The theta of model k is that of row k less its lag times its image. Models without a baseline have lag 0.
    """
    need(thetas.shape[1] == len(x) and min(len(shifts), len(radii), len(lags)) >= len(thetas))
    need(images.shape[0] == 0 or images.shape == thetas.shape)
    need(len(which) > 0 and min(len(means), len(bounds)) >= len(which))
    first, norm_sq, are_finite = 0, 0.0, True
    for i in range(len(which)):
        k = which[i]
        need(0 <= k < len(thetas))
        means[i], norm_sq = dot_and_norm(x, thetas[k])
        if lags[k] != 0.0 and len(images) > 0:
            means[i] -= lags[k] * dot(images[k], x, len(x))
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


@compiled_sum
def from_diagonal(inverse, i, x):
    """x_k P_kj x_j summed over the rows k = i to i + 3, and over j from the diagonal on, twice beside it."""
    beside = x[i + 4 :]
    r0, r1 = inverse[i, i + 4 :], inverse[i + 1, i + 4 :]
    r2, r3 = inverse[i + 2, i + 4 :], inverse[i + 3, i + 4 :]
    t0 = t1 = t2 = t3 = 0.0
    for j in range(len(beside)):
        t0 += r0[j] * beside[j]
        t1 += r1[j] * beside[j]
        t2 += r2[j] * beside[j]
        t3 += r3[j] * beside[j]
    x0, x1, x2, x3 = x[i], x[i + 1], x[i + 2], x[i + 3]
    t0 += inverse[i, i] * x0 / 2.0 + inverse[i, i + 1] * x1 + inverse[i, i + 2] * x2 + inverse[i, i + 3] * x3
    t1 += inverse[i + 1, i + 1] * x1 / 2.0 + inverse[i + 1, i + 2] * x2 + inverse[i + 1, i + 3] * x3
    t2 += inverse[i + 2, i + 2] * x2 / 2.0 + inverse[i + 2, i + 3] * x3
    t3 += inverse[i + 3, i + 3] * x3 / 2.0
    return 2.0 * (x0 * t0 + x1 * t1 + x2 * t2 + x3 * t3)


@compiled
def may_win_dense(x, norm_sq, mean, radius, least, inverse, pending, pending_count, shift):
    """Whether the score may reach ``least``: by half of P at most, and less where it cannot.

    After some rows x'P x is at most what they and their columns add up to, plus |the rest of x|² / shift.
    """
    need_dense(len(x), inverse, pending, pending_count, x, pending[:, 0])
    whole = _MARGIN * norm_sq / shift
    for i in range(pending_count):
        seen = dot(pending[i], x, len(x))
        whole -= seen * seen
    rest, i = norm_sq, 0
    while i < len(x):
        if i + 4 <= len(x):
            whole += from_diagonal(inverse, i, x)
            rest -= x[i] * x[i] + x[i + 1] * x[i + 1] + x[i + 2] * x[i + 2] + x[i + 3] * x[i + 3]
            i += 4
        else:
            whole += x[i] * (2.0 * dot(inverse[i, i:], x[i:], len(x) - i) - inverse[i, i] * x[i])
            rest -= x[i] * x[i]
            i += 1
        if i % _LOOK_EVERY == 0 or i == len(x):
            most = max(whole + max(rest, 0.0) / shift, 0.0)
            if upper_bound_of(mean, radius, most) < least:
                return False
    return True
