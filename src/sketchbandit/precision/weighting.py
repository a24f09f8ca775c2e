"""Weighted arms: the sketch takes sqrt(weight)·x."""

import math

import numpy as np

from sketchbandit.arms import norm_sq_of
from sketchbandit.arrays import AnyArray
from sketchbandit.linalg import AnyVector, SparseVector
from sketchbandit.precision.inverse import Leverage
from sketchbandit.precision.precision import Precision
from sketchbandit.sketch import Change

_LEAST_SQ = {np.dtype(np.float64): 1e-200, np.dtype(np.float32): 1e-36}
# of weight·|x|²: products of rows that are shorter underflow


def take_weighted(
    precision: Precision, x: AnyVector, row: AnyArray, norm_sq: float, *, weight: float, leverage: Leverage
) -> Change:
    """Add sqrt(weight)·x to sketch and precision. ``row`` is x as the sketch stores it, (1, dim)."""
    sketch, root, scaled_sq = precision.sketch, math.sqrt(weight), weight * norm_sq
    if scaled_sq < _LEAST_SQ[row.dtype]:  # so small that a float cannot tell it from a zero row
        change = sketch.take_one(np.zeros_like(row), 0.0)
        precision.nothing_changed()
        return change
    own = row * row.dtype.type(root)  # as the sketch stores it
    wide = own[0].astype(np.float64, copy=False)
    scaled: AnyVector = wide
    if own.dtype != np.float64:  # rounded once more
        scaled_sq = norm_sq_of(wide)
        leverage = precision.inverse.leverage(wide, scaled_sq)
    else:
        leverage = leverage.times(root)
        if isinstance(x, SparseVector):
            scaled = SparseVector(x.indices, root * x.values)
    change = sketch.take_one(own, scaled_sq, precision.products_of(leverage))
    if precision.inverse.follows(change, scaled_sq):
        precision.inverse.append(scaled, scaled_sq, leverage)
        precision.grown(scaled, scaled_sq, leverage, change)
    else:
        precision.rebuild(orthogonal=change.orthogonal)
    return change
