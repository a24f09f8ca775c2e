"""Row spaces and numerical rank: the test behind ``willExcessSketch``."""

import numpy as np
from numpy.typing import DTypeLike
from scipy import linalg

from sketchbandit.arrays import AnyArray, Matrix
from sketchbandit.linalg.products import gram, length_of, product, row_norms_sq

_CLEARLY_INDEPENDENT = 1e-4  # a Cholesky pivot of a Gram matrix is accurate to about 1e-8


def rank_tolerance(dtype: DTypeLike) -> float:
    """The fraction of a row's length under which its distance from a span counts as zero: eps^0.6.

    Its square, eps^1.2, is below rounding. Nothing is dropped for being under it: a row that counts as
    inside the span is kept like any other, and what a later shrink takes of it is certified.

    Examples
    --------
    >>> rank_tolerance(np.float64) < 1e-9 < 1e-5 < rank_tolerance(np.float32) < 1e-4
    True

    """
    return float(np.finfo(dtype).eps ** 0.6)


def row_space(rows: AnyArray) -> Matrix:
    """Orthonormal rows that span the row space of ``rows`` to its numerical rank."""
    directions = _normalised(rows)
    if not len(directions):
        return directions
    basis, triangle, _ = linalg.qr(directions.T, mode="economic", pivoting=True, check_finite=False)
    pivots = np.abs(triangle.diagonal())
    rank = int(np.count_nonzero(pivots > rank_tolerance(rows.dtype) * pivots[0]))
    return np.ascontiguousarray(basis[:, :rank].T)


def extend_span(basis: Matrix, rows: AnyArray, limit: int) -> tuple[int, Matrix]:
    """How many leading ``rows`` fit into a row space of at most ``limit`` dimensions, and that space.

    ``basis`` holds orthonormal rows. A row lies in their span when its residual is under the rank
    tolerance; otherwise it adds a dimension while ``limit`` allows. Stops at the first row that would
    exceed the limit. Rows must not be zero. O(limit · dim) a row.

    Examples
    --------
    >>> fitting, basis = extend_span(np.eye(1, 3), np.eye(3), limit=2)
    >>> fitting, len(basis)
    (2, 2)

    """
    tolerance = rank_tolerance(rows.dtype)
    directions = _normalised(rows)
    # To sort the clear cases out, all at once.
    residual = directions - product(product(directions, basis.T), basis)
    distance = np.sqrt(row_norms_sq(residual))
    start = 0
    while True:
        unclear = np.flatnonzero(distance[start:] > tolerance / 2)
        if not len(unclear):
            return len(rows), basis
        start += int(unclear[0])
        # From here on the row alone decides, so that a stream in blocks and row by row agree to the bit.
        direction, outside = _distance(basis, directions[start])
        if outside > tolerance:
            if len(basis) >= limit:
                return start, basis
            direction, _ = _distance(basis, direction / outside)  # once more, for orthogonality
            direction /= length_of(direction)
            basis = np.vstack([basis, direction])
            residual[start:] -= np.outer(product(residual[start:], direction), direction)
            distance[start:] = np.sqrt(row_norms_sq(residual[start:]))
        start += 1


def _distance(basis: Matrix, row: Matrix) -> tuple[Matrix, float]:
    """What is left of the row outside the span of the basis, and its length."""
    left = row - product(product(basis, row), basis)
    return left, length_of(left)


def are_independent(rows: AnyArray) -> bool:
    """Whether the rows are clearly linearly independent; False also means "not sure".

    One Cholesky factorisation of the Gram matrix of the normalised rows: far cheaper than a rank.

    Examples
    --------
    >>> are_independent(np.eye(3)), are_independent(np.ones((2, 3)))
    (True, False)

    """
    if not len(rows):
        return True
    products = gram(rows)
    lengths = np.sqrt(products.diagonal())
    if not np.all(lengths > 0.0):
        return False
    try:
        factor = np.linalg.cholesky(products / lengths / lengths[:, np.newaxis])
    except np.linalg.LinAlgError:
        return False
    return bool(factor.diagonal().min() > _CLEARLY_INDEPENDENT)


def _normalised(rows: AnyArray) -> Matrix:
    """The non-zero rows divided by their norms, as a new float64 array."""
    norms_sq = row_norms_sq(rows)
    if not norms_sq.all():
        rows, norms_sq = rows[norms_sq > 0.0], norms_sq[norms_sq > 0.0]
    normalised: Matrix = rows / np.sqrt(norms_sq)[:, np.newaxis]
    return normalised
