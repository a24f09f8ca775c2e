"""Row norms, squared and summed, and rows of length one."""

import numpy as np

from sketchbandit.arrays import AnyArray, Matrix, Vector

SUM_ROUNDING = 4.0 * float(np.finfo(np.float64).eps)
"""The part of a sum of squares that float64 may get wrong."""
SCALING_ROUNDING = 0.5 * SUM_ROUNDING
"""Of |S|_F²: what rounding may change in S'S where S is multiplied by the root of a factor."""


def row_norms_sq(rows: AnyArray) -> Vector:
    """Squared Euclidean norm of every row, in float64 whatever the dtype of ``rows``.

    A row's value does not depend on how many rows stand beside it, so that a stream read row by row
    and the same stream read in blocks have the same mass to the last bit.

    Examples
    --------
    >>> row_norms_sq(np.array([[3.0, 4.0], [0.0, 0.0]]))
    array([25.,  0.])

    """
    norms_sq: Vector = np.vecdot(rows, rows, dtype=np.float64)
    return norms_sq


def normalised(rows: AnyArray) -> Matrix:
    """The rows divided by their lengths; none may be zero.

    Examples
    --------
    >>> normalised(np.array([[3.0, 4.0]]))
    array([[0.6, 0.8]])

    """
    unit: Matrix = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return unit


def running_sums(start: float, values: Vector) -> Vector:
    """``start`` plus the first, the first two, ... values, added one after the other.

    The last of them is what adding the values one by one to ``start`` gives, to the bit.

    Examples
    --------
    >>> running_sums(1.0, np.array([2.0, 3.0]))
    array([3., 6.])

    """
    if len(values) == 1:
        return values + start
    return np.add.accumulate(np.concatenate([[start], values]))[1:]
