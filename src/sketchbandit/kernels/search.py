# mypy: allow-untyped-defs, allow-untyped-calls
"""The arm, or the model, of the largest upper confidence bound, without the width of every one."""

from math import inf, isfinite

import numpy as np

from sketchbandit.kernels.compiling import compiled, compiled_sum
from sketchbandit.kernels.dense import leverage_of_dense, need_dense
from sketchbandit.kernels.lens import inner_dim, norm_at, row_at, scan
from sketchbandit.kernels.low_rank import leverage_until, need_rows
from sketchbandit.kernels.sums import dot, dot_and_norm, need, upper_bound_of

_MARGIN = 1e-9  # of |x|² / shift: far more than rounding, so that none is ruled out that could be the best
_LOOK_EVERY = 16  # rows of P between two looks whether the model can still win


@compiled
def look(arms, lens, theta, shift, radius):
    """Means, squared norms and optimistic bounds, and which bound is largest; -1 if one is not finite."""
    means = np.empty(len(arms))
    norms_sq = np.empty(len(arms))
    bounds = np.empty(len(arms))
    scan(arms, lens, theta, means, norms_sq)
    first = 0
    for k in range(len(arms)):
        bounds[k] = upper_bound_of(means[k], radius, norms_sq[k] / shift)
        if not isfinite(bounds[k]):
            return means, norms_sq, bounds, -1
        if bounds[k] > bounds[first]:
            first = k
    return means, norms_sq, bounds, first


@compiled
def search_rows(
    arms, lens, theta, rows, factor, count, shift, radius, best_x, best_y, best_u, best_remainder
):
    """The best arm, with its x, y, u and |x|² - |u|²; -1 if a score is not finite."""
    need_rows(len(theta), rows, factor, count, best_y, best_u)
    need(len(best_x) == len(theta) and len(best_y) == len(best_u) == count)
    means, norms_sq, bounds, first = look(arms, lens, theta, shift, radius)
    if first < 0:
        return -1
    room = np.empty(len(theta))
    y = np.empty(count)
    u = np.empty(count)
    best = -1
    score = -inf
    for turn in range(len(arms) + 1):  # the most promising arm first, then all others
        k = first if turn == 0 else turn - 1
        if turn > 0 and k == first:
            continue
        if bounds[k] < score:
            continue
        x = row_at(arms, lens, k, room)
        norm_sq = norm_at(arms, lens, k, x, norms_sq[k])
        remainder = leverage_until(x, norm_sq, means[k], radius, score, rows, factor, count, shift, y, u)
        if remainder < 0.0:
            continue
        value = upper_bound_of(means[k], radius, remainder / shift)
        if value > score or (value == score and k < best):
            score, best = value, k
            best_x[:] = x
            best_y[:] = y
            best_u[:] = u
            best_remainder[0] = remainder
    return best


@compiled
def search_dense(
    arms,
    lens,
    theta,
    inverse,
    pending,
    pending_count,
    shift,
    radius,
    most,
    best_x,
    best_image,
    best_seen,
    best_whole,
):
    """The best arm, with its x, P x, Q x and x'A^-1 x.

    -1 if a score is not finite, -2 if more than ``most`` arms had to be looked at.
    """
    need_dense(len(theta), inverse, pending, pending_count, best_image, best_seen)
    need(len(best_x) == len(theta))
    means, norms_sq, bounds, first = look(arms, lens, theta, shift, radius)
    if first < 0:
        return -1
    room = np.empty(len(theta))
    image = np.empty(len(theta))
    seen = np.empty(pending_count)
    best = -1
    score = -inf
    looked_at = 0
    for turn in range(len(arms) + 1):
        k = first if turn == 0 else turn - 1
        if turn > 0 and k == first:
            continue
        if bounds[k] < score:
            continue
        if looked_at == most:
            return -2
        looked_at += 1
        x = row_at(arms, lens, k, room)
        whole = leverage_of_dense(x, inverse, pending, pending_count, image, seen)
        value = upper_bound_of(means[k], radius, min(max(whole, 0.0), norms_sq[k] / shift))
        if value > score or (value == score and k < best):
            score, best = value, k
            best_x[:] = x
            best_image[:] = image
            best_seen[:pending_count] = seen
            best_whole[0] = whole
    return best


@compiled
def need_sets(arms, bounds, found):
    """Whether the sets lie one after the other among the arms, and each has a place for its answer."""
    need(len(bounds) == len(found) + 1 and bounds[0] >= 0 and bounds[-1] <= len(arms))
    for i in range(len(found)):
        need(bounds[i] <= bounds[i + 1])


@compiled
def search_many_rows(arms, lens, bounds, theta, rows, factor, count, shift, radius, found):
    """``search_rows`` for many sets: the i-th has the arms bounds[i] to bounds[i + 1]."""
    need_sets(arms, bounds, found)
    x, y, u, remainder = np.empty(len(theta)), np.empty(count), np.empty(count), np.empty(1)
    for i in range(len(found)):
        some = arms[bounds[i] : bounds[i + 1]]
        found[i] = search_rows(some, lens, theta, rows, factor, count, shift, radius, x, y, u, remainder)


@compiled
def search_many_dense(arms, lens, bounds, theta, inverse, pending, pending_count, shift, radius, most, found):
    """``search_dense`` for many sets: the i-th has the arms bounds[i] to bounds[i + 1]."""
    need_sets(arms, bounds, found)
    dim = len(theta)
    x, image, seen, whole = np.empty(dim), np.empty(dim), np.empty(pending_count), np.empty(1)
    for i in range(len(found)):
        some = arms[bounds[i] : bounds[i + 1]]
        found[i] = search_dense(
            some, lens, theta, inverse, pending, pending_count, shift, radius, most, x, image, seen, whole
        )


@compiled
def quadratics_rows(arms, lens, norms_sq, rows, factor, count, shift, found):
    """x'A^-1 x of every arm, through rows."""
    y = np.empty(count)
    u = np.empty(count)
    need_rows(inner_dim(arms, lens), rows, factor, count, y, u)
    need(len(norms_sq) == len(found) == len(arms))
    room = np.empty(inner_dim(arms, lens))
    for k in range(len(arms)):
        x = row_at(arms, lens, k, room)
        norm_sq = norm_at(arms, lens, k, x, norms_sq[k])
        found[k] = leverage_until(x, norm_sq, 0.0, 0.0, -inf, rows, factor, count, shift, y, u) / shift


@compiled
def quadratics_dense(arms, lens, norms_sq, inverse, pending, pending_count, shift, found):
    """x'A^-1 x of every arm, by a dense inverse."""
    image = np.empty(inner_dim(arms, lens))
    seen = np.empty(pending_count)
    need_dense(inner_dim(arms, lens), inverse, pending, pending_count, image, seen)
    need(len(norms_sq) == len(found) == len(arms))
    room = np.empty(inner_dim(arms, lens))
    for k in range(len(arms)):
        x = row_at(arms, lens, k, room)
        whole = leverage_of_dense(x, inverse, pending, pending_count, image, seen)
        found[k] = min(max(whole, 0.0), norm_at(arms, lens, k, x, norms_sq[k]) / shift)


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
