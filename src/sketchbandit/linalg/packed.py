"""A symmetric matrix in half the memory."""

from collections.abc import Iterator

import numpy as np

from sketchbandit.arrays import AnyArray, Matrix
from sketchbandit.linalg.inner import product

_PANEL = 32  # rows of the triangle that are stored, and multiplied, together


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
