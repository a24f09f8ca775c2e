"""An upper bound on ln det(lambda I + X'X) from the rows of a sketch: what a radius needs to know."""

import math
from typing import Any

import numpy as np

from sketchbandit.arrays import Matrix, Parts, Vector
from sketchbandit.linalg import SUM_ROUNDING, row_norms_sq
from sketchbandit.ridge.parts import gram_of_parts

_EPS = float(np.finfo(np.float64).eps)


def rounded_up(log_det: float, dim: int, shift: float, mass: float) -> float:
    """At least log det(shift I + X'X), where that was computed in float64."""
    return log_det + dim * math.log1p(SUM_ROUNDING * mass / shift)


class GrowingGram:
    """SS' of rows that come one by one, from which log det(shift I + S'S) follows for any shift."""

    def __init__(self, products: Matrix) -> None:
        self._array = products
        self._count = len(products)

    @classmethod
    def of_rows(cls, parts: Parts, *, orthogonal: bool) -> "GrowingGram":
        """Of these rows; O(r·d) if they are orthogonal."""
        if orthogonal:
            return cls(np.diag(np.concatenate([row_norms_sq(part) for part in parts])))
        return cls(gram_of_parts(parts))

    @property
    def matrix(self) -> Matrix:
        """SS'."""
        return self._array[: self._count, : self._count]

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        return self._array.nbytes

    def append(self, products: Vector, norm_sq: float) -> None:
        """A row x more: S x and |x|²."""
        count = self._count
        if count == len(self._array):
            grown = np.zeros((count + max(16, count // 8),) * 2)
            grown[:count, :count] = self._array
            self._array = grown
        self._array[count, :count] = self._array[:count, count] = products
        self._array[count, count] = norm_sq
        self._count = count + 1

    def log_det(self, dim: int, shift: float) -> float:
        """log det(shift I + S'S) = (d - r) log shift + log det(shift I + SS'), never rounded down."""
        shift += SUM_ROUNDING * float(self.matrix.diagonal().sum())
        shifted = self.matrix.copy()
        shifted[np.diag_indices_from(shifted)] += shift
        outside = (dim - self._count) * math.log(shift)
        try:
            pivots = np.linalg.cholesky(shifted).diagonal()
        except np.linalg.LinAlgError:  # rows so long that rounding has eaten the shift
            spectrum = np.maximum(np.linalg.eigvalsh(self.matrix), 0.0)
            return outside + float(np.log(spectrum + shift).sum())
        return outside + 2.0 * float(np.log(pivots).sum())

    def spread_error(self, sketch: Any) -> float:
        """ẽ with log det(lambda I + X'X) <= log det((lambda + ẽ) I + S'S), for every lambda.

        X'X - S'S has the trace tau = mass - |S|_F² and no eigenvalue above e. It raises the determinant the
        most where S'S is least, in the d - r directions outside of S, spread evenly over them: by no more
        than ẽ = min(e, tau/(d - r)) in each (docs/mathematics.md).
        """
        error = max(float(sketch.error_bound), float(sketch.alpha))
        outside = int(sketch.dim) - self._count
        mass = float(getattr(sketch, "mass", math.inf))
        if not error or outside <= 0 or not math.isfinite(mass):
            return error
        # The mass is a sum of rounded terms; and S'S may exceed X'X by the rounding of the sketch.
        slack = (sketch.count + self._count) * _EPS * mass + sketch.dim * getattr(sketch, "rounding", 0.0)
        tau = max(0.0, mass - float(self.matrix.diagonal().sum()))
        return min(error, (tau + float(slack)) / outside)
