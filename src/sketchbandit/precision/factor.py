"""The inverse Cholesky factor of a Gram matrix that grows by one row at a time."""

import math

import numpy as np

from sketchbandit.arrays import Matrix, Vector
from sketchbandit.linalg import SUM_ROUNDING, invert_lower

MOST_TRIES = 60  # attempts to factor with a jitter; each doubles it


class GrowingFactor:
    """W, lower triangular, with W G W' = I for G = SS' + shift I and rows S that come one by one.

    Then y' G^-1 y = |W y|², and a new row x adds one row to W and changes none: with u = W S x and the
    pivot p = shift + |x|² - |u|², which is at least the shift, the row is (-u'W, 1) / sqrt(p). This is
    eq. (fast alg) of the paper for the factor instead of the inverse: O(r²) a row, nothing rewritten, and
    no way to lose positive definiteness.
    """

    def __init__(self, shift: float) -> None:
        self.shift = shift
        self.jitter = 0.0  # part of the shift, added because rounding of long rows exceeded the rest
        self.count = 0
        self.array: Matrix = np.zeros((0, 0))

    @classmethod
    def of_gram(cls, products: Matrix, shift: float) -> "GrowingFactor":
        """The factor for SS' = ``products``."""
        shifted = products.copy()
        largest = float(products.diagonal().max(initial=0.0))
        least = least_jitter(largest, shift)
        shifted[np.diag_indices_from(shifted)] += shift + least
        lower, more = _cholesky(shifted, largest)
        factor = cls(shift + least + more)
        factor.jitter = least + more
        factor.restore(invert_lower(lower))
        return factor

    @classmethod
    def of_orthogonal(cls, norms_sq: Vector, shift: float) -> "GrowingFactor":
        """The factor for orthogonal rows of these squared norms: G is diagonal."""
        jitter = least_jitter(float(norms_sq.max(initial=0.0)), shift)
        factor = cls(shift + jitter)
        factor.jitter = jitter
        factor.restore(np.diag(1.0 / np.sqrt(norms_sq + factor.shift)))
        return factor

    @property
    def matrix(self) -> Matrix:
        """W, (count, count)."""
        return self.array[: self.count, : self.count]

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        return self.array.nbytes

    def begin_row(self, norm_sq: float, remainder: float) -> float:
        """Make room for a row x with |x|² and |x|² - |u|²; returns sqrt(p), with which the row is written."""
        self.array = with_room(self.array, self.count)
        # A pivot below the rounding of |x|² would be noise.
        return math.sqrt(self.shift + max(remainder, SUM_ROUNDING * norm_sq))

    def end_row(self) -> None:
        """Count the row that was written."""
        self.count += 1

    def restore(self, matrix: Matrix) -> None:
        """Set W."""
        self.array, self.count = matrix, len(matrix)


def with_room(array: Matrix, count: int) -> Matrix:
    """A square array with room for one row more than ``count``: the same one, or a larger copy."""
    if count < len(array):
        return array
    grown = np.zeros((count + max(16, count // 8),) * 2)
    grown[:count, :count] = array
    return grown


def least_jitter(largest: float, shift: float) -> float:
    """What must be added to the diagonal besides the shift, if rounding of long rows exceeds the shift."""
    noise = SUM_ROUNDING * largest
    return noise if noise > shift else 0.0


def _cholesky(shifted: Matrix, largest: float) -> tuple[Matrix, float]:
    """A lower factor, and the smallest jitter with which it exists."""
    jitter = 0.0
    for _ in range(MOST_TRIES):
        try:
            return np.asarray(np.linalg.cholesky(shifted), dtype=np.float64), jitter
        except np.linalg.LinAlgError:
            more = max(2.0 * jitter, SUM_ROUNDING * largest)
            shifted[np.diag_indices_from(shifted)] += more - jitter
            jitter = more
    raise np.linalg.LinAlgError("the Gram matrix of the rows is not positive definite, whatever is added")
