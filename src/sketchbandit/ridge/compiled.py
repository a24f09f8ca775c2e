# mypy: allow-untyped-defs, allow-untyped-calls
"""The loops of a round, compiled by numba: what numpy does in fifteen calls, in one.

Each function has a counterpart in numpy (``lowrank``, ``dense``, ``system``) that computes the same to
rounding; which of the two runs changes no choice but between scores that agree to rounding. Sums may be
reordered by the compiler (that is what makes them vector code), but in the same way for every arm, so that
equal arms have equal scores.

Compiled code does not look where it reads, so each function that is called from outside first compares the
sizes it was given, and raises a ValueError rather than read past an array.
"""

from math import inf, isfinite, log1p, sqrt
from typing import Any

import numpy as np
from numba import njit

from sketchbandit.ridge.factor import CANCELLED


def _compiler(fastmath: set[str]) -> Any:
    def compile_one(function: Any) -> Any:
        try:
            return njit(cache=True, fastmath=fastmath, error_model="numpy")(function)
        except RuntimeError:  # neither the package's folder nor the user's can be written
            return njit(fastmath=fastmath, error_model="numpy")(function)

    return compile_one


_compile: Any = _compiler({"contract"})
# Sums, and nothing but sums, may be reordered, so that they use vector registers.
_compile_sum: Any = _compiler({"reassoc", "contract"})

_COLUMNS = 1024  # of S, taken together: the partial result stays in the first-level cache
_LOOK_EVERY = 8  # rows of S between two looks whether the arm can still win


@_compile
def _need(fits):
    if not fits:
        raise ValueError("arrays of the wrong size: were they changed by another thread?")


@_compile_sum
def _dot(a, b, count):
    total = 0.0
    for i in range(count):
        total += a[i] * b[i]
    return total


@_compile_sum
def _dot4(rows, first, x, out):
    """Four rows of S at a time: more of memory under way at once."""
    r0, r1, r2, r3 = rows[first], rows[first + 1], rows[first + 2], rows[first + 3]
    t0 = t1 = t2 = t3 = 0.0
    for j in range(len(x)):
        t0 += r0[j] * x[j]
        t1 += r1[j] * x[j]
        t2 += r2[j] * x[j]
        t3 += r3[j] * x[j]
    out[first], out[first + 1], out[first + 2], out[first + 3] = t0, t1, t2, t3


@_compile_sum
def _dot_and_norm(x, vector):
    """x'v and |x|² in one pass."""
    product = 0.0
    squares = 0.0
    for j in range(len(x)):
        product += x[j] * vector[j]
        squares += x[j] * x[j]
    return product, squares


@_compile
def norm_sq(x, vector):
    """|x|² by the same loop as ``scan``, so that it is the same to the bit; any vector will do."""
    _need(len(vector) >= len(x))
    return _dot_and_norm(x, vector)[1]


@_compile
def equal(a, b):
    """Whether two vectors are equal, entry by entry."""
    if len(a) != len(b):
        return False
    for i in range(len(a)):  # noqa: SIM110  a generator is not compiled to a loop
        if a[i] != b[i]:
            return False
    return True


@_compile
def norm_sq_if_equal(x, other):
    """|x|² as ``norm_sq`` gives it; its negative, or -0, where the other vector is not equal."""
    found = _dot_and_norm(x, x)[1]
    return found if equal(x, other) else -found


@_compile
def project_arms(arms, projection, images):
    """``arms @ projection``, each arm for itself; whether all of it is finite."""
    width = projection.shape[1]
    _need(arms.shape[1] == projection.shape[0] and images.shape == (len(arms), width))
    total = 0.0
    for k in range(len(arms)):
        arm, image = arms[k], images[k]
        image[:] = 0.0
        i = 0
        while i + 4 <= len(arm):
            a0, a1, a2, a3 = arm[i], arm[i + 1], arm[i + 2], arm[i + 3]
            p0, p1, p2, p3 = projection[i], projection[i + 1], projection[i + 2], projection[i + 3]
            for j in range(width):
                image[j] += a0 * p0[j] + a1 * p1[j] + a2 * p2[j] + a3 * p3[j]
            i += 4
        while i < len(arm):
            a0, p0 = arm[i], projection[i]
            for j in range(width):
                image[j] += a0 * p0[j]
            i += 1
        for j in range(width):
            total += image[j] * 0.0  # 0, or NaN for ever
    return total == 0.0


@_compile
def scan(arms, theta, means, norms_sq):
    """Means and squared norms in one pass over the arms."""
    _need(arms.shape[1] == len(theta) and min(len(means), len(norms_sq)) >= len(arms))
    for k in range(len(arms)):
        means[k], norms_sq[k] = _dot_and_norm(arms[k], theta)


@_compile
def _look(arms, theta, shift, radius):
    """Means, squared norms and optimistic bounds, and which bound is largest; -1 if one is not finite."""
    means = np.empty(len(arms))
    norms_sq = np.empty(len(arms))
    bounds = np.empty(len(arms))
    scan(arms, theta, means, norms_sq)
    first = 0
    for k in range(len(arms)):
        bounds[k] = means[k] + radius * sqrt(norms_sq[k] / shift)
        if not isfinite(bounds[k]):
            return means, norms_sq, bounds, -1
        if bounds[k] > bounds[first]:
            first = k
    return means, norms_sq, bounds, first


@_compile
def _subtract_rows(part, rows, weights, count, start):
    """part -= the columns of weights' S that begin at ``start``."""
    width = len(part)
    stop = start + width
    i = 0
    while i + 4 <= count:
        w0, w1, w2, w3 = weights[i], weights[i + 1], weights[i + 2], weights[i + 3]
        r0, r1 = rows[i, start:stop], rows[i + 1, start:stop]
        r2, r3 = rows[i + 2, start:stop], rows[i + 3, start:stop]
        for j in range(width):
            part[j] -= w0 * r0[j] + w1 * r1[j] + w2 * r2[j] + w3 * r3[j]
        i += 4
    while i < count:
        w0, r0 = weights[i], rows[i, start:stop]
        for j in range(width):
            part[j] -= w0 * r0[j]
        i += 1


@_compile
def _times_factor(u, factor, count, back):
    """back = W'u."""
    for j in range(count):
        back[j] = 0.0
    for i in range(count):
        weight = u[i]
        row = factor[i]
        for j in range(i + 1):
            back[j] += weight * row[j]


@_compile
def _remainder(x, rows, factor, count, shift, u):
    """|x|² - |u|² without cancellation: |x - S'g|² + shift |g|², g = W'u."""
    back = np.empty(count)
    _times_factor(u, factor, count, back)
    total = shift * _dot(back, back, count)
    for start in range(0, len(x), _COLUMNS):
        part = x[start : min(start + _COLUMNS, len(x))].copy()
        _subtract_rows(part, rows, back, count, start)
        total += _dot(part, part, len(part))
    return total


@_compile
def _need_rows(dim, rows, factor, count, y, u):
    """Whether S and W have ``count`` rows of the right length, and y and u room for as many numbers."""
    _need(rows.shape[1] == dim and rows.shape[0] >= count and min(factor.shape) >= count)
    _need(min(len(y), len(u)) >= count)


@_compile
def shadow_rows(x, norm_sq, rows, factor, count, shift, y, u):
    """y = S x, u = W y and |x|² - |u|²."""
    _need_rows(len(x), rows, factor, count, y, u)
    return _shadow_rows(x, norm_sq, 0.0, 0.0, -inf, rows, factor, count, shift, y, u)


@_compile
def _shadow_rows(x, norm_sq, mean, radius, least, rows, factor, count, shift, y, u):
    """The same row by row; -1 as soon as the score must stay below ``least``."""
    captured = 0.0
    for i in range(count):
        if i % 4 == 0 and i + 4 <= count:
            _dot4(rows, i, x, y)
        elif i >= count - count % 4:
            y[i] = _dot(rows[i], x, len(x))
        u[i] = _dot(factor[i], y, i + 1)
        captured += u[i] * u[i]
        if i % _LOOK_EVERY == _LOOK_EVERY - 1:
            most = max(norm_sq - captured, 2.0 * CANCELLED * norm_sq) / shift
            if mean + radius * sqrt(most) < least:
                return -1.0
    if norm_sq - captured >= CANCELLED * norm_sq:
        return norm_sq - captured
    return _remainder(x, rows, factor, count, shift, u)


@_compile
def search_rows(arms, theta, rows, factor, count, shift, radius, best_x, best_y, best_u, best_remainder):
    """The best arm, with its x, y, u and |x|² - |u|²; -1 if a score is not finite."""
    _need_rows(len(theta), rows, factor, count, best_y, best_u)
    _need(len(best_x) == len(theta) and len(best_y) == len(best_u) == count)
    means, norms_sq, bounds, first = _look(arms, theta, shift, radius)
    if first < 0:
        return -1
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
        remainder = _shadow_rows(
            arms[k], norms_sq[k], means[k], radius, score, rows, factor, count, shift, y, u
        )
        if remainder < 0.0:
            continue
        value = means[k] + radius * sqrt(remainder / shift)
        if value > score or (value == score and k < best):
            score, best = value, k
            best_x[:] = arms[k]
            best_y[:] = y
            best_u[:] = u
            best_remainder[0] = remainder
    return best


@_compile
def grow_rows(x, reward, rows, factor, count, pivot, quadratic, shift, u, theta, b):
    """Write the factor's row for x, and move theta and b by Sherman-Morrison; False: theta'x overflows."""
    _need_rows(len(x), rows, factor, count, u, u)
    _need(min(factor.shape) > count and len(theta) == len(b) == len(x))
    error = reward - _dot(theta, x, len(x))
    if not isfinite(error):
        return False
    gain = error / ((1.0 + quadratic) * shift)
    back = factor[count]
    _times_factor(u, factor, count, back)
    for start in range(0, len(x), _COLUMNS):
        stop = min(start + _COLUMNS, len(x))
        part = x[start:stop].copy()
        _subtract_rows(part, rows, back, count, start)
        moved, added, played = theta[start:stop], b[start:stop], x[start:stop]
        for j in range(stop - start):
            moved[j] += gain * part[j]
            added[j] += reward * played[j]
    for j in range(count):
        back[j] /= -pivot
    back[count] = 1.0 / pivot
    return True


@_compile
def shadow_dense(x, inverse, pending, pending_count, image, seen):
    """P x, Q x, and x'P x - |Q x|²."""
    _need_dense(len(x), inverse, pending, pending_count, image, seen)
    return _shadow_dense(x, inverse, pending, pending_count, image, seen)


@_compile
def _need_dense(dim, inverse, pending, pending_count, image, seen):
    """Whether P and Q are those of ``dim``, and there is room for what is computed."""
    _need(inverse.shape == (dim, dim) and len(image) == dim)
    _need(pending.shape[1] == dim and min(pending.shape[0], len(seen)) >= pending_count)


@_compile
def _shadow_dense(x, inverse, pending, pending_count, image, seen):
    dim = len(x)
    for i in range(0, dim - dim % 4, 4):
        _dot4(inverse, i, x, image)
    for i in range(dim - dim % 4, dim):
        image[i] = _dot(inverse[i], x, dim)
    whole = _dot(image, x, dim)
    for i in range(pending_count):
        seen[i] = _dot(pending[i], x, dim)
        whole -= seen[i] * seen[i]
    return whole


@_compile
def search_dense(
    arms,
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
    _need_dense(len(theta), inverse, pending, pending_count, best_image, best_seen)
    _need(len(best_x) == len(theta))
    means, norms_sq, bounds, first = _look(arms, theta, shift, radius)
    if first < 0:
        return -1
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
        whole = _shadow_dense(arms[k], inverse, pending, pending_count, image, seen)
        value = means[k] + radius * sqrt(min(max(whole, 0.0), norms_sq[k] / shift))
        if value > score or (value == score and k < best):
            score, best = value, k
            best_x[:] = arms[k]
            best_image[:] = image
            best_seen[:pending_count] = seen
            best_whole[0] = whole
    return best


@_compile
def grow_dense(x, reward, pending, pending_count, most, whole, image, seen, theta, b):
    """Add a rank-one update to Q, and move theta and b; what log det A grows by, or -1: theta'x overflows."""
    _need(pending.shape[0] > pending_count and pending.shape[1] == len(x) == len(image))
    _need(len(seen) >= pending_count and len(theta) == len(b) == len(x))
    quadratic = min(max(whole, 0.0), most)
    gain = (reward - _dot(theta, x, len(x))) / (1.0 + quadratic)
    if not isfinite(gain):
        return -1.0
    row = pending[pending_count]
    row[:] = image
    for i in range(pending_count):
        weight = seen[i]
        older = pending[i]
        for j in range(len(x)):
            row[j] -= weight * older[j]
    scale = 1.0 / sqrt(1.0 + quadratic)
    for j in range(len(x)):
        theta[j] += gain * row[j]
        b[j] += reward * x[j]
        row[j] *= scale
    return log1p(quadratic)
