"""The update of a precision and of a linear model, fused into one compiled loop."""

import math
from typing import Any

from sketchbandit.arrays import Vector
from sketchbandit.estimate.base import Estimate
from sketchbandit.estimate.linear import Linear
from sketchbandit.kernels import kernels, loops
from sketchbandit.linalg import AnyVector, SparseVector
from sketchbandit.precision import DenseInverse, Inverse, Leverage, LowRankInverse


def can_fuse(inverse: Inverse, estimate: Estimate, x: AnyVector) -> bool:
    """Whether ``learn_fused`` knows this inverse, this estimate and this arm."""
    if kernels() is None or isinstance(x, SparseVector) or type(estimate) is not Linear:
        return False
    if estimate.kept_theta is None:
        return False
    if isinstance(inverse, LowRankInverse):
        return inverse.plain_rows is not None
    return isinstance(inverse, DenseInverse)


def learn_fused(
    inverse: Inverse,
    estimate: Linear,
    x: AnyVector,
    norm_sq: float,
    leverage: Leverage,
    reward: float,
    level: float,
) -> float | None:
    """Do ``inverse.append`` and ``estimate.learn`` at once, and return the prediction error from before.

    Returns None, and does nothing, if something overflows. ``level`` is that of the estimate before its scale
    had counted this reward.
    """
    theta = estimate.kept_theta
    assert theta is not None  # noqa: S101  (``can_fuse``)
    before, value = estimate.kept_level, reward - estimate.reward_scale.origin
    levels = before, level - before, estimate.level - before
    vectors = theta, estimate.b, estimate.sum, estimate.image
    through = _through_rows if isinstance(inverse, LowRankInverse) else _through_matrix
    error = through(inverse, x, norm_sq, leverage, value, vectors, levels)
    if error is not None:
        estimate.kept_level = estimate.level
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
