"""X'X of rows that come by the thousand, as a full matrix or in half the memory; rows that stand for it."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack

from sketchbandit.arrays import AnyArray, Matrix
from sketchbandit.linalg.inner import product

_PANEL = 32  # rows of the triangle that are stored, and multiplied, together


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
