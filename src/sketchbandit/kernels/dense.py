# mypy: allow-untyped-defs, allow-untyped-calls
"""What a round does with a dense inverse P and its pending updates Q."""

from math import isfinite, log1p, sqrt

from sketchbandit.kernels.compiling import compiled
from sketchbandit.kernels.sums import dot, dot4, need


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
    """p = M_count^-1 ... M_1^-1 L^-1 row, M^-1 = I + back·pp' for each of the rows before."""
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
