# mypy: allow-untyped-defs, allow-untyped-calls
"""What a round does: sums, arms read through a lens, and steps of a dense and of a low-rank inverse."""

from math import inf, isfinite, log1p, nan, sqrt

import numpy as np
from numba import types
from numba.extending import overload

from sketchbandit.kernels.backend import BOUND, CANCELLED, COLUMNS, CONSTANT, HEAD, KIND, ROWS
from sketchbandit.kernels.compiling import compiled, compiled_sum


@compiled
def need(fits):
    """Raise rather than read past an array."""
    if not fits:
        raise ValueError("arrays of the wrong size: were they changed by another thread?")


@compiled_sum
def dot(a, b, count):
    """The first ``count`` terms of a'b."""
    total = 0.0
    for i in range(count):
        total += a[i] * b[i]
    return total


@compiled_sum
def dot4(rows, first, x, out):
    """Four rows of S at a time: more of memory under way at once."""
    r0, r1, r2, r3 = rows[first], rows[first + 1], rows[first + 2], rows[first + 3]
    t0 = t1 = t2 = t3 = 0.0
    for j in range(len(x)):
        t0 += r0[j] * x[j]
        t1 += r1[j] * x[j]
        t2 += r2[j] * x[j]
        t3 += r3[j] * x[j]
    out[first], out[first + 1], out[first + 2], out[first + 3] = t0, t1, t2, t3


@compiled_sum
def dot_and_norm(x, vector):
    """x'v and |x|² in one pass."""
    product = 0.0
    squares = 0.0
    for j in range(len(x)):
        entry = np.float64(x[j])
        product += entry * vector[j]
        squares += entry * entry
    return product, squares


def as_float64(row, room):
    """The row if it is float64; else a copy of it in ``room``."""
    raise NotImplementedError("for compiled code")


@overload(as_float64)
def _as_float64(row, room):  # noqa: ARG001  (numba wants the same names)
    if row.dtype == types.float64:
        return lambda row, room: row  # noqa: ARG005

    def convert(row, room):
        for j in range(len(row)):
            room[j] = row[j]
        return room

    return convert


def norm_of(row, x, known):
    """|x|² as an update will compute it, of ``row`` in float64: ``known`` if the row is that already."""
    raise NotImplementedError("for compiled code")


@overload(norm_of)
def _norm_of(row, x, known):  # noqa: ARG001
    if row.dtype == types.float64:
        return lambda row, x, known: known  # noqa: ARG005
    return lambda row, x, known: dot_and_norm(x, x)[1]  # noqa: ARG005


@compiled
def norm_sq(x, vector):
    """|x|² by the same loop as ``scan``, so that it is the same to the bit; any vector will do."""
    need(len(vector) >= len(x))
    return dot_and_norm(x, vector)[1]


@compiled
def equal(a, b):
    """Whether two vectors are equal, entry by entry."""
    if len(a) != len(b):
        return False
    for i in range(len(a)):  # noqa: SIM110  a generator is not compiled to a loop
        if a[i] != b[i]:
            return False
    return True


@compiled
def norm_sq_if_equal(x, other):
    """|x|² as ``norm_sq`` gives it; its negative, or -0, where the other vector is not equal."""
    found = dot_and_norm(x, x)[1]
    return found if equal(x, other) else -found


@compiled
def project_arms(arms, projection, images):
    """``arms @ projection``, each arm for itself; whether all of it is finite."""
    width = projection.shape[1]
    need(arms.shape[1] == projection.shape[0] and images.shape == (len(arms), width))
    total = 0.0
    for k in range(len(arms)):
        arm, image = arms[k], images[k]
        image[:] = 0.0
        i = 0
        while i + 4 <= len(arm):
            a0, a1 = np.float64(arm[i]), np.float64(arm[i + 1])
            a2, a3 = np.float64(arm[i + 2]), np.float64(arm[i + 3])
            p0, p1, p2, p3 = projection[i], projection[i + 1], projection[i + 2], projection[i + 3]
            for j in range(width):
                image[j] += a0 * p0[j] + a1 * p1[j] + a2 * p2[j] + a3 * p3[j]
            i += 4
        while i < len(arm):
            a0, p0 = np.float64(arm[i]), projection[i]
            for j in range(width):
                image[j] += a0 * p0[j]
            i += 1
        for j in range(width):
            total += image[j] * 0.0  # 0, or NaN for ever
    return total == 0.0


@compiled
def upper_bound_of(mean, radius, quadratic):
    """The mean plus the radius times the width; ``explore.scores`` has it for numpy."""
    return mean + radius * sqrt(quadratic)


@compiled
def _read_length(width, lens):
    need(len(lens) >= HEAD and len(lens) == (HEAD + 2 * width if lens[KIND] == COLUMNS else HEAD))
    return width + 1 if lens[CONSTANT] != 0.0 else width


@compiled
def inner_dim(arms, lens):
    """The length of an arm as it is read; raises where the lens does not fit the arms."""
    return arms.shape[1] if len(lens) == 0 else _read_length(arms.shape[1], lens)


@compiled_sum
def _columns_dot_and_norm(x, centre, factor, bound, vector):
    """z'v and |z|² in one pass; NaN where an entry of x is not finite."""
    product = 0.0
    squares = 0.0
    for j in range(len(x)):
        raw = np.float64(x[j])
        z = (raw - centre[j]) * factor[j]
        z = bound if z > bound else (-bound if z < -bound else z)
        z += raw * 0.0
        product += z * vector[j]
        squares += z * z
    return product, squares


@compiled
def _dot_and_norm_through(lens, x, vector):
    if lens[KIND] == COLUMNS:
        middle = HEAD + len(x)
        product, squares = _columns_dot_and_norm(x, lens[HEAD:middle], lens[middle:], lens[BOUND], vector)
    else:
        product, squares = dot_and_norm(x, vector)
        if lens[KIND] == ROWS:
            if not squares < inf:
                return nan, nan
            if squares > 0.0:
                product /= sqrt(squares)
                squares = 1.0
    constant = lens[CONSTANT]
    if constant != 0.0:
        product += constant * vector[len(x)]
        squares += constant * constant
    return product, squares


@compiled
def fill_row(x, lens, room):
    """One arm as it is read; NaN where an entry of it is not finite."""
    need(len(room) == _read_length(len(x), lens))
    if lens[KIND] == COLUMNS:
        bound, middle = lens[BOUND], HEAD + len(x)
        centre, factor = lens[HEAD:middle], lens[middle:]
        for j in range(len(x)):
            raw = np.float64(x[j])
            z = (raw - centre[j]) * factor[j]
            z = bound if z > bound else (-bound if z < -bound else z)
            room[j] = z + raw * 0.0
    else:
        scale = 1.0
        if lens[KIND] == ROWS:
            squares = dot_and_norm(x, room)[1]
            scale = 1.0 if squares == 0.0 else (1.0 / sqrt(squares) if squares < inf else nan)
        for j in range(len(x)):
            room[j] = x[j] * scale
    if lens[CONSTANT] != 0.0:
        room[len(x)] = lens[CONSTANT]


@compiled
def fill_rows(arms, lens, rows):
    """All arms as they are read."""
    need(rows.shape == (len(arms), inner_dim(arms, lens)))
    for k in range(len(rows)):
        fill_row(arms[k], lens, rows[k])


@compiled
def dot_and_norm_at(arms, lens, k, vector):
    """x'v and |x|² of one arm, in one pass."""
    if len(lens) == 0:
        return dot_and_norm(arms[k], vector)
    return _dot_and_norm_through(lens, arms[k], vector)


@compiled
def row_at(arms, lens, k, room):
    """One arm in float64: itself, or what ``room`` holds then."""
    if len(lens) == 0:
        return as_float64(arms[k], room)
    fill_row(arms[k], lens, room)
    return room


@compiled
def norm_at(arms, lens, k, x, known):
    """|x|² as an update will compute it, of the k-th arm x in float64: ``known`` if the loops read just x."""
    if len(lens) == 0:
        return norm_of(arms[k], x, known)
    return dot_and_norm(x, x)[1]


@compiled
def scan(arms, lens, theta, means, norms_sq):
    """Means and squared norms in one pass over the arms."""
    need(inner_dim(arms, lens) == len(theta) and min(len(means), len(norms_sq)) >= len(arms))
    for k in range(len(arms)):
        means[k], norms_sq[k] = dot_and_norm_at(arms, lens, k, theta)


@compiled
def need_dense(dim, inverse, pending, pending_count, image, seen):
    """Whether P and Q are those of ``dim``, and there is room for what is computed."""
    need(inverse.shape == (dim, dim) and len(image) == dim)
    need(pending.shape[1] == dim and min(pending.shape[0], len(seen)) >= pending_count)


@compiled
def leverage_dense(x, inverse, pending, pending_count, image, seen):
    """P x, Q x, and x'P x - |Q x|²."""
    need_dense(len(x), inverse, pending, pending_count, image, seen)
    return leverage_of_dense(x, inverse, pending, pending_count, image, seen)


@compiled
def leverage_of_dense(x, inverse, pending, pending_count, image, seen):
    """The same, of sizes that were checked."""
    dim = len(x)
    for i in range(0, dim - dim % 4, 4):
        dot4(inverse, i, x, image)
    for i in range(dim - dim % 4, dim):
        image[i] = dot(inverse[i], x, dim)
    whole = dot(image, x, dim)
    for i in range(pending_count):
        seen[i] = dot(pending[i], x, dim)
        whole -= seen[i] * seen[i]
    return whole


@compiled
def grow_dense(
    x, value, pending, pending_count, most, whole, image, seen, theta, b, summed, mean_image, level, lag, rise
):
    """Add a rank-one update to Q, and move theta and b, and with a baseline what they lose by its rise.

    What log det A grows by, or -1 where theta'x overflows; and the prediction error before. ``value`` is the
    reward less its origin, and theta is that for ``level``. The rewards were at ``level`` plus ``lag``, and
    are at ``level`` plus ``rise`` now. ``summed`` and ``mean_image`` are empty without a baseline.
    """
    need(pending.shape[0] > pending_count and pending.shape[1] == len(x) == len(image))
    need(len(seen) >= pending_count and len(theta) == len(b) == len(x))
    has_baseline = len(summed) > 0
    need(not has_baseline or len(summed) == len(mean_image) == len(x))
    quadratic = min(max(whole, 0.0), most)
    error = value - level - dot(theta, x, len(x))
    rest = 1.0 - dot(mean_image, x, len(x)) if has_baseline else 0.0
    gain, mean_gain = error / (1.0 + quadratic), rest / (1.0 + quadratic)
    if not isfinite(gain + mean_gain):
        return -1.0, error
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
        b[j] += value * x[j]
    if has_baseline:
        for j in range(len(x)):
            mean_image[j] += mean_gain * row[j]
            theta[j] -= rise * mean_image[j]
            summed[j] += x[j]
    for j in range(len(x)):
        row[j] *= scale
    return log1p(quadratic), error - lag * rest


@compiled
def turn_row(lower, rows, back, count, row, p):
    """p = M_count^-1 ... M_1^-1 L^-1 row, M^-1 = I + back·pp' for each of the rows before; returns |p|²."""
    dim = len(row)
    need(lower.shape == (dim, dim) and rows.shape[1] == dim == len(p))
    need(min(rows.shape[0], len(back)) >= count)
    for i in range(dim):
        p[i] = (row[i] - dot(lower[i], p, i)) / lower[i, i]
    for k in range(count):
        other = rows[k]
        weight = back[k] * dot(other, p, dim)
        for j in range(dim):
            p[j] += weight * other[j]
    return dot(p, p, dim)


@compiled
def draw_dense(lower, rows, shares, count, noise, drawn):
    """L M_1 ... M_count z, M = I - share·pp' for each of the rows; z is written to."""
    dim = len(noise)
    need(lower.shape == (dim, dim) and rows.shape[1] == dim == len(drawn))
    need(min(rows.shape[0], len(shares)) >= count)
    for k in range(count - 1, -1, -1):
        row = rows[k]
        weight = shares[k] * dot(row, noise, dim)
        for j in range(dim):
            noise[j] -= weight * row[j]
    for i in range(dim):
        drawn[i] = dot(lower[i], noise, i + 1)


_COLUMNS = 1024  # of S, taken together: the partial result stays in the first-level cache
_LOOK_EVERY = 8  # rows of S between two looks whether the arm can still win


@compiled
def subtract_rows(part, rows, weights, count, start):
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


@compiled
def times_factor(u, factor, count, back):
    """back = W'u."""
    for j in range(count):
        back[j] = 0.0
    for i in range(count):
        weight = u[i]
        row = factor[i]
        for j in range(i + 1):
            back[j] += weight * row[j]


@compiled
def remainder_of(x, rows, factor, count, shift, u):
    """|x|² - |u|² without cancellation: |x - S'g|² + shift |g|², g = W'u."""
    back = np.empty(count)
    times_factor(u, factor, count, back)
    total = shift * dot(back, back, count)
    for start in range(0, len(x), _COLUMNS):
        part = x[start : min(start + _COLUMNS, len(x))].copy()
        subtract_rows(part, rows, back, count, start)
        total += dot(part, part, len(part))
    return total


@compiled
def need_rows(dim, rows, factor, count, y, u):
    """Whether S and W have ``count`` rows of the right length, and y and u room for as many numbers."""
    need(rows.shape[1] == dim and rows.shape[0] >= count and min(factor.shape) >= count)
    need(min(len(y), len(u)) >= count)


@compiled
def leverage_rows(x, norm_sq, rows, factor, count, shift, y, u):
    """y = S x, u = W y and |x|² - |u|²."""
    need_rows(len(x), rows, factor, count, y, u)
    return leverage_until(x, norm_sq, 0.0, 0.0, -inf, rows, factor, count, shift, y, u)


@compiled
def leverage_until(x, norm_sq, mean, radius, least, rows, factor, count, shift, y, u):
    """The same row by row; -1 as soon as the score must stay below ``least``."""
    captured = 0.0
    for i in range(count):
        if i % 4 == 0 and i + 4 <= count:
            dot4(rows, i, x, y)
        elif i >= count - count % 4:
            y[i] = dot(rows[i], x, len(x))
        u[i] = dot(factor[i], y, i + 1)
        captured += u[i] * u[i]
        if i % _LOOK_EVERY == _LOOK_EVERY - 1:
            most = max(norm_sq - captured, 2.0 * CANCELLED * norm_sq) / shift
            if upper_bound_of(mean, radius, most) < least:
                return -1.0
    if norm_sq - captured >= CANCELLED * norm_sq:
        return norm_sq - captured
    return remainder_of(x, rows, factor, count, shift, u)


@compiled
def finish_row(back, count, pivot):
    """From W'u to the factor's row, (-W'u, 1) / pivot."""
    for j in range(count):
        back[j] /= -pivot
    back[count] = 1.0 / pivot


@compiled
def grow_rows(
    x, value, rows, factor, count, pivot, quadratic, shift, u, theta, b, summed, mean_image, level, lag, rise
):
    """Write the factor's row for x, and move theta and b by Sherman-Morrison; the prediction error before.

    The arguments from ``value`` on are those of ``grow_dense``.
    """
    need_rows(len(x), rows, factor, count, u, u)
    need(min(factor.shape) > count and len(theta) == len(b) == len(x))
    has_baseline = len(summed) > 0
    need(not has_baseline or len(summed) == len(mean_image) == len(x))
    error = value - level - dot(theta, x, len(x))
    rest = 1.0 - dot(mean_image, x, len(x)) if has_baseline else 0.0
    if not isfinite(error + rest):  # theta'x overflows
        return inf
    by = 1.0 / ((1.0 + quadratic) * shift)
    gain, mean_gain = error * by, rest * by
    back = factor[count]
    times_factor(u, factor, count, back)
    for start in range(0, len(x), _COLUMNS):
        stop = min(start + _COLUMNS, len(x))
        part = x[start:stop].copy()
        subtract_rows(part, rows, back, count, start)
        moved, added, played = theta[start:stop], b[start:stop], x[start:stop]
        for j in range(stop - start):
            moved[j] += gain * part[j]
            added[j] += value * played[j]
        if has_baseline:
            of_mean, of_all = mean_image[start:stop], summed[start:stop]
            for j in range(stop - start):
                of_mean[j] += mean_gain * part[j]
                moved[j] -= rise * of_mean[j]
                of_all[j] += played[j]
    finish_row(back, count, pivot)
    return error - lag * rest


@compiled
def write_row(u, factor, count, pivot):
    """The factor's row for an x whose u is known: (-W'u, 1) / pivot."""
    need(min(factor.shape) > count and len(u) >= count)
    back = factor[count]
    times_factor(u, factor, count, back)
    finish_row(back, count, pivot)


@compiled
def moved_rows(x, theta, along, rows, factor, count, shift, u, moved):
    """moved = theta + along·A^-1 x, A^-1 x = (x - S'W'u) / shift; whether all of it is finite.

    ``theta``, ``along`` and ``moved`` are several of each: rows of a matrix, and a number for each.
    """
    need_rows(len(x), rows, factor, count, u, u)
    need(theta.shape == moved.shape and theta.shape[1] == len(x) and len(along) == len(theta))
    back = np.empty(count)
    times_factor(u, factor, count, back)
    total = 0.0
    for start in range(0, len(x), _COLUMNS):
        stop = min(start + _COLUMNS, len(x))
        part = x[start:stop].copy()
        subtract_rows(part, rows, back, count, start)
        for k in range(len(theta)):
            gain = along[k] / shift
            made, old = moved[k, start:stop], theta[k, start:stop]
            for j in range(stop - start):
                made[j] = old[j] + gain * part[j]
                total += 0.0 * made[j]
    return isfinite(total)


@compiled
def draw_rows(noise, weights, rows, factor, count, shift):
    """noise := (noise - S'W'W (S noise - sqrt(shift) weights)) / sqrt(shift): N(0, A^-1) of two N(0, I)."""
    need_rows(len(noise), rows, factor, count, weights, weights)
    root = sqrt(shift)
    y, u = np.empty(count), np.empty(count)
    for i in range(0, count - count % 4, 4):
        dot4(rows, i, noise, y)
    for i in range(count - count % 4, count):
        y[i] = dot(rows[i], noise, len(noise))
    for i in range(count):
        y[i] -= root * weights[i]
        u[i] = dot(factor[i], y, i + 1)
    times_factor(u, factor, count, y)
    for start in range(0, len(noise), _COLUMNS):
        part = noise[start : min(start + _COLUMNS, len(noise))]
        subtract_rows(part, rows, y, count, start)
        for j in range(len(part)):
            part[j] /= root
