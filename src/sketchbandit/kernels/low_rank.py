# mypy: allow-untyped-defs, allow-untyped-calls
"""What a round does with the rows S of a sketch and the factor W of their Gram matrix."""

from math import inf, isfinite, sqrt

import numpy as np

from sketchbandit.kernels.backend import CANCELLED
from sketchbandit.kernels.compiling import compiled
from sketchbandit.kernels.sums import dot, dot4, need, upper_bound_of

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
