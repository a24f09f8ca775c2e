"""The update of a precision and of a linear model, fused into one compiled loop."""

import math

from sketchbandit.arrays import Vector
from sketchbandit.estimate.base import Estimate
from sketchbandit.estimate.linear import Linear
from sketchbandit.kernels import kernels, loops
from sketchbandit.linalg import AnyVector, SparseVector
from sketchbandit.precision import DenseInverse, Inverse, Leverage, LowRankInverse


def learn_fused(
    inverse: Inverse, estimate: Estimate, x: AnyVector, norm_sq: float, leverage: Leverage, reward: float
) -> float | None:
    """Do ``inverse.append`` and ``estimate.learn`` at once, and return reward - x'theta from before.

    Returns None, and does nothing, if that is not possible.
    """
    compiled = kernels()
    if compiled is None or isinstance(x, SparseVector) or type(estimate) is not Linear:
        return None
    theta = estimate.kept_theta
    if theta is None:
        return None
    if isinstance(inverse, LowRankInverse):
        return _through_rows(inverse, x, norm_sq, leverage, reward, theta, estimate.b)
    if isinstance(inverse, DenseInverse):
        most = norm_sq / inverse.shift
        pending, count = inverse.pending, inverse.pending_count
        grown, error = compiled.grow_dense(
            x, reward, pending, count, most, leverage.value, leverage.image, leverage.seen, theta, estimate.b
        )
        if grown >= 0.0:
            inverse.count_row(grown)
            return float(error)
    return None


def _through_rows(
    inverse: LowRankInverse,
    x: Vector,
    norm_sq: float,
    leverage: Leverage,
    reward: float,
    theta: Vector,
    b: Vector,
) -> float | None:
    rows, factor = inverse.plain_rows, inverse.factor
    if rows is None:
        return None
    pivot = factor.begin_row(norm_sq, leverage.value)
    quadratic = leverage.value / factor.shift
    error: float = loops(rows.size).grow_rows(
        x, reward, rows, factor.array, factor.count, pivot, quadratic, factor.shift, leverage.seen, theta, b
    )
    if not math.isfinite(error):
        return None
    factor.end_row()
    return error
