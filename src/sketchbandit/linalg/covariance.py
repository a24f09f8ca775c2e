"""X'X: as a full matrix or in half the memory, its spectrum, rows that stand for it, how far a sketch is."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.linalg import lapack
from scipy.sparse.linalg import LinearOperator, eigsh

from sketchbandit.arrays import AnyArray, Matrix, Rows
from sketchbandit.linalg.products import product

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
