"""The ridge system: the one owner of b, theta and the factor of A."""

from typing import Any, NamedTuple

import numpy as np

from sketchbandit.arrays import AnyArray, Matrix, Parts, Vector
from sketchbandit.linalg import AnyVector, SparseVector, add_multiple, covariance_of, same_vector
from sketchbandit.ridge.arms import Arms, DenseArms, SparseArms, norm_sq_of, own_copy
from sketchbandit.ridge.backend import kernels
from sketchbandit.ridge.dense import DenseInverse, DenseShadow
from sketchbandit.ridge.determinant import GrowingGram, rounded_up
from sketchbandit.ridge.lowrank import LowRankInverse, Shadow
from sketchbandit.ridge.parts import project
from sketchbandit.sketch.base import NO_CHANGE, Change, Sketch, known_change

Inverse = LowRankInverse | DenseInverse
AnyShadow = Shadow | DenseShadow
Saved = tuple[dict[str, Any], dict[str, AnyArray]]

# Right after a rebuild; the rows of a fixed-size sketch then double before the next one.
_DENSE_FROM = 0.37  # of dim
_WELL_CONDITIONED = 1e4  # |S|² over the shift: theta then has 11 digits


class Scan(NamedTuple):
    """The first look at a set of arms: their means and squared norms, and S X' where it came for free."""

    arms: Arms
    means: Vector
    norms_sq: Vector
    products: Matrix | None


class RidgeSystem:
    """A = (lambda + alpha) I + S'S, b = sum of reward·x, theta = A^-1 b, fed by what the sketch says it did.

    An appended row costs O(r·d + r²); a rebuilt sketch as much as its shrink. When the rows come near dim
    in number, or the sketch holds S'S as a matrix, the inverse is a dense matrix instead.

    The state depends on what was observed, never on what was asked in between: one of theta (where dense
    arms are observed) and W S b (sparse arms: nothing of length dim a round) is kept up to date, and what
    a choice has computed is reused only where computing it again would give the same bits.
    """

    def __init__(
        self,
        sketch: Any,
        ridge: float,
        *,
        b: Vector | None = None,
        with_determinant: bool = False,
        saved: Saved | None = None,
    ) -> None:
        self.sketch = sketch
        self._is_ours = isinstance(sketch, Sketch)
        self.ridge = ridge
        self.b: Vector = np.zeros(sketch.dim) if b is None else b.copy()
        self._with_determinant = with_determinant
        self.rebuilds = 0
        """How often everything was derived anew."""
        self._theta: Vector | None
        self._weights: Vector | None  # W S b
        self._theta_for_now: Vector | None  # asked for where W S b is kept; gone with the next row
        self._remembered: tuple[AnyVector, AnyShadow] | None  # the arm chosen last, which observe will need
        self._recalled: Vector | None = None  # an arm that was found to be equal to it
        self._inverse: Any  # an Inverse; which of the two, its shadows know
        # Where the determinant is wanted: SS' of a sketch that has rows; of one that is dense, if e > alpha,
        # the inverse of (lambda + e) I + S'S.
        self._gram: GrowingGram | None = None
        self._wider: DenseInverse | None = None
        # What the sketch was like when the inverse was last in step with it.
        self._seen_count = self._seen_edition = 0
        self._seen: tuple[float, ...] = ()
        if saved is None:
            self.rebuild()
        else:
            self._restore(*saved)

    # -- what it tells ------------------------------------------------------------------------------

    @property
    def shift(self) -> float:
        """rho = lambda + alpha, and the jitter: the least that an eigenvalue of A can be."""
        return float(self._inverse.shift)

    @property
    def theta(self) -> Vector:
        """A^-1 b."""
        self.follow()
        if self._theta is not None:
            return self._theta
        if self._theta_for_now is None:
            self._theta_for_now = self._solve()
        return self._theta_for_now

    @property
    def log_det(self) -> float:
        """An upper bound on log det(lambda I + X'X); only where it was asked for."""
        if self._gram is not None:
            return self._gram.log_det(len(self.b), self.ridge + self._gram.spread_error(self.sketch))
        inverse, mass = self._wider or self._inverse, float(getattr(self.sketch, "mass", 0.0))
        return rounded_up(inverse.log_det, len(self.b), inverse.shift, mass)

    @property
    def jitter(self) -> float:
        """What A has on its diagonal besides rho, where rounding of long arms had eaten that."""
        return float(self._inverse.jitter)

    @property
    def nbytes(self) -> int:
        """Bytes of every array held here; the sketch counts its own."""
        held: list[Any] = [self.b, self._theta, self._theta_for_now, self._weights]
        held += [self._inverse, self._wider, self._gram]
        for part in self._remembered or ():
            chosen = part if isinstance(part, tuple) else [part]
            held += [thing for thing in chosen if not (self._is_dense and self._inverse.holds(thing))]
        return sum(thing.nbytes for thing in held if hasattr(thing, "nbytes"))

    def follow(self) -> None:
        """Derive everything anew if the sketch was changed by others, or an update broken off."""
        if self._is_ours:
            sketch = self.sketch
            if sketch._count == self._seen_count and sketch._edition == self._seen_edition:
                return
        elif self._look_at_foreigner() == self._seen:
            return
        self.rebuild()

    # -- scoring ------------------------------------------------------------------------------------

    def search(self, arms: AnyArray, radius: float) -> int | None:
        """The best of dense arms in one compiled call; -1: a score is not finite; None: there is no call."""
        self.follow()
        if self._theta is None:
            return None
        found = self._inverse.search(arms, self._theta, radius, self._parts)
        if found is None:
            return None
        index, x, shadow = found
        self._remembered, self._recalled = (x, shadow) if index >= 0 else None, None
        return int(index)

    def measure(self, x: Vector) -> float:
        """|x|² of a float64 arm that will be observed, compared in the same pass with the arm chosen last."""
        compiled, remembered = kernels(), self._remembered
        self._recalled = None
        if compiled is None or remembered is None or isinstance(remembered[0], SparseVector):
            return norm_sq_of(x)
        norm_sq: float = compiled.norm_sq_if_equal(x, remembered[0])
        if norm_sq > 0.0:
            self._recalled = x
            return norm_sq
        self._remembered = None
        return -norm_sq

    def scan(self, arms: Arms) -> Scan:
        """Means and norms: one pass over dense arms; for sparse ones their columns of S."""
        self.follow()
        if isinstance(arms, SparseArms) and self._weights is not None and arms.nonzeros < self.sketch.dim:
            means, products = self._inverse.means_of_sparse(arms, self._weights, self.b, self._parts)
            return Scan(arms, means, arms.norms_sq(), products)
        compiled = kernels()
        if compiled is not None and isinstance(arms, DenseArms) and arms.array.dtype == np.float64:
            means, norms_sq = np.empty(len(arms)), np.empty(len(arms))
            compiled.scan(arms.array, self.theta, means, norms_sq)
            return Scan(arms, means, norms_sq, None)
        return Scan(arms, arms.times(self.theta), arms.norms_sq(), None)

    def shadow(self, scan: Scan, index: int) -> AnyShadow:
        """What one arm leaves on the inverse."""
        x, norm_sq, parts = scan.arms.vector(index), float(scan.norms_sq[index]), self._parts
        if scan.products is not None:  # the column is copied, so that no shadow keeps all of them
            return self._inverse.shadow_of(scan.products[:, index].copy(), x, norm_sq, parts)  # type: ignore[no-any-return]
        return self._inverse.shadow(x, norm_sq, parts)  # type: ignore[no-any-return]

    def quadratic(self, shadow: AnyShadow, norm_sq: float) -> float:
        """x'A^-1 x."""
        return float(self._inverse.quadratic(shadow, norm_sq))

    def remember(self, scan: Scan, index: int, shadow: AnyShadow) -> None:
        """Keep what was computed for the arm chosen."""
        self._remembered = own_copy(scan.arms.vector(index)), shadow

    # -- learning -----------------------------------------------------------------------------------

    def observe(self, x: AnyVector, row: AnyArray, norm_sq: float, reward: float) -> Change:
        """One checked arm x (``row``: the same as the sketch stores it, (1, dim)) and its reward."""
        self.follow()
        if not norm_sq:  # a zero arm: no direction to learn about
            if self._is_ours:
                self.sketch._take_one(row, norm_sq)
                self._mark()
            return NO_CHANGE
        inverse, sparse, parts = self._inverse, isinstance(x, SparseVector), self._parts
        shadow = self._shadow_of(x, norm_sq, parts)
        self._remembered = self._recalled = self._theta_for_now = None
        if sparse or self._theta is None:
            self._settle(sparse=sparse)
        if self._is_ours:
            change: Change = self.sketch._take_one(row, norm_sq)
            stands = True
        else:
            change = known_change(self.sketch.update(row))
            stands, parts = self._look_at_foreigner()[1:] == self._seen[1:], self._parts  # alpha and e
        if not (
            stands and inverse.follows(change, norm_sq) and self._grow(x, reward, norm_sq, shadow, parts)
        ):
            add_multiple(self.b, reward, x)
            self.rebuild(orthogonal=change.orthogonal, sparse=sparse)
            return change
        if self._with_determinant:
            self._grow_determinant(x, norm_sq, shadow, change)
        if self._is_ours:
            self._seen_count = self.sketch._count
        else:
            self._mark()
        return change

    def _grow(self, x: AnyVector, reward: float, norm_sq: float, shadow: Any, parts: Parts) -> bool:
        """Follow the sketch, which has appended x; False, and nothing done, where that cannot be.

        ``parts`` as they were before: of a sketch that only appends, all that is read still stands there.
        """
        inverse = self._inverse
        if self._weights is None:
            if not inverse.grow(x, reward, norm_sq, shadow, parts, self._theta, self.b):
                return False
        else:
            self._weights = inverse.grow_weights(x, reward, norm_sq, shadow, self._weights, self.b)
        return True

    def _grow_determinant(self, x: AnyVector, norm_sq: float, shadow: AnyShadow, change: Change) -> None:
        if self._gram is not None and change.rebuilt:  # without loss, else everything would be
            self._derive_determinant(orthogonal=change.orthogonal)
        elif self._gram is not None:  # S x with the rows before x, which the sketch has appended
            products = shadow.y if isinstance(shadow, Shadow) else project(self._sketch_parts(), x)[:-1]
            self._gram.append(products, norm_sq)
        elif self._wider is not None:
            self._wider.append(norm_sq, self._wider.shadow(x))

    def observe_many(self, rows: AnyArray, norms_sq: Vector, rewards: Vector) -> Change:
        """Many checked rows of the sketch's dtype."""
        if len(rows) < self.rows_worth_a_rebuild:
            change = NO_CHANGE
            for i, (norm_sq, reward) in enumerate(zip(norms_sq.tolist(), rewards.tolist(), strict=True)):
                x = rows[i].astype(np.float64, copy=False)
                change = change.then(self.observe(x, rows[i : i + 1], norm_sq, reward))
            return change
        sketch = self.sketch
        taken = sketch._take(rows, norms_sq) if self._is_ours else sketch.update(rows[norms_sq > 0.0])
        self.b += rewards @ rows.astype(np.float64, copy=False)
        self.rebuild()
        return known_change(taken)

    @property
    def rows_worth_a_rebuild(self) -> int:
        """From how many rows at once on a rebuild is cheaper than appending them."""
        self.follow()  # else it would depend on whether somebody has asked since a compression
        return int(self._inverse.rows_worth_a_rebuild)

    def add(self, other: "RidgeSystem") -> None:
        """Take in what another system learned; the sketches were merged before."""
        self.b += other.b
        self.rebuild()

    def rebuild(self, *, orthogonal: bool = False, sparse: bool = False) -> None:
        """Derive everything from the sketch and b anew."""
        self._theta = self._weights = self._theta_for_now = self._remembered = None
        self.rebuilds += 1
        sketch = self.sketch
        shift, dense = self.ridge + sketch.alpha, sketch_is_dense(sketch)
        parts = () if dense else self._sketch_parts()
        self._is_dense = dense or sum(map(len, parts)) >= _DENSE_FROM * sketch.dim
        if self._is_dense:
            self._inverse = DenseInverse.of_covariance(self._covariance, shift)
        else:
            self._inverse = LowRankInverse.of_rows(parts, sketch.dim, shift, orthogonal=orthogonal)
        if self._with_determinant:
            self._derive_determinant(orthogonal=orthogonal)
        self._settle(sparse=sparse)
        self._mark()

    def _derive_determinant(self, *, orthogonal: bool) -> None:
        sketch = self.sketch
        self._gram = self._wider = None
        if not sketch_is_dense(sketch):
            self._gram = GrowingGram.of_rows(self._sketch_parts(), orthogonal=orthogonal)
        elif sketch.error_bound > sketch.alpha:
            self._wider = DenseInverse.of_covariance(self._covariance, self.ridge + sketch.error_bound)

    # -- files --------------------------------------------------------------------------------------

    def dump(self) -> tuple[dict[str, Any], dict[str, AnyArray]]:
        """JSON values and arrays that ``saved`` turns into the same system, to the bit."""
        self.follow()
        vectors = {"b": self.b, "theta": self._theta, "weights": self._weights}
        arrays = {name: vector for name, vector in vectors.items() if vector is not None}
        scalars: dict[str, Any] = {}
        for name, inverse in (("inverse", self._inverse), ("wider", self._wider)):
            if inverse is not None:
                scalars[name], parts = inverse.dump()
                arrays |= {f"{name}.{part}": array for part, array in parts.items()}
        if self._gram is not None:
            arrays["gram"] = self._gram.matrix
        return scalars, arrays

    def _restore(self, scalars: dict[str, Any], arrays: dict[str, AnyArray]) -> None:
        """Set what ``dump`` told; the sketch is restored already."""
        self.b = arrays["b"]
        if "jitter" not in scalars["inverse"]:  # of 0.6, which did not follow a sketch that was compressed
            self.rebuild()
            return
        self._theta_for_now = self._remembered = None
        self._theta, self._weights = arrays.get("theta"), arrays.get("weights")
        restored: dict[str, Inverse] = {}
        for name, saved in scalars.items():
            parts = {n.partition(".")[2]: a for n, a in arrays.items() if n.startswith(f"{name}.")}
            kind: type[Inverse] = DenseInverse if "updates" in saved else LowRankInverse
            restored[name] = kind.undump(self.sketch.dim, saved, parts)
        self._inverse, wider = restored["inverse"], restored.get("wider")
        self._wider = wider if isinstance(wider, DenseInverse) else None
        self._gram = GrowingGram(arrays["gram"]) if "gram" in arrays else None
        self._is_dense = isinstance(self._inverse, DenseInverse)
        self._mark()

    # -- machinery ----------------------------------------------------------------------------------

    @property
    def _parts(self) -> Parts:
        """S where the inverse needs it."""
        return () if self._is_dense else self._sketch_parts()

    def _sketch_parts(self) -> Parts:
        return self.sketch.views() if self._is_ours else (self.sketch.rows,)

    def _mark(self) -> None:
        """The inverse is in step with the sketch."""
        if self._is_ours:
            self._seen_count, self._seen_edition = self.sketch._count, self.sketch._edition
        else:
            self._seen = self._look_at_foreigner()

    def _look_at_foreigner(self) -> tuple[float, ...]:
        return len(self.sketch.rows), self.sketch.alpha, self.sketch.error_bound

    def _shadow_of(self, x: AnyVector, norm_sq: float, parts: Parts) -> Any:
        remembered = self._remembered
        if remembered is not None and (x is self._recalled or self._are_equal(remembered[0], x)):
            return remembered[1]
        return self._inverse.shadow(x, norm_sq, parts)

    def _are_equal(self, one: AnyVector, other: AnyVector) -> bool:
        compiled = kernels()
        if compiled is None or isinstance(one, SparseVector) or isinstance(other, SparseVector):
            return same_vector(one, other)
        return bool(compiled.equal(one, other))

    def _settle(self, *, sparse: bool) -> None:
        """Keep theta, or W S b instead, from now on."""
        if sparse and isinstance(self._inverse, LowRankInverse):
            if self._weights is None:
                self._weights = self._inverse.weights(self.b, self._parts)
                self._theta = None
        elif self._theta is None:
            self._theta = self._solve()
            self._weights = None

    def _solve(self) -> Vector:
        # Where A is well conditioned, b - S'g does not cancel; |S|² is at most the mass.
        certain = self._is_ours and self.sketch.mass <= _WELL_CONDITIONED * self.shift
        solution: Vector = self._inverse.solve(self.b, self._parts, refine=not certain)
        return solution

    def _covariance(self) -> Matrix:
        """S'S, (dim, dim)."""
        matrix: Matrix
        if sketch_is_dense(self.sketch):
            matrix = self.sketch.covariance()
            matrix[np.diag_indices_from(matrix)] -= self.sketch.alpha
            return matrix
        first, *others = self._sketch_parts()
        matrix = covariance_of(first)
        for part in others:
            matrix += covariance_of(part)
        return matrix


def sketch_is_dense(sketch: Any) -> bool:
    """Whether a sketch holds S'S as a matrix, and has no rows at hand."""
    return bool(getattr(sketch, "is_dense", False))
