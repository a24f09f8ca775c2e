"""The update of a precision and of a linear model, fused into one compiled loop."""

import math
from typing import Any

from sketchbandit.arrays import Vector
from sketchbandit.estimate.base import Estimate
from sketchbandit.estimate.linear import Linear
from sketchbandit.kernels import kernels, loops
from sketchbandit.linalg import AnyVector, SparseVector
from sketchbandit.precision import DenseInverse, Inverse, Leverage, LowRankInverse


def learn_fused(
    inverse: Inverse, estimate: Estimate, x: AnyVector, norm_sq: float, leverage: Leverage, reward: float
) -> float | None:
    """Do ``inverse.append`` and ``estimate.learn`` at once, and return the prediction error from before.

    Returns None, and does nothing, if that is not possible. The scale of the rewards counts this one later.
    """
    if kernels() is None or isinstance(x, SparseVector) or type(estimate) is not Linear:
        return None
    theta = estimate.kept_theta
    if theta is None:
        return None
    scale, before = estimate.reward_scale, estimate.kept_level
    after = scale.shift_after(reward) if scale.baseline else 0.0
    levels = before, estimate.level - before, after - before
    vectors = theta, estimate.b, estimate.sum, estimate.image
    if isinstance(inverse, LowRankInverse):
        through = _through_rows
    elif isinstance(inverse, DenseInverse):
        through = _through_matrix
    else:
        return None
    error = through(inverse, x, norm_sq, leverage, reward - scale.origin, vectors, levels)
    if error is not None:
        estimate.kept_level = after
    return error


def _through_matrix(
    inverse: Any,
    x: AnyVector,
    norm_sq: float,
    leverage: Leverage,
    value: float,
    vectors: tuple[Vector, ...],
    levels: tuple[float, float, float],
) -> float | None:
    most = norm_sq / inverse.shift
    pending, count, image, seen = inverse.pending, inverse.pending_count, leverage.image, leverage.seen
    grown, error = kernels().grow_dense(
        x, value, pending, count, most, leverage.value, image, seen, *vectors, *levels
    )
    if grown < 0.0:
        return None
    inverse.count_row(grown)
    return float(error)


def _through_rows(
    inverse: Any,
    x: AnyVector,
    norm_sq: float,
    leverage: Leverage,
    value: float,
    vectors: tuple[Vector, ...],
    levels: tuple[float, float, float],
) -> float | None:
    rows, factor = inverse.plain_rows, inverse.factor
    if rows is None:
        return None
    pivot = factor.begin_row(norm_sq, leverage.value)
    quadratic = leverage.value / factor.shift
    error: float = loops(rows.size).grow_rows(
        x,
        value,
        rows,
        factor.array,
        factor.count,
        pivot,
        quadratic,
        factor.shift,
        leverage.seen,
        *vectors,
        *levels,
    )
    if not math.isfinite(error):
        return None
    factor.end_row()
    return error
