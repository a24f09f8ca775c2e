"""A root of a matrix from which outer products are subtracted, for draws from N(0, A^-1)."""

import numpy as np
from scipy.linalg import solve_triangular

from sketchbandit.arrays import Matrix, Vector
from sketchbandit.kernels import loops
from sketchbandit.linalg import inner
from sketchbandit.precision.factor import MOST_TRIES

_CLOSEST = 1.0 - 1e-12  # to 1: |p|² of a row beyond which nothing would be left of its direction


class UpdatedRoot:
    """R with RR' = P - q_1 q_1' - ... - q_k q_k', R = L M_1 ... M_k, L the Cholesky factor of P.

    With p = R^-1 q of the next row, P - qq' = R (I - pp') R', and M = I - c pp' is a root of I - pp' for
    c = (1 - sqrt(1 - |p|²)) / |p|². A row costs O(d²), once, and does not depend on when it is asked for.
    """

    def __init__(self, matrix: Matrix, most: int) -> None:
        self.count = 0
        self._lower = _cholesky(matrix)
        self._rows: Matrix = np.empty((most, len(matrix)))  # the p
        self._shares: Vector = np.empty(most)  # the c
        self._back: Vector = np.empty(most)  # M^-1 = I + back·pp'

    @property
    def nbytes(self) -> int:
        """Bytes of every array held."""
        return sum(array.nbytes for array in (self._lower, self._rows, self._shares, self._back))

    def subtract(self, row: Vector) -> None:
        """Subtract qq'."""
        compiled, count = loops(self._lower.size), self.count
        p = self._rows[count]
        if compiled is None:
            p[:] = solve_triangular(self._lower, row, lower=True, check_finite=False)
            for i in range(count):
                p += self._back[i] * inner(self._rows[i], p) * self._rows[i]
        else:
            compiled.turn_row(self._lower, self._rows, self._back, count, row, p)
        length_sq = inner(p, p)
        if length_sq > _CLOSEST:  # rounding
            p *= np.sqrt(_CLOSEST / length_sq)
            length_sq = _CLOSEST
        left = np.sqrt(1.0 - length_sq)
        self._shares[count] = 1.0 / (1.0 + left)  # (1 - left) / (1 - left²)
        self._back[count] = self._shares[count] / left
        self.count += 1

    def times(self, noise: Vector) -> Vector:
        """R z; z is written to."""
        compiled = loops(self._lower.size)
        if compiled is not None:
            drawn = np.empty_like(noise)
            compiled.draw_dense(self._lower, self._rows, self._shares, self.count, noise, drawn)
            return drawn
        for i in reversed(range(self.count)):
            noise -= self._shares[i] * inner(self._rows[i], noise) * self._rows[i]
        product: Vector = self._lower @ noise
        return product


def _cholesky(matrix: Matrix) -> Matrix:
    """L with LL' = ``matrix``, plus the smallest jitter that makes it positive definite."""
    jitter = 0.0
    for _ in range(MOST_TRIES):
        try:
            shifted = matrix + jitter * np.eye(len(matrix)) if jitter else matrix
            return np.asarray(np.linalg.cholesky(shifted), dtype=np.float64)
        except np.linalg.LinAlgError:
            jitter = max(2.0 * jitter, 1e-16 * float(np.abs(matrix).max()))
    raise np.linalg.LinAlgError("A^-1 is not positive semidefinite, whatever is added")
