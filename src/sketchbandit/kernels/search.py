# mypy: allow-untyped-defs, allow-untyped-calls
"""Searches: the best of many arms or models, by means, bounds, draws or gaps; products with short codes."""

from math import inf, isfinite, sqrt

import numpy as np

from sketchbandit.kernels.backend import CLOSE
from sketchbandit.kernels.compiling import compiled, compiled_sum
from sketchbandit.kernels.rounds import (
    dot,
    dot_and_norm,
    dot_and_norm_at,
    inner_dim,
    leverage_of_dense,
    leverage_until,
    need,
    need_dense,
    need_rows,
    norm_at,
    row_at,
    scan,
    upper_bound_of,
)

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


@compiled
def finite_means(arms, lens, theta, shift, radius, means):
    """The means of all arms; whether they, and radius·width, are finite."""
    need(inner_dim(arms, lens) == len(theta) and len(means) >= len(arms))
    for k in range(len(arms)):
        mean, norm_sq = dot_and_norm_at(arms, lens, k, theta)
        if not isfinite(abs(mean) + radius * sqrt(norm_sq / shift)):
            return False
        means[k] = mean
    return True


@compiled
def _largest_between(means, start, stop):
    best = start
    for k in range(start + 1, stop):
        if means[k] > means[best]:
            best = k
    return best


@compiled
def _need_filled_sets(arms, bounds, found):
    """Whether the sets lie one after the other among so many arms, none is empty, and each has its answer."""
    need(len(bounds) == len(found) + 1 and bounds[0] >= 0 and bounds[-1] <= arms)
    for i in range(len(found)):
        need(bounds[i] < bounds[i + 1])


@compiled
def best_mean(arms, lens, theta, means):
    """The arm of the largest mean; -1 if one is not finite."""
    if not finite_means(arms, lens, theta, 1.0, 1.0, means):
        return -1
    return _largest_between(means, 0, len(arms))


@compiled
def best_means(arms, lens, theta, bounds, means, found):
    """The arm of the largest mean of each of many sets; False if a mean is not finite."""
    _need_filled_sets(len(arms), bounds, found)
    if not finite_means(arms, lens, theta, 1.0, 1.0, means):
        return False
    for i in range(len(found)):
        found[i] = _largest_between(means, bounds[i], bounds[i + 1]) - bounds[i]
    return True


@compiled
def pick_by_gap(means, gamma, drawn):
    """The arm that a uniform draw falls on, with chances 1 / (K + gamma·gap), the rest to the best arm."""
    best = _largest_between(means, 0, len(means))
    chances = np.empty(len(means))
    others = 0.0
    for k in range(len(means)):
        if k != best:
            chances[k] = 1.0 / (len(means) + gamma * (means[best] - means[k]))
            others += chances[k]
    chances[best] = max(0.0, 1.0 - others)
    total, last = 0.0, best
    for k in range(len(means)):
        if chances[k] > 0.0:
            last = k
        total += chances[k]
        if drawn < total:
            return k
    return last


@compiled
def pick_from_each(means, bounds, gamma, drawn, found):
    """The same for many sets, of which the i-th has the arms bounds[i] to bounds[i + 1]."""
    _need_filled_sets(len(means), bounds, found)
    need(len(drawn) == len(found))
    for i in range(len(found)):
        found[i] = pick_by_gap(means[bounds[i] : bounds[i + 1]], gamma, drawn[i])


@compiled
def best_along(arms, lens, means, direction, radius):
    """The arm i of the largest mean + radius·x'direction; -1 - i if an earlier one may be its copy.

    The scores take the place of the means.
    """
    need(inner_dim(arms, lens) == len(direction) and len(means) == len(arms))
    return _best_between(arms, lens, means, direction, radius, 0, len(arms))


@compiled
def best_of_each(arms, lens, means, bounds, direction, radius, found):
    """The same for many sets, of which the i-th has the arms bounds[i] to bounds[i + 1]."""
    need(inner_dim(arms, lens) == len(direction) and len(means) == len(arms))
    _need_filled_sets(len(arms), bounds, found)
    for i in range(len(found)):
        best = _best_between(arms, lens, means, direction, radius, bounds[i], bounds[i + 1])
        found[i] = best - bounds[i] if best >= 0 else -1


@compiled
def _best_between(arms, lens, means, direction, radius, start, stop):
    best, score, largest = start, -np.inf, 0.0
    for k in range(start, stop):
        value = means[k] + radius * dot_and_norm_at(arms, lens, k, direction)[0]
        means[k] = value
        largest = max(largest, abs(value))
        if value > score:
            best, score = k, value
    for k in range(start, best):
        if means[k] >= score - CLOSE * largest:
            return -1 - best
    return best


@compiled_sum
def _coarse_dot(codes, vector):
    total = np.float32(0.0)
    for j in range(len(codes)):
        total += np.float32(codes[j]) * vector[j]
    return total


@compiled
def coarse_products(codes, steps, vector, products):
    """The step of each row times codes'v, summed in float32."""
    need(codes.shape[1] == len(vector) and len(steps) == len(products) == len(codes))
    for k in range(len(codes)):
        products[k] = steps[k] * _coarse_dot(codes[k], vector)


@compiled
def to_codes(rows, levels, codes, steps, slack):
    """Rows in eight bits: codes times the step of the row, and how far the row is from that, squared."""
    need(codes.shape == rows.shape and len(steps) == len(slack) == len(rows))
    for k in range(len(rows)):
        row, most = rows[k], 0.0
        for j in range(len(row)):
            most = max(most, abs(np.float64(row[j])))
        step = np.float32(max(most / levels, 1e-30))
        total = 0.0
        for j in range(len(row)):
            entry = np.float64(row[j])
            code = min(max(np.rint(entry / step), -levels), levels)
            codes[k, j] = np.int8(code)
            off = entry - code * step
            total += off * off
        steps[k], slack[k] = step, total


@compiled_sum
def _dot(row, vector):
    total = row[0] * vector[0]
    for j in range(1, len(row)):
        total += row[j] * vector[j]
    return total


@compiled_sum
def _four_dots(arms, first, vector, products):
    """More of memory under way at once."""
    r0, r1, r2, r3 = arms[first], arms[first + 1], arms[first + 2], arms[first + 3]
    t0, t1, t2, t3 = r0[0] * vector[0], r1[0] * vector[0], r2[0] * vector[0], r3[0] * vector[0]
    for j in range(1, len(vector)):
        t0 += r0[j] * vector[j]
        t1 += r1[j] * vector[j]
        t2 += r2[j] * vector[j]
        t3 += r3[j] * vector[j]
    products[first], products[first + 1], products[first + 2], products[first + 3] = t0, t1, t2, t3


@compiled
def row_products(arms, vector, products):
    """x'v of every row, summed in the dtype of the arms."""
    need(arms.shape[1] == len(vector) and len(products) == len(arms) and len(vector) > 0)
    fours = len(arms) - len(arms) % 4
    for k in range(0, fours, 4):
        _four_dots(arms, k, vector, products)
    for k in range(fours, len(arms)):
        products[k] = _dot(arms[k], vector)


@compiled_sum
def _weighted_dots(row, vector, weights):
    product, square = row[0] * vector[0], row[0] * row[0] * weights[0]
    for j in range(1, len(row)):
        product += row[j] * vector[j]
        square += row[j] * row[j] * weights[j]
    return product, square


@compiled
def weighted_products(arms, vector, weights, products, squares):
    """x'v and Σ weights_j·x_j² of every row, summed in the dtype of the arms."""
    need(arms.shape[1] == len(vector) == len(weights) and len(products) == len(squares) == len(arms))
    need(len(vector) > 0)
    for k in range(len(arms)):
        products[k], squares[k] = _weighted_dots(arms[k], vector, weights)
