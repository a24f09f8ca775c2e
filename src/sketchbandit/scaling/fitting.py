"""Finding the scaling that fits the arms of a warm-up."""

import itertools
import math
from typing import Any

import numpy as np
from scipy import sparse

from sketchbandit.arrays import Vector
from sketchbandit.linalg import length_of, row_norms_sq
from sketchbandit.scaling.scaling import Scaling

BOUND = 3.0
"""Standard deviations at which entries are clipped."""
FAR_APART = 100.0
"""If a typical sparse arm has an entry above this times its lower quartile, "auto" scales columns."""
_CONSTANT = 1e-12  # times its largest entry: a column that deviates less counts as constant
_SMALLEST = 1e-300  # smallest standard deviation with a finite factor


def fitted(wanted: str | None, arms: Any, constant: float) -> Scaling:
    """The scaling that was asked for. "auto" chooses by the look of the arms."""
    dim = arms.shape[1]
    if wanted is None:
        return Scaling.none(dim, constant=constant * (_length(arms) or 1.0))
    if wanted == "rows" or (wanted == "auto" and sparse.issparse(arms) and not _far_apart(arms)):
        return Scaling.rows(dim, constant=constant)
    return by_column(arms, constant)


def _far_apart(arms: Any) -> bool:
    """Whether the typical sparse arm has one entry that dwarfs the others at length one."""
    rows = (abs(arms.data[start:stop]) for start, stop in itertools.pairwise(arms.indptr))
    ratios = [row.max() / np.quantile(row, 0.25, method="lower") for row in rows if row.all() and len(row)]
    return bool(ratios) and bool(np.median(ratios) > FAR_APART)


def by_column(arms: Any, constant: float) -> Scaling:
    """Scale columns: centre them (unless sparse), divide by the deviation, clip, and make arms of length one.

    The length is one on average. A column that did not vary is scaled by its largest entry. A column that
    was always 0 has no known scale.
    """
    largest = _largest(arms)
    unit = _power_of_two(largest)
    if sparse.issparse(arms):
        centre, spread = np.zeros(arms.shape[1]), _root_mean_square(arms, unit)
    else:
        centre, spread = (arms / unit).mean(axis=0) * unit, (arms / unit).std(axis=0) * unit
    live = (spread > _CONSTANT * largest) & (spread > _SMALLEST)
    if not live.any():  # there is only one arm, or all are equal
        return Scaling.rows(arms.shape[1], constant=constant)
    spread = np.where(live, spread, largest)
    unknown = spread[live].min() if sparse.issparse(arms) else 1.0  # a new word: like the rarest
    factor = 1.0 / np.where(spread > _SMALLEST, spread, unknown)
    length = _length(Scaling.columns(centre, factor, bound=BOUND).apply(arms))
    return Scaling.columns(centre, factor / length, bound=BOUND / length, constant=constant)


def _length(arms: Any) -> float:
    """The root mean square of the lengths."""
    unit = float(_power_of_two(_largest(arms).max(initial=0.0)))
    if sparse.issparse(arms):
        return length_of(arms.data / unit) / math.sqrt(arms.shape[0]) * unit
    return float(np.sqrt(row_norms_sq(arms / unit).mean())) * unit


def _largest(arms: Any) -> Vector:
    """The largest absolute value of every column."""
    largest = abs(arms).max(axis=0)
    return np.asarray(largest.toarray() if sparse.issparse(largest) else largest, np.float64).ravel()


def _root_mean_square(arms: Any, unit: Vector) -> Vector:
    """The root mean square of every column, including zeros."""
    squares = np.square(arms.data / unit[arms.indices])
    sums = np.bincount(arms.indices, weights=squares, minlength=arms.shape[1])
    return np.asarray(np.sqrt(sums / arms.shape[0]) * unit)


def _power_of_two(largest: Any) -> Any:
    """A power of two of about this size. Division by it loses no digit, and the result can be squared."""
    return np.ldexp(1.0, np.clip(np.frexp(largest)[1] - 1, -1022, 1023))
