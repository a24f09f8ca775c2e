# mypy: allow-untyped-defs, allow-untyped-calls
"""Sums over arms and rows of float64 or float32, in float64 whatever they are; the score made of them."""

from math import sqrt

import numpy as np
from numba import types
from numba.extending import overload

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
