"""What rounding may change in sums of squares, running sums, and rows of length one with a sign."""

import numpy as np

from sketchbandit.arrays import AnyArray, Matrix, Vector
from sketchbandit.linalg.inner import row_norms_sq

SUM_ROUNDING = 4.0 * float(np.finfo(np.float64).eps)
"""The part of a sum of squares that float64 may get wrong."""
SCALING_ROUNDING = 0.5 * SUM_ROUNDING
"""Of |S|_F²: what rounding may change in S'S where S is multiplied by the root of a factor."""
_NEARLY_LARGEST = 0.83


def normalised(rows: AnyArray) -> Matrix:
    """The rows divided by their lengths; none may be zero.

    Examples
    --------
    >>> normalised(np.array([[3.0, 4.0]]))
    array([[0.6, 0.8]])

    """
    unit: Matrix = rows / np.sqrt(row_norms_sq(rows))[:, np.newaxis]
    return unit


def oriented(directions: AnyArray) -> Matrix:
    """Rows that are known up to their sign (eigenvectors), with a sign that no rounding changes.

    The first entry above 0.83 of the largest is positive. (Not the largest: in data that repeat, two of
    opposite signs are often equally large, and rounding would choose.) So machines whose eigenvectors differ
    in sign have the same sketch to rounding, and draw the same from it.

    Examples
    --------
    >>> oriented(np.array([[0.6, -0.8], [1.0, 0.0]]))
    array([[-0.6,  0.8],
           [ 1. ,  0. ]])

    """
    if not directions.size:
        return directions
    sizes = np.abs(directions)
    first = (sizes > _NEARLY_LARGEST * sizes.max(axis=1, keepdims=True)).argmax(axis=1)
    signs = np.copysign(1.0, np.take_along_axis(directions, first[:, np.newaxis], axis=1))
    turned: Matrix = directions * signs
    return turned


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
