"""A^-1 through a sketch, kept up to date with it, and a bound on the determinant of A."""

import math
from typing import Any

import numpy as np

from sketchbandit.arms import Arms, Scan, View, norm_sq_of
from sketchbandit.array_api import Array, Library
from sketchbandit.arrays import AnyArray, Arrays, Matrix, Scalars, Vector, taken_from, under
from sketchbandit.kernels import kernels
from sketchbandit.linalg import SUM_ROUNDING, AnyVector, SparseVector, as_dense, inner, product, same_vector
from sketchbandit.precision.dense import DenseInverse
from sketchbandit.precision.inverse import Inverse, Leverage, step_along
from sketchbandit.precision.lowrank import LowRankInverse, project, with_room
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


Saved = tuple[Scalars, Arrays]

# Right after a rebuild; the rows of a fixed-size sketch then double before the next one.
_DENSE_FROM = 0.37  # of dim
_FEW = 1 / 500  # of dim: for so few arms a decomposition is faster than a draw of length dim
_WELL_CONDITIONED = 1e4  # |S|² over the shift: A^-1 b then has 11 digits
_BEARABLE = 1e8  # the same for one step among many, which needs fewer digits
_LEAST_SQ = {np.dtype(np.float64): 1e-200, np.dtype(np.float32): 1e-36}
# of weight·|x|²: products of rows that are shorter underflow


class Precision:
    """A^-1 for A = (ridge + alpha) I + S'S, kept up to date with the sketch that holds S and alpha.

    An appended row costs O(r·d + r²), a rebuilt sketch as much as its shrink. If the number of rows comes
    near dim or the sketch holds S'S as a matrix, the inverse is a dense matrix.

    It depends only on the rows that the sketch has taken, not on the questions in between. Results of a
    choice are reused only if computing them again would give the same bits.

    Examples
    --------
    >>> from sketchbandit import ExactSketch
    >>> sketch = ExactSketch(3)
    >>> change = sketch.update([3.0, 0.0, 0.0])
    >>> precision = Precision(sketch, ridge=1.0)
    >>> x = np.array([1.0, 1.0, 0.0])
    >>> precision.apply(x).round(3), round(precision.quadratic(x), 3)
    (array([0.1, 1. , 0. ]), 1.1)

    """

    def __init__(
        self, sketch: Sketch, ridge: float, *, with_determinant: bool = False, saved: Saved | None = None
    ) -> None:
        self.sketch = sketch
        self.ridge = ridge
        self.rebuilds = 0
        """How often everything was computed again. Objects that depend on it compare this number."""
        self.inverse: Inverse
        self._determinant = DeterminantBound(sketch, ridge) if with_determinant else None
        self.carried: Array | None = None
        """What ``carry_to`` has brought to a device."""
        self._carried_at: tuple[Any, ...] = ()
        self.seen_version = -1
        """The version of the sketch that it is up to date with."""
        self.last_choice: tuple[AnyVector, Leverage] | None = None
        """A copy of the arm chosen last, and its leverage, which an update will need."""
        if saved is None:
            self.rebuild()
        else:
            self._restore(*saved)

    # -- what it tells ------------------------------------------------------------------------------

    @property
    def shift(self) -> float:
        """rho = lambda + alpha, plus the jitter: a lower bound on the eigenvalues of A."""
        self.sync()
        return self.inverse.shift

    @property
    def low_rank(self) -> LowRankInverse | None:
        """The inverse, if it consists of rows of the sketch and a small factor; None if it is a matrix."""
        return self.inverse if isinstance(self.inverse, LowRankInverse) else None

    @property
    def jitter(self) -> float:
        """What was added to the diagonal of A because rounding of long arms exceeded rho."""
        self.sync()
        return self.inverse.jitter

    @property
    def log_det(self) -> float:
        """An upper bound on log det(lambda I + X'X)."""
        with self.sketch._lock:
            self.sync()
            if self._determinant is None:
                self._determinant = DeterminantBound(self.sketch, self.ridge)
                self._determinant.derive(orthogonal=False)
            return self._determinant.log_det(self.inverse)

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays held here, without those of the sketch."""
        held = self.inverse.nbytes + (self._determinant.nbytes if self._determinant is not None else 0)
        if self.last_choice is None:
            return held
        x, leverage = self.last_choice
        if isinstance(self.inverse, DenseInverse) and self.inverse.holds(leverage):
            return held
        arm = sum(array.nbytes for array in x) if isinstance(x, SparseVector) else x.nbytes
        return held + arm + leverage.nbytes

    @property
    def rows_worth_a_rebuild(self) -> int:
        """The number of rows from which on a rebuild is cheaper than appending them."""
        self.sync()  # so that it does not depend on questions since a compression
        return self.inverse.rows_worth_a_rebuild

    def sync(self) -> None:
        """Compute everything again if the sketch was changed elsewhere, or an update failed halfway."""
        if self.sketch.row_stats.version != self.seen_version:
            self.rebuild()

    # -- asking ---------------------------------------------------------------------------------------

    def quadratic(self, x: AnyVector) -> float:
        """x'A^-1 x."""
        norm_sq = _norm_sq(x)
        with self.sketch._lock:
            return self.inverse.quadratic(self.leverage(x, norm_sq), norm_sq)

    def apply(self, x: Vector) -> Vector:
        """A^-1 x."""
        with self.sketch._lock:
            self.sync()
            return self.inverse.solve(x, refine=not self._is_well_conditioned)

    def image(self, x: AnyVector, leverage: Leverage) -> Vector:
        """A^-1 x for an x with known leverage, which takes one pass over S."""
        with self.sketch._lock:
            if self._is_well_conditioned:
                return self.inverse.image(x, leverage)
            return self.inverse.solve(as_dense(x, self.sketch.dim))

    def moved(self, vectors: Matrix, along: Vector, x: AnyVector, leverage: Leverage) -> Matrix | None:
        """Every row of ``vectors`` plus its ``along`` times A^-1 x, as a new array; None if it overflows."""
        if self.sketch.row_stats.mass <= _BEARABLE * self.inverse.shift:
            return self.inverse.moved(vectors, along, x, leverage)
        return step_along(vectors, along, self.image(x, leverage))

    @property
    def _is_well_conditioned(self) -> bool:
        """Whether x - S'g does not cancel: |S|² is at most the mass."""
        return self.sketch.row_stats.mass <= _WELL_CONDITIONED * self.inverse.shift

    def sample_direction(self, random: np.random.Generator) -> Vector:
        """A draw from N(0, A^-1)."""
        with self.sketch._lock:
            self.sync()
            return self.inverse.sample_direction(random)

    def leverage(self, x: AnyVector, norm_sq: float) -> Leverage:
        """The leverage of x. For the arm chosen last it is already known."""
        self.sync()
        chosen = self.last_choice
        if chosen is not None and _are_equal(chosen[0], x):
            return chosen[1]
        return self.inverse.leverage(x, norm_sq)

    def search(self, arms: View, theta: Vector, radius: float) -> int | None:
        """The dense arm of the largest x'theta + radius·width, whose leverage is kept; None if impossible."""
        self.last_choice = None  # a matrix keeps what it finds in the same arrays
        found = self.inverse.search(arms, theta, radius)
        if found is None:
            return None
        index, self.last_choice = found
        return index

    def leverage_in(self, arms: Arms, index: int, norm_sq: float, products: Matrix | None) -> Leverage:
        """The leverage of one arm of a set, for which S X' may be known."""
        x = arms.vector(index)
        if products is not None and isinstance(self.inverse, LowRankInverse):
            column = products[:, index].copy()  # a copy, so that not all columns are kept in memory
            return self.inverse.leverage_of(column, x, norm_sq)
        return self.inverse.leverage(x, norm_sq)

    def quadratics(self, scan: Scan) -> Vector | None:
        """x'A^-1 x of dense arms, to the bit as for single arms; None if there is no fast way."""
        self.sync()
        return scan.arms.quadratics(self.inverse.quadratics_of, self._quadratics_of_rows, scan.norms_sq)

    def _quadratics_of_rows(self, library: Library, rows: Array) -> Array:
        """x'A^-1 x of arms on a device, from 0 to |x|² / shift."""
        xp, squares = library.xp, library.xp.sum(rows * rows, axis=1)
        found, most = self.quadratics_on(library, rows, squares), squares / self.inverse.shift
        return xp.where(found > 0.0, xp.where(found < most, found, most), xp.zeros_like(found))

    def quadratics_on(self, library: Library, rows: Array, squares: Array) -> Array:
        """x'A^-1 x of arms on a device, in the widest dtype. ``squares`` are their |x|².

        The part of A^-1 that this needs is copied to the device once per change of the sketch.
        """
        inverse, xp = self.inverse, library.xp
        seen = library.product(rows, self.carry_to(library))
        if isinstance(inverse, LowRankInverse):
            return (squares - xp.sum(seen * seen, axis=1)) / inverse.shift
        return xp.sum(seen * rows, axis=1)

    def carry_to(self, library: Library) -> Array:
        """What ``quadratics_on`` needs on a device."""
        now = self.sketch.row_stats.version, self.rebuilds, library.name, str(library.device)
        carried = self.carried if self._carried_at == now else None
        if carried is None:
            carried = self.carried = library.put(self.inverse.for_device(), library.widest)
            self._carried_at = now
        return carried

    def gram(self, scan: Scan) -> Matrix | None:
        """X A^-1 X' of few sparse arms, (K, K), up to rounding of the longest; None if a draw is faster."""
        self.sync()
        if scan.arms.matrix is None or not isinstance(self.inverse, LowRankInverse):
            return None
        is_few = len(scan.arms) <= _FEW * self.sketch.dim
        return self.inverse.gram_of_sparse(scan.arms, scan.products) if is_few else None

    def products(self, arms: Arms, origins: AnyArray) -> Matrix | None:
        """(x_i - x_o)'A^-1 x_j of few dense arms, o the origin of i, (K, K); None if there is no fast way."""
        self.sync()
        if arms.view is None or not isinstance(self.inverse, DenseInverse):
            return None
        array = arms.array.astype(np.float64, copy=False)
        with np.errstate(over="ignore", invalid="ignore"):  # the caller checks the result
            found: Matrix = product(self.inverse.solve_all(array - array[origins]), array.T)
        return found

    def measure(self, x: Vector) -> tuple[float, Leverage | None]:
        """|x|² of a dense arm that is about to be added, and its leverage if |x|² is finite."""
        if self.sketch.row_stats.version != self.seen_version:
            self.rebuild()
        compiled, chosen = kernels(), self.last_choice
        if compiled is None or (chosen is not None and isinstance(chosen[0], SparseVector)):
            norm_sq = norm_sq_of(x)
            return norm_sq, self.leverage(x, norm_sq) if norm_sq < math.inf else None
        if chosen is None:
            norm_sq = compiled.norm_sq(x, x)
        else:
            norm_sq = compiled.norm_sq_if_equal(x, chosen[0])
            if norm_sq > 0.0:
                return norm_sq, chosen[1]
            self.last_choice, norm_sq = None, -norm_sq  # another arm is played
        return norm_sq, self.inverse.leverage(x, norm_sq) if norm_sq < math.inf else None

    # -- following the sketch -------------------------------------------------------------------------

    def products_of(self, leverage: Leverage) -> Vector | None:
        """S x for an x with this leverage; None if the inverse is a matrix."""
        return leverage.image if isinstance(self.inverse, LowRankInverse) else None

    def grown(self, x: AnyVector, norm_sq: float, leverage: Leverage, change: Change) -> None:
        """Finish adding x: the inverse includes it already, and the determinant follows."""
        self.last_choice = None
        if self._determinant is not None:
            self._determinant.grow(x, norm_sq, self.products_of(leverage), change)
        self.seen_version = self.sketch.row_stats.version

    def nothing_changed(self) -> None:
        """Note that the sketch has taken a zero row, which does not change S."""
        self.seen_version = self.sketch.row_stats.version

    def rebuild(self, *, orthogonal: bool = False) -> None:
        """Compute everything again from the sketch."""
        self.last_choice = None
        self.rebuilds += 1
        sketch, shift = self.sketch, self.ridge + self.sketch.alpha
        if sketch.row_count >= _DENSE_FROM * sketch.dim:
            self.inverse = DenseInverse.of_covariance(sketch.gram, shift)
        else:
            self.inverse = LowRankInverse.of(sketch, shift, orthogonal=orthogonal)
        if self._determinant is not None:
            self._determinant.derive(orthogonal=orthogonal)
        self.seen_version = sketch.row_stats.version

    # -- files --------------------------------------------------------------------------------------

    def _saved(self) -> Saved:
        """JSON values and arrays that ``saved`` turns into the same precision, to the bit."""
        self.sync()
        scalars, arrays = self.inverse.dump()
        bound, held = ({}, {}) if self._determinant is None else self._determinant.dump()
        return {"inverse": scalars, **bound}, under("inverse", arrays) | held

    def _restore(self, scalars: Scalars, arrays: Arrays) -> None:
        """Restore what ``_saved`` returned. The sketch is restored already."""
        saved, parts = scalars["inverse"], taken_from("inverse", arrays)
        if "updates" in saved:
            self.inverse = DenseInverse.undump(self.sketch.dim, saved, parts)
        else:
            self.inverse = LowRankInverse.undump(self.sketch, saved, parts)
        if self._determinant is not None:
            self._determinant.restore(scalars, arrays)
        self.seen_version = self.sketch.row_stats.version


def _norm_sq(x: AnyVector) -> float:
    return inner(x.values, x.values) if isinstance(x, SparseVector) else norm_sq_of(x)


def _are_equal(one: AnyVector, other: AnyVector) -> bool:
    compiled = kernels()
    if compiled is None or isinstance(one, SparseVector) or isinstance(other, SparseVector):
        return same_vector(one, other)
    return bool(compiled.equal(one, other))


def take_weighted(
    precision: Precision, x: AnyVector, row: AnyArray, norm_sq: float, *, weight: float, leverage: Leverage
) -> Change:
    """Add sqrt(weight)·x to sketch and precision. ``row`` is x as the sketch stores it, (1, dim)."""
    sketch, root, scaled_sq = precision.sketch, math.sqrt(weight), weight * norm_sq
    if scaled_sq < _LEAST_SQ[row.dtype]:  # so small that a float cannot tell it from a zero row
        change = sketch.take_one(np.zeros_like(row), 0.0)
        precision.nothing_changed()
        return change
    own = row * row.dtype.type(root)  # as the sketch stores it
    wide = own[0].astype(np.float64, copy=False)
    scaled: AnyVector = wide
    if own.dtype != np.float64:  # rounded once more
        scaled_sq = norm_sq_of(wide)
        leverage = precision.inverse.leverage(wide, scaled_sq)
    else:
        leverage = leverage.times(root)
        if isinstance(x, SparseVector):
            scaled = SparseVector(x.indices, root * x.values)
    change = sketch.take_one(own, scaled_sq, precision.products_of(leverage))
    if precision.inverse.follows(change, scaled_sq):
        precision.inverse.append(scaled, scaled_sq, leverage)
        precision.grown(scaled, scaled_sq, leverage, change)
    else:
        precision.rebuild(orthogonal=change.orthogonal)
    return change
