# mypy: allow-untyped-defs, allow-untyped-calls
"""Arms as the loops read them: rows of an array, seen through a lens (``kernels.view``)."""

from math import inf, nan, sqrt

import numpy as np

from sketchbandit.kernels.compiling import compiled, compiled_sum
from sketchbandit.kernels.sums import as_float64, dot_and_norm, need, norm_of
from sketchbandit.kernels.view import BOUND, COLUMNS, CONSTANT, HEAD, KIND, ROWS


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
