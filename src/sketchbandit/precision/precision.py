"""A^-1 through a sketch, in step with it."""

from typing import Any

import numpy as np

from sketchbandit.arms import Arms, DenseArms, OfferedArms, Scan, SparseArms, norm_sq_of
from sketchbandit.arrays import Arrays, Matrix, Scalars, Vector, taken_from, under
from sketchbandit.kernels import kernels
from sketchbandit.libraries import Library
from sketchbandit.linalg import AnyVector, SparseVector, as_dense, same_vector
from sketchbandit.precision.dense import DenseInverse
from sketchbandit.precision.determinant import DeterminantBound
from sketchbandit.precision.inverse import Inverse, Leverage, step_along
from sketchbandit.precision.lowrank import LowRankInverse
from sketchbandit.sketch import Change, Sketch

Saved = tuple[Scalars, Arrays]

# Right after a rebuild; the rows of a fixed-size sketch then double before the next one.
_DENSE_FROM = 0.37  # of dim
_FEW = 1 / 500  # of dim: so few arms are decomposed in less time than a draw of length dim takes
_WELL_CONDITIONED = 1e4  # |S|² over the shift: A^-1 b then has 11 digits
_BEARABLE = 1e8  # the same for one step among many, which needs fewer


class Precision:
    """A^-1 for A = (ridge + alpha) I + S'S, kept in step with the sketch that has S and alpha.

    An appended row costs O(r·d + r²); a rebuilt sketch as much as its shrink. When the rows come near dim
    in number, or the sketch holds S'S as a matrix, the inverse is a dense matrix instead.

    It depends on what the sketch has taken, never on what was asked in between: what a choice has computed
    is reused only where computing it again would give the same bits.

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
        """How often everything was derived anew: whoever holds something derived from it looks here."""
        self.inverse: Inverse
        self._determinant = DeterminantBound(sketch, ridge) if with_determinant else None
        self.carried: Any = None
        """What ``carry_to`` has brought to a device."""
        self._carried_at: tuple[Any, ...] = ()
        self.seen_version = -1
        """Of the sketch, with which it is in step."""
        self.last_choice: tuple[AnyVector, Leverage] | None = None
        """The arm chosen last, a copy, and its leverage, which an update will need."""
        if saved is None:
            self.rebuild()
        else:
            self._restore(*saved)

    # -- what it tells ------------------------------------------------------------------------------

    @property
    def shift(self) -> float:
        """rho = lambda + alpha, and the jitter: the least that an eigenvalue of A can be."""
        self.sync()
        return self.inverse.shift

    @property
    def jitter(self) -> float:
        """What A has on its diagonal besides rho, where rounding of long arms had eaten that."""
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
        """Bytes of every array held here; the sketch counts its own."""
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
        """From how many rows at once on a rebuild is cheaper than appending them."""
        self.sync()  # else it would depend on whether somebody has asked since a compression
        return self.inverse.rows_worth_a_rebuild

    def sync(self) -> None:
        """Derive everything anew if the sketch was changed by others, or an update broken off."""
        if self.sketch.tally.version != self.seen_version:
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
        """A^-1 x, where the leverage of x is known: with that, one pass over S."""
        with self.sketch._lock:
            if self._is_well_conditioned:
                return self.inverse.image(x, leverage)
            return self.inverse.solve(as_dense(x, self.sketch.dim))

    def moved(self, theta: Vector, along: float, x: AnyVector, leverage: Leverage) -> Vector | None:
        """theta + along·A^-1 x: a fresh array; None: it overflows."""
        if self.sketch.tally.mass <= _BEARABLE * self.inverse.shift:
            return self.inverse.moved(theta, along, x, leverage)
        return step_along(theta, along, self.image(x, leverage))

    @property
    def _is_well_conditioned(self) -> bool:
        """Whether x - S'g does not cancel: |S|² is at most the mass."""
        return self.sketch.tally.mass <= _WELL_CONDITIONED * self.inverse.shift

    def half(self, random: np.random.Generator) -> Vector:
        """A draw from N(0, A^-1)."""
        with self.sketch._lock:
            self.sync()
            return self.inverse.half(random)

    def leverage(self, x: AnyVector, norm_sq: float) -> Leverage:
        """What x leaves on the inverse; for the arm chosen last that is known."""
        self.sync()
        chosen = self.last_choice
        if chosen is not None and _are_equal(chosen[0], x):
            return chosen[1]
        return self.inverse.leverage(x, norm_sq)

    def leverage_in(self, arms: Arms, index: int, norm_sq: float, products: Matrix | None) -> Leverage:
        """The leverage of one arm of a set, S X' of which may be known."""
        x = arms.vector(index)
        if products is not None and isinstance(self.inverse, LowRankInverse):
            column = products[:, index].copy()  # so that no leverage keeps all of them
            return self.inverse.leverage_of(column, x, norm_sq)
        return self.inverse.leverage(x, norm_sq)

    def quadratics(self, scan: Scan) -> Vector | None:
        """x'A^-1 x of dense arms, each to the bit as by itself; None: there is no quicker way."""
        self.sync()
        if isinstance(scan.arms, OfferedArms):
            return self._quadratics_of_offered(scan.arms)
        if not isinstance(scan.arms, DenseArms) or not isinstance(
            self.inverse, (LowRankInverse, DenseInverse)
        ):
            return None
        return self.inverse.quadratics_of(scan.arms.view, scan.norms_sq)

    def _quadratics_of_offered(self, arms: OfferedArms) -> Vector:
        library, xp = arms.library, arms.library.xp

        def of_piece(rows: Any) -> Any:
            squares = xp.sum(rows * rows, axis=1)
            found = self.quadratics_on(library, rows, squares)
            most = squares / self.inverse.shift
            return xp.where(found > 0.0, xp.where(found < most, found, most), xp.zeros_like(found))

        return library.to_host(arms.by_piece(of_piece)).astype(np.float64, copy=False)

    def quadratics_on(self, library: Library, rows: Any, squares: Any) -> Any:
        """x'A^-1 x of arms on a device, in the widest dtype; ``squares``: their |x|².

        What of A^-1 that takes goes there once for every change of the sketch.
        """
        inverse, xp = self.inverse, library.xp
        seen = library.product(rows, self.carry_to(library))
        if isinstance(inverse, LowRankInverse):
            return (squares - xp.sum(seen * seen, axis=1)) / inverse.shift
        return xp.sum(seen * rows, axis=1)

    def carry_to(self, library: Library) -> Any:
        """What ``quadratics_on`` needs on a device."""
        now = self.sketch.tally.version, self.rebuilds, library.name, str(library.device)
        if self._carried_at != now:
            self.carried = library.put(self.inverse.for_device(), library.widest)
            self._carried_at = now
        return self.carried

    def gram(self, scan: Scan) -> Matrix | None:
        """X A^-1 X' of few sparse arms, (K, K), to rounding of the longest; None: a draw is quicker."""
        self.sync()
        if not isinstance(scan.arms, SparseArms) or not isinstance(self.inverse, LowRankInverse):
            return None
        is_few = len(scan.arms) <= _FEW * self.sketch.dim
        return self.inverse.gram_of_sparse(scan.arms, scan.products) if is_few else None

    def products(self, arms: Arms, first: Vector) -> Matrix | None:
        """(x_i - first)'A^-1 x_j of few dense arms, (K, K); None: there is no quicker way than one by one."""
        self.sync()
        if not isinstance(arms, DenseArms) or not isinstance(self.inverse, DenseInverse):
            return None
        array = arms.array.astype(np.float64, copy=False)
        with np.errstate(over="ignore", invalid="ignore"):  # whoever asks looks at what has come out
            found: Matrix = self.inverse.solve_all(array - first) @ array.T
        return found

    def measure(self, x: Vector) -> tuple[float, Leverage | None]:
        """|x|² of an arm that will be taken in; and its leverage, if it is the arm chosen last."""
        if self.sketch.tally.version != self.seen_version:
            self.rebuild()
        compiled, chosen = kernels(), self.last_choice
        if compiled is None or chosen is None or isinstance(chosen[0], SparseVector):
            return norm_sq_of(x), None
        norm_sq: float = compiled.norm_sq_if_equal(x, chosen[0])
        if norm_sq > 0.0:
            return norm_sq, chosen[1]
        self.last_choice = None  # another arm is played
        return -norm_sq, None

    # -- following the sketch -------------------------------------------------------------------------

    def grown(self, x: AnyVector, norm_sq: float, leverage: Leverage, change: Change) -> None:
        """The inverse has followed the sketch by x: so does the determinant, and all is in step again."""
        self.last_choice = None
        if self._determinant is not None:
            products = leverage.image if isinstance(self.inverse, LowRankInverse) else None
            self._determinant.grow(x, norm_sq, products, change)
        self.seen_version = self.sketch.tally.version

    def nothing_changed(self) -> None:
        """The sketch has taken a zero row, which leaves S as it was."""
        self.seen_version = self.sketch.tally.version

    def rebuild(self, *, orthogonal: bool = False) -> None:
        """Derive everything from the sketch anew."""
        self.last_choice = None
        self.rebuilds += 1
        sketch, shift = self.sketch, self.ridge + self.sketch.alpha
        if sketch.row_count >= _DENSE_FROM * sketch.dim:
            self.inverse = DenseInverse.of_covariance(sketch.gram, shift)
        else:
            self.inverse = LowRankInverse.of(sketch, shift, orthogonal=orthogonal)
        if self._determinant is not None:
            self._determinant.derive(orthogonal=orthogonal)
        self.seen_version = sketch.tally.version

    # -- files --------------------------------------------------------------------------------------

    def dump(self) -> Saved:
        """JSON values and arrays that ``saved`` turns into the same precision, to the bit."""
        self.sync()
        scalars, arrays = self.inverse.dump()
        bound, held = ({}, {}) if self._determinant is None else self._determinant.dump()
        return {"inverse": scalars, **bound}, under("inverse", arrays) | held

    def _restore(self, scalars: Scalars, arrays: Arrays) -> None:
        """Set what ``dump`` told; the sketch is restored already."""
        saved, parts = scalars["inverse"], taken_from("inverse", arrays)
        if "updates" in saved:
            self.inverse = DenseInverse.undump(self.sketch.dim, saved, parts)
        else:
            self.inverse = LowRankInverse.undump(self.sketch, saved, parts)
        if self._determinant is not None:
            self._determinant.restore(scalars, arrays)
        self.seen_version = self.sketch.tally.version


def _norm_sq(x: AnyVector) -> float:
    return float(x.values @ x.values) if isinstance(x, SparseVector) else norm_sq_of(x)


def _are_equal(one: AnyVector, other: AnyVector) -> bool:
    compiled = kernels()
    if compiled is None or isinstance(one, SparseVector) or isinstance(other, SparseVector):
        return same_vector(one, other)
    return bool(compiled.equal(one, other))
