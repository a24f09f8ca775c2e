"""The fast path of UCB: means, bounds and the few widths that matter in one compiled call."""

import math

import numpy as np

from sketchbandit.arms import View, rows_of
from sketchbandit.arrays import AnyArray, Vector
from sketchbandit.explore.scores import upper_bound
from sketchbandit.kernels import kernels, loops
from sketchbandit.linalg import length_of, product, row_norms_sq
from sketchbandit.precision import DenseInverse, Inverse, Leverage, LowRankInverse, Precision

_TOGETHER = 1024  # arms in one product
_TOO_MANY = -2  # the result of a search that gave up


def search_rows(
    arms: View, theta: Vector, precision: Precision, inverse: LowRankInverse, radius: float
) -> int | None:
    """The index of the best dense arm; -1 if a score is not finite; None if nothing is compiled."""
    rows = inverse.plain_rows
    compiled = None if rows is None else loops(arms.array.size + rows.size)
    if compiled is None or rows is None:
        return None
    factor = inverse.factor
    count = factor.count
    x, y, u, value = np.empty(len(theta)), np.empty(count), np.empty(count), np.empty(1)
    index: int = compiled.search_rows(
        *arms, theta, rows, factor.array, count, factor.shift, radius, x, y, u, value
    )
    if index >= 0:
        precision.last_choice = x, Leverage(y, u, value.item())
    return index


def search_dense(
    arms: View, theta: Vector, precision: Precision, inverse: DenseInverse, radius: float
) -> int | None:
    """The index of the best dense arm; -1 if a score is not finite; None if nothing is compiled."""
    compiled = loops(arms.array.size + inverse.inverse.size)
    if compiled is None:
        return None
    if inverse.chosen is None:
        dim = len(theta)
        inverse.chosen = np.empty(dim), np.empty(dim), np.empty(len(inverse.pending)), np.empty(1)
    x, image, seen, value = inverse.chosen
    p, q, count, shift = inverse.inverse, inverse.pending, inverse.pending_count, inverse.shift
    precision.last_choice = None  # it uses the same arrays
    few = inverse.few
    index: int = compiled.search_dense(*arms, theta, p, q, count, shift, radius, few, x, image, seen, value)
    if index == _TOO_MANY:  # one product with all arms finds the few that need a closer look
        close = _close_to_best(arms, theta, inverse, radius)
        some = View(rows_of(arms, close))
        found = compiled.search_dense(
            *some, theta, p, q, count, shift, radius, len(close), x, image, seen, value
        )
        index = int(close[found])
    if index >= 0:
        precision.last_choice = x, Leverage(image, seen, value.item())
    return index


def search_many(
    arms: View, bounds: AnyArray, theta: Vector, inverse: Inverse, radius: float
) -> AnyArray | None:
    """The best arm of each of many sets. Negative: this set has to be searched separately."""
    compiled = kernels()
    found = np.empty(len(bounds) - 1, dtype=np.intp)
    if compiled is None:
        return None
    if isinstance(inverse, LowRankInverse):
        rows, factor = inverse.plain_rows, inverse.factor
        if rows is None:
            return None
        compiled.search_many_rows(
            *arms, bounds, theta, rows, factor.array, factor.count, factor.shift, radius, found
        )
    elif isinstance(inverse, DenseInverse):
        p, q, count, shift = inverse.inverse, inverse.pending, inverse.pending_count, inverse.shift
        compiled.search_many_dense(*arms, bounds, theta, p, q, count, shift, radius, inverse.few, found)
    else:
        return None
    return found


def _close_to_best(arms: View, theta: Vector, inverse: DenseInverse, radius: float) -> AnyArray:
    """All arms whose scores could be the best, with a margin far above rounding."""
    scores, longest = np.empty(len(arms.array)), 0.0
    for start in range(0, len(scores), _TOGETHER):
        some = rows_of(arms, slice(start, start + _TOGETHER)).astype(np.float64, copy=False)
        widths = np.sqrt(inverse.quadratics(some))
        scores[start : start + _TOGETHER] = upper_bound(product(some, theta), radius, widths)
        longest = max(longest, math.sqrt(float(row_norms_sq(some).max())))
    reach = longest * (length_of(theta) + radius / math.sqrt(inverse.shift))
    return np.flatnonzero(scores >= scores.max() - 1e-5 * reach)
