"""X'X: in full or in half the memory, its spectrum, rows that stand for it; row spaces and numerical rank."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import DTypeLike
from scipy import linalg, sparse
from scipy.linalg import lapack
from scipy.sparse.linalg import LinearOperator, eigsh

from sketchbandit.arrays import AnyArray, Matrix, Rows
from sketchbandit.linalg.products import gram, length_of, product, row_norms_sq

_PANEL = 32  # rows of the triangle that are stored, and multiplied, together
_DENSE_UP_TO = 600  # columns; beyond, Lanczos is faster and needs no dim x dim matrix


def add_rows_to_covariance(covariance: Matrix, rows: AnyArray, scratch: Matrix) -> None:
    """Add ``rows' rows`` in place, dim² flop a row; ``scratch`` is as large as the covariance.

    One symmetric product in numpy, not in scipy's BLAS, which keeps other threads waiting.

    Examples
    --------
    >>> covariance = np.zeros((2, 2))
    >>> add_rows_to_covariance(covariance, np.array([[1.0, 2.0]]), np.empty((2, 2)))
    >>> covariance
    array([[1., 2.],
           [2., 4.]])

    """
    wide = np.ascontiguousarray(rows, dtype=np.float64)
    covariance += product(wide.T, wide) if len(covariance) == 1 else np.matmul(wide.T, wide, out=scratch)


class Factor(NamedTuple):
    """Rows S with S'S = C up to ``remainder``: S'S ⪯ C ⪯ S'S + remainder·I, to rounding."""

    rows: Matrix
    remainder: float


def factor_of_covariance(covariance: Matrix) -> Factor:
    """At most dim rows S that stand for a covariance C: a pivoted Cholesky factor of its correlations.

    Columns are brought to one scale first (by powers of two, which is exact), so that small columns beside
    large ones keep all their digits; eigenvectors of C would lose those below eps times the largest
    eigenvalue. What correlations leave no digits for is the ``remainder``.

    Examples
    --------
    >>> factor_of_covariance(np.array([[4.0, 2.0], [2.0, 1.0]]))
    Factor(rows=array([[2., 1.]]), remainder=4.440892098500626e-16)

    """
    dim = len(covariance)
    diagonal = covariance.diagonal()
    scale = np.ones(dim)
    alive = diagonal > 0.0
    scale[alive] = np.ldexp(1.0, np.frexp(np.sqrt(diagonal[alive]))[1] - 1)
    tolerance = dim * float(np.finfo(np.float64).eps)
    factored, pivots, rank, _ = lapack.dpstrf(covariance / scale / scale[:, np.newaxis], tol=tolerance)
    order = pivots - 1
    rows = np.zeros((rank, dim))
    rows[:, order] = np.triu(factored)[:rank]
    rows *= scale
    left = order[rank:]
    return Factor(rows, float(tolerance * np.square(scale[left[alive[left]]]).sum()))


class PackedSymmetric:
    """A symmetric (dim, dim) float64 matrix, stored as the lower triangle in panels of 32 rows.

    A panel holds rows start..stop up to column stop, so that BLAS works on rectangles: dim²/2 + 16·dim
    numbers instead of dim².

    Examples
    --------
    >>> matrix = PackedSymmetric(3)
    >>> matrix.add_covariance(np.array([[1.0, 2.0, 0.0]]))
    >>> matrix.full()
    array([[1., 2., 0.],
           [2., 4., 0.],
           [0., 0., 0.]])

    """

    def __init__(self, dim: int) -> None:
        self._dim = dim
        self._starts = range(0, dim, _PANEL)
        self.flat: Matrix = np.zeros(sum(height * width for height, width in map(self._shape, self._starts)))

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self.flat.nbytes

    def add_covariance(self, rows: AnyArray) -> None:
        """Add ``rows' rows``."""
        rows = rows.astype(np.float64, copy=False)
        for start, panel in self._panels():
            height, width = panel.shape
            panel[:] += product(rows[:, start : start + height].T, rows[:, :width])

    def add(self, other: "PackedSymmetric") -> None:
        """Add another matrix of the same size."""
        self.flat += other.flat

    def add_full(self, matrix: Matrix) -> None:
        """Add a matrix that has both its triangles."""
        for start, panel in self._panels():
            height, width = panel.shape
            panel[:] += matrix[start : start + height, :width]

    def full(self) -> Matrix:
        """The matrix with both its triangles."""
        matrix = np.empty((self._dim, self._dim))
        for start, panel in self._panels():
            height, width = panel.shape
            matrix[start : start + height, :width] = panel
            matrix[:start, start : start + height] = panel[:, :start].T
        return matrix

    def _shape(self, start: int) -> tuple[int, int]:
        stop = min(start + _PANEL, self._dim)
        return stop - start, stop

    def _panels(self) -> Iterator[tuple[int, Matrix]]:
        taken = 0
        for start in self._starts:
            height, width = self._shape(start)
            yield start, self.flat[taken : taken + height * width].reshape(height, width)
            taken += height * width


def covariance_of(rows: AnyArray) -> Matrix:
    """S'S for S = ``rows``, (dim, dim), in float64 whatever the dtype of rows."""
    wide = rows.astype(np.float64, copy=False)
    return product(wide.T, wide)


def covariance_error(covariance: Matrix, rows: AnyArray, alpha: float = 0.0) -> float:
    """Spectral norm of ``covariance - (S'S + alpha I)`` for a symmetric ``covariance`` and S = ``rows``."""
    difference = covariance - covariance_of(rows)
    difference[np.diag_indices_from(difference)] -= alpha
    return float(np.abs(np.linalg.eigvalsh(difference)).max())


def spectral_error(data: Rows, rows: AnyArray, alpha: float = 0.0) -> float:
    """Spectral norm of ``X'X - (S'S + alpha I)`` for X = ``data`` (dense or sparse) and S = ``rows``.

    Dense up to 600 columns; beyond, the largest eigenvalue in magnitude by Lanczos, without forming a
    dim x dim matrix.

    Examples
    --------
    >>> spectral_error(np.diag([3.0, 1.0]), np.array([[3.0, 0.0]]))
    1.0

    """
    data = data.tocsr() if sparse.issparse(data) else np.asarray(data, dtype=np.float64)
    dim = data.shape[1]
    if dim <= _DENSE_UP_TO:
        covariance = data.T @ data
        dense = covariance.toarray() if sparse.issparse(covariance) else covariance
        return covariance_error(dense, rows, alpha)
    sketch = rows.astype(np.float64, copy=False)

    def apply(vector: Matrix) -> Matrix:
        vector = vector.ravel()
        result: Matrix = data.T @ (data @ vector) - sketch.T @ (sketch @ vector) - alpha * vector
        return result

    operator = LinearOperator((dim, dim), matvec=apply, dtype=np.float64)
    start = np.random.default_rng(0).standard_normal(dim)
    if not apply(start).any():
        return 0.0
    (extreme,) = eigsh(operator, k=1, which="LM", return_eigenvectors=False, v0=start, tol=1e-10)
    return float(abs(extreme))


def singular_values_sq(data: Rows) -> Matrix:
    """Squared singular values of ``data`` (dense or sparse), largest first.

    Those beyond the smaller side of the matrix are zero and left out.
    """
    if sparse.issparse(data):
        return gram_spectrum(data)
    return np.asarray(np.linalg.svd(np.asarray(data, dtype=np.float64), compute_uv=False) ** 2)


def gram_spectrum(data: Rows) -> Matrix:
    """``singular_values_sq`` by the smaller Gram matrix: several times faster, to sqrt(eps) of the largest.

    Examples
    --------
    >>> gram_spectrum(np.array([[3.0, 0.0], [0.0, 1.0]]))
    array([9., 1.])

    """
    small = data.T @ data if data.shape[0] > data.shape[1] else data @ data.T
    dense = small.toarray() if sparse.issparse(small) else small
    return np.maximum(np.linalg.eigvalsh(dense.astype(np.float64))[::-1], 0.0)


def symmetric_root(matrix: Matrix) -> Matrix:
    """The positive semidefinite root of a symmetric matrix, whose negative eigenvalues count as zero.

    There is only one, whatever signs or rotations its eigenvectors have: draws with it are the same to
    rounding on every machine.

    Examples
    --------
    >>> symmetric_root(np.diag([9.0, 4.0]))
    array([[3., 0.],
           [0., 2.]])

    """
    values, vectors = np.linalg.eigh(matrix)
    root: Matrix = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    return root


def fd_bound(sigma_sq: Matrix, size: int) -> float:
    """The bound Delta of the paper's eq. (spectral error) on Frequent Directions of ``size`` rows.

        Delta = min over 0 <= k < size of (sum of sigma_i² over i > k) / (size - k)

    ``sigma_sq`` are the squared singular values of the stream, in any order.

    Examples
    --------
    >>> fd_bound(np.array([5.0, 1.0]), size=2)
    1.0

    """
    descending = np.sort(sigma_sq)[::-1]
    tails = np.append(np.cumsum(descending[::-1])[::-1], 0.0)[:size]  # tails[k]: the mass outside rank k
    return float((tails / (size - np.arange(len(tails)))).min())


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
