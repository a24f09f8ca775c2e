"""An upper bound on ln det(lambda I + X'X) from a sketch, for the confidence radius."""

import math

import numpy as np

from sketchbandit.arrays import Arrays, Matrix, Scalars, Vector, taken_from, under
from sketchbandit.linalg import SUM_ROUNDING, AnyVector
from sketchbandit.precision.dense import DenseInverse
from sketchbandit.precision.inverse import Inverse
from sketchbandit.precision.lowrank import project, with_room
from sketchbandit.sketch import Change, Sketch

_EPS = float(np.finfo(np.float64).eps)


class DeterminantBound:
    """Follows a sketch beside its precision: SS' of one that has rows.

    Of a dense one the inverse of (lambda + e) I + S'S, if e > alpha; else the precision knows.
    """

    def __init__(self, sketch: Sketch, ridge: float) -> None:
        self._sketch = sketch
        self._ridge = ridge
        self._gram: GrowingGram | None = None
        self._inverse_at_e: DenseInverse | None = None

    @property
    def nbytes(self) -> int:
        """Bytes of every array held."""
        return sum(held.nbytes for held in (self._gram, self._inverse_at_e) if held is not None)

    def log_det(self, inverse: Inverse) -> float:
        """An upper bound on log det(lambda I + X'X). ``inverse`` is that of the precision."""
        sketch = self._sketch
        if not math.isfinite(sketch.error_bound):
            return math.inf
        if self._gram is not None:
            return self._gram.log_det(sketch.dim, self._ridge + self._gram.spread_error(sketch))
        known = self._inverse_at_e or inverse
        assert isinstance(known, DenseInverse)  # noqa: S101  (for the type checker)
        # Add the float64 rounding of X'X, to be on the safe side.
        rounded = sketch.dim * math.log1p(SUM_ROUNDING * sketch.row_stats.mass / known.shift)
        return known.log_det + rounded

    def derive(self, *, orthogonal: bool) -> None:
        """Compute it again from the sketch."""
        sketch = self._sketch
        self._gram = self._inverse_at_e = None
        if not sketch.is_dense:
            self._gram = GrowingGram(sketch.row_products(orthogonal=orthogonal))
        elif sketch.error_bound > sketch.alpha:
            shift = self._ridge + sketch.error_bound
            self._inverse_at_e = DenseInverse.of_covariance(sketch.gram, shift)

    def grow(self, x: AnyVector, norm_sq: float, products: Vector | None, change: Change) -> None:
        """Follow a change by the row x; ``products``: S x with the rows before it, if it is known."""
        if self._gram is not None and change.rebuilt:  # without loss, else everything would be
            self.derive(orthogonal=change.orthogonal)
        elif self._gram is not None:  # the sketch has appended x
            known = project(self._sketch.views(), x)[:-1] if products is None else products
            self._gram.append(known, norm_sq)
        elif self._inverse_at_e is not None:
            at_e = self._inverse_at_e
            at_e.append(x, norm_sq, at_e.leverage(x, norm_sq))

    def dump(self) -> tuple[Scalars, Arrays]:
        """JSON values and arrays that ``restore`` sets."""
        if self._gram is not None:
            return {}, {"gram": self._gram.matrix}
        if self._inverse_at_e is None:
            return {}, {}
        scalars, arrays = self._inverse_at_e.dump()
        return {"at_e": scalars}, under("at_e", arrays)

    def restore(self, scalars: Scalars, arrays: Arrays) -> None:
        """Restore what ``dump`` returned."""
        if "gram" in arrays:
            self._gram = GrowingGram(arrays["gram"])
        if "at_e" in scalars:
            parts = taken_from("at_e", arrays)
            self._inverse_at_e = DenseInverse.undump(self._sketch.dim, scalars["at_e"], parts)


class GrowingGram:
    """SS' of rows that come one by one, from which log det(shift I + S'S) follows for any shift."""

    def __init__(self, products: Matrix) -> None:
        self._array = products
        self.count = len(products)

    @property
    def matrix(self) -> Matrix:
        """SS'."""
        return self._array[: self.count, : self.count]

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        return self._array.nbytes

    def append(self, products: Vector, norm_sq: float) -> None:
        """Add a row x, given S x and |x|²."""
        count = self.count
        self._array = with_room(self._array, count)
        self._array[count, :count] = self._array[:count, count] = products
        self._array[count, count] = norm_sq
        self.count = count + 1

    def log_det(self, dim: int, shift: float) -> float:
        """log det(shift I + S'S) = (d - r) log shift + log det(shift I + SS'), never rounded down."""
        shift += SUM_ROUNDING * float(self.matrix.diagonal().sum())
        shifted = self.matrix.copy()
        shifted[np.diag_indices_from(shifted)] += shift
        outside = (dim - self.count) * math.log(shift)
        try:
            pivots = np.linalg.cholesky(shifted).diagonal()
        except np.linalg.LinAlgError:  # rows so long that rounding exceeds the shift
            spectrum = np.maximum(np.linalg.eigvalsh(self.matrix), 0.0)
            return outside + float(np.log(spectrum + shift).sum())
        return outside + 2.0 * float(np.log(pivots).sum())

    def spread_error(self, sketch: Sketch) -> float:
        """ẽ with log det(lambda I + X'X) <= log det((lambda + ẽ) I + S'S), for every lambda.

        X'X - S'S has the trace tau = mass - |S|_F² and no eigenvalue above e. It raises the determinant the
        most where S'S is least, in the d - r directions outside of S, spread evenly over them: by no more
        than ẽ = min(e, tau/(d - r)) in each (docs/mathematics.md).
        """
        error = max(sketch.error_bound, sketch.alpha)
        outside = sketch.dim - self.count
        if not error or outside <= 0:
            return error
        # The mass is a sum of rounded terms; and S'S may exceed X'X by the rounding of the sketch.
        mass = sketch.row_stats.mass
        slack = (sketch.row_stats.count + self.count) * _EPS * mass + sketch.dim * sketch.rounding
        tau = max(0.0, mass - float(self.matrix.diagonal().sum()))
        return min(error, (tau + slack) / outside)
