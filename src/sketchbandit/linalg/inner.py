"""Inner products that are the same to the bit wherever in memory the numbers lie.

With some BLAS kernels (OpenBLAS's for Prescott, for one) x'y depends on whether x and y start at a multiple
of 16 bytes. The k-th row of a matrix with an odd number of columns does so for even k alone, and its copy
always does: a policy that was loaded, or that replays a journal, would learn other last bits. Products of
matrices, and of a matrix with a vector, do not depend on it. So numpy's own loops sum up what makes one
number, and BLAS does everything else.
"""

import math

import numpy as np

from sketchbandit.arrays import AnyArray, Matrix, Vector

try:  # without the dispatch of np.einsum, which takes longer than a short sum
    from numpy._core.multiarray import c_einsum as _einsum
except ImportError:  # a numpy that keeps it elsewhere
    _einsum = np.einsum

_WIDE = np.dtype(np.float64)
_COLUMNS = 4096  # a longer run numpy may cut in pieces, and where depends on what stands beside it
_ENTRIES = 1 << 16  # that are converted to float64 at a time


def inner(one: AnyArray, other: AnyArray) -> float:
    """x'y of two vectors, in float64 whatever their dtype; inf or NaN without a warning.

    Examples
    --------
    >>> inner(np.array([3.0, 4.0]), np.array([1.0, 2.0]))
    11.0

    """
    if one.dtype is _WIDE is other.dtype and len(one) <= _COLUMNS:
        return float(_einsum("i,i", one, other))
    return float(inner_rows(one[np.newaxis], other)[0])


def inner_rows(rows: AnyArray, others: AnyArray) -> Vector:
    """x'y of every row x of a C-ordered matrix and y, the same row of another one, or one vector for all.

    The value of a row is that of ``inner``, whatever stands beside it.

    Examples
    --------
    >>> inner_rows(np.array([[3.0, 4.0], [0.0, 1.0]]), np.array([1.0, 2.0]))
    array([11.,  2.])

    """
    form = "ij,ij->i" if others.ndim == 2 else "ij,j->i"
    count, dim = rows.shape
    is_wide = rows.dtype is _WIDE is others.dtype
    if is_wide and dim <= _COLUMNS:
        found: Vector = _einsum(form, rows, others)
        return found
    found = np.zeros(count)
    step = max(count, 1) if is_wide else max(1, _ENTRIES // max(min(dim, _COLUMNS), 1))
    for top in range(0, count, step):
        for left in range(0, dim, _COLUMNS):
            part = np.s_[top : top + step, left : left + _COLUMNS]
            wide = rows[part].astype(np.float64, copy=False)
            beside = others[part if others.ndim == 2 else part[1]]
            found[part[0]] += _einsum(
                form, wide, wide if others is rows else beside.astype(np.float64, copy=False)
            )
    return found


def row_norms_sq(rows: AnyArray) -> Vector:
    """Squared Euclidean norm of every row, in float64 whatever the dtype of ``rows``.

    A row's value does not depend on how many rows stand beside it, so that a stream read row by row
    and the same stream read in blocks have the same mass to the last bit.

    Examples
    --------
    >>> row_norms_sq(np.array([[3.0, 4.0], [0.0, 0.0]]))
    array([25.,  0.])

    """
    return inner_rows(rows, rows)


def length_of(x: AnyArray) -> float:
    """|x| of a vector, in float64; inf or NaN without a warning."""
    return math.sqrt(inner(x, x))


def product(one: AnyArray, other: AnyArray) -> Matrix:
    """``one @ other`` for float64 matrices, one of which may be a vector.

    If that is one number, BLAS would compute it as an inner product.
    """
    if (one.ndim > 1 and len(one) != 1) or (other.ndim > 1 and other.shape[1] != 1):
        made: Matrix = one @ other
        return made
    return np.full(one.shape[:-1] + other.shape[1:], inner(one.reshape(-1), other.reshape(-1)))
