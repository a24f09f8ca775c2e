"""Which scaling fits the arms of a warm-up."""

from typing import Any

import numpy as np
from scipy import sparse

from sketchbandit.linalg import row_norms_sq
from sketchbandit.scaling.scaling import Scaling

BOUND = 3.0
"""Deviations beyond which an entry is cut."""
_CONSTANT = 1e-6  # of the largest deviation: below that a column is as good as constant


def fitted(wanted: str | None, arms: Any, constant: float) -> Scaling:
    """The scaling that was asked for; ``auto`` chooses by what the arms look like."""
    dim = arms.shape[1]
    if wanted is None:
        return Scaling.none(dim, constant=constant * (_length(arms) or 1.0))
    if wanted == "rows" or (wanted == "auto" and sparse.issparse(arms)):
        return Scaling.rows(dim, constant=constant)
    return by_column(arms, constant)


def by_column(arms: Any, constant: float) -> Scaling:
    """Centred, unless they are sparse, divided by the deviation, cut, and of length one in the mean.

    A column that did not vary is left out: nothing is known of its scale.
    """
    if sparse.issparse(arms):
        centre = np.zeros(arms.shape[1])
        spread = np.sqrt(np.asarray(arms.power(2).mean(axis=0), dtype=np.float64).ravel())
    else:
        centre, spread = arms.mean(axis=0), arms.std(axis=0)
    live = spread > _CONSTANT * spread.max(initial=0.0)
    if not live.any():  # one arm, or several that are equal
        return Scaling.rows(arms.shape[1], constant=constant)
    factor = np.zeros(arms.shape[1])
    factor[live] = 1.0 / spread[live]
    length = _length(Scaling.columns(centre, factor, bound=BOUND).apply(arms))
    return Scaling.columns(centre, factor / length, bound=BOUND / length, constant=constant)


def _length(arms: Any) -> float:
    """The root mean square of their lengths."""
    squares = arms.power(2).sum() / arms.shape[0] if sparse.issparse(arms) else row_norms_sq(arms).mean()
    return float(np.sqrt(squares))
