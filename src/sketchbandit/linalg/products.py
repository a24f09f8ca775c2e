"""Products of rows and vectors, in float64 whatever their dtype, the same to the bit wherever they lie.

With some BLAS kernels (OpenBLAS's for Prescott, for one) x'y depends on whether x and y start at a multiple
of 16 bytes. The k-th row of a matrix with an odd number of columns does so for even k alone, and its copy
always does: a policy that was loaded, or that replays a journal, would learn other last bits. Products of
matrices, and of a matrix with a vector, do not depend on it. So numpy's own loops sum up what makes one
number, and BLAS does everything else.

A buffer of m rows of length d is multiplied from the left by small matrices only, so each panel of columns
can be read, used and overwritten before the next: the work space is one panel instead of a second buffer.
Panels are float64 whatever the buffer's dtype: float32 is a way to store rows, not to compute with them, so
that the small directions of a float32 sketch are as accurate as its rows.
"""

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sketchbandit.arrays import AnyArray, Matrix, Parts, Vector

try:  # without the dispatch of np.einsum, which takes longer than a short sum
    from numpy._core.multiarray import c_einsum as _einsum
except ImportError:  # a numpy that keeps it elsewhere
    _einsum = np.einsum

_WIDE = np.dtype(np.float64)
_COLUMNS = 4096  # a longer run numpy may cut in pieces, and where depends on what stands beside it
_ENTRIES = 1 << 16  # that are converted to float64 at a time
SUM_ROUNDING = 4.0 * float(np.finfo(np.float64).eps)
"""The part of a sum of squares that float64 may get wrong."""
SCALING_ROUNDING = 0.5 * SUM_ROUNDING
"""Of |S|_F²: what rounding may change in S'S where S is multiplied by the root of a factor."""
_NEARLY_LARGEST = 0.83
_PANEL_ELEMENTS = 1 << 18  # 2 MiB of float64: stays in the cache, wide enough for full BLAS speed


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


def column_panels(rows: AnyArray) -> Iterator[tuple[slice, Matrix]]:
    """The columns of ``rows`` as (slice, float64 panel) pairs, at most 2 MiB each."""
    count, dim = rows.shape
    width = max(64, _PANEL_ELEMENTS // max(count, 1))
    for start in range(0, dim, width):
        columns = slice(start, min(start + width, dim))
        yield columns, rows[:, columns].astype(np.float64, copy=False)


def gram(rows: AnyArray) -> Matrix:
    """``rows @ rows.T`` in float64."""
    if rows.dtype == np.float64:
        return product(rows, rows.T)
    total = np.zeros((len(rows), len(rows)))
    for _, panel in column_panels(rows):
        total += product(panel, panel.T)
    return total


def gram_of_parts(parts: Parts) -> Matrix:
    """SS', (r, r)."""
    count = sum(len(part) for part in parts)
    products = np.empty((count, count))
    above = 0
    for i, part in enumerate(parts):
        rows = slice(above, above + len(part))
        products[rows, rows] = gram(part)
        left = 0
        for other in parts[:i]:
            columns = slice(left, left + len(other))
            products[rows, columns] = _cross(part, other)
            products[columns, rows] = products[rows, columns].T
            left += len(other)
        above += len(part)
    return products


def _cross(one: AnyArray, other: AnyArray) -> Matrix:
    if one.dtype == other.dtype == np.float64:
        return product(one, other.T)
    products = np.zeros((len(one), len(other)))
    for columns, panel in column_panels(one):
        products += product(panel, other[:, columns].astype(np.float64, copy=False).T)
    return products


def multiply_in_place(weights: Matrix, rows: AnyArray) -> None:
    """Overwrite the first ``len(weights)`` rows with ``weights @ rows``."""
    kept = len(weights)
    for columns, panel in column_panels(rows):
        rows[:kept, columns] = product(weights, panel)


def residual_norm_sq(vectors: Matrix, rows: AnyArray) -> float:
    """Squared Frobenius norm of ``rows - V'V rows`` for orthonormal rows V, without cancellation."""
    total = 0.0
    for _, panel in column_panels(rows):
        residual = panel - vectors.T @ product(vectors, panel)
        total += float(row_norms_sq(residual).sum())
    return total


class SparseVector(NamedTuple):
    """The non-zero entries of a vector: O(non-zeros) wherever a dense one would cost O(dim)."""

    indices: NDArray[np.integer[Any]]
    values: Vector


AnyVector = Vector | SparseVector


def as_dense(x: AnyVector, dim: int) -> Vector:
    """All of its ``dim`` entries."""
    if not isinstance(x, SparseVector):
        return x
    dense = np.zeros(dim)
    dense[x.indices] = x.values
    return dense


def dot(vector: Vector, x: AnyVector) -> float:
    """``vector' x``."""
    if isinstance(x, SparseVector):
        return inner(vector[x.indices], x.values)
    return inner(vector, x)


def add_multiple(vector: Vector, factor: float, x: AnyVector) -> None:
    """``vector += factor * x`` in place."""
    if isinstance(x, SparseVector):
        vector[x.indices] += factor * x.values  # indices are unique
    else:
        vector += factor * x


def same_vector(one: AnyVector, other: AnyVector) -> bool:
    """Whether two vectors are equal, entry by entry, in the same form."""
    if isinstance(one, SparseVector) and isinstance(other, SparseVector):
        return np.array_equal(one.indices, other.indices) and np.array_equal(one.values, other.values)
    if isinstance(one, SparseVector) or isinstance(other, SparseVector):
        return False
    return one is other or bool((one == other).all())


def rows_times(rows: AnyArray, x: Vector) -> Vector:
    """``rows @ x``."""
    if rows.dtype == np.float64:
        return product(rows, x)
    made = np.zeros(len(rows))
    for columns, panel in column_panels(rows):
        made += product(panel, x[columns])
    return made


def times_rows(weights: Vector, rows: AnyArray) -> Vector:
    """``weights' rows``."""
    if rows.dtype == np.float64:
        return product(weights, rows)
    made = np.empty(rows.shape[1])
    for columns, panel in column_panels(rows):
        made[columns] = product(weights, panel)
    return made
