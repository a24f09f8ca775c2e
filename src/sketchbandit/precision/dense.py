"""A dense inverse that takes rank-one updates: for sketches that are exact, or nearly as large as dim."""

import math
from collections.abc import Callable

import numpy as np
from scipy.linalg import solve_triangular

from sketchbandit.arms import Batch, View, rows_of
from sketchbandit.arrays import AnyArray, Arrays, Matrix, Scalars, Vector
from sketchbandit.kernels import kernels, loops
from sketchbandit.linalg import (
    AnyVector,
    SparseVector,
    inner,
    inner_rows,
    invert_positive,
    invert_unscaled,
    length_of,
    product,
    row_norms_sq,
)
from sketchbandit.precision.inverse import (
    MOST_TRIES,
    Found,
    Leverage,
    LinearState,
    Step,
    ToBeat,
    least_jitter,
    step_along,
)
from sketchbandit.sketch import Change

_CLOSEST = 1.0 - 1e-12  # to 1: |p|² of a row beyond which nothing would be left of its direction
_TOGETHER = 1024  # arms in one product
_TOO_MANY = -2  # the result of a search that gave up
_MOST_PENDING = 32  # rank-one updates that are applied together, at the speed of a matrix product
_CHEAP = 2_000_000  # entries of P up to which one product is cheaper than several calls
_LONGEST = 1e12  # |x|² over the shift: P is only known up to rounding of its largest entry, 1/shift


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
            length_sq = inner(p, p)
        else:
            length_sq = compiled.turn_row(self._lower, self._rows, self._back, count, row, p)
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


class DenseInverse:
    """A^-1 = P - Q'Q: P is (d, d), Q the rank-one updates (Sherman–Morrison) since P was last written.

    A new x adds the row q = A^-1 x / sqrt(1 + x'A^-1 x) to Q, O(d²) for P x alone; every 32 rows P takes
    Q in with one matrix product. Whoever holds A rebuilds the inverse from it after every d rows or so,
    before rounding can add up: ``follows`` says when.
    """

    def __init__(self, inverse: Matrix, log_det: float, shift: float, jitter: float = 0.0) -> None:
        dim = len(inverse)
        self.inverse = inverse
        self.log_det = log_det
        self.shift = shift
        self.jitter = jitter
        """The part of the shift that was added because rounding of long rows exceeded the rest."""
        self.pending: Matrix = np.zeros((min(_MOST_PENDING, max(1, dim // 4)), dim))
        self.pending_count = 0
        self.updates = 0
        self._most_updates = max(256, dim)
        self.few = max(16, _CHEAP // inverse.size)
        """The number of vectors to handle one by one; a product with many costs about as much."""
        self._root: UpdatedRoot | None = None  # made by the first draw from N(0, A^-1)
        # A search stores the arm it chose and its leverage here, until the next search.
        self.chosen: tuple[Vector, Vector, Vector, Vector] | None = None

    @classmethod
    def of_covariance(cls, covariance: Callable[[], Matrix], shift: float) -> "DenseInverse":
        """The inverse of S'S + shift I, in the memory of the S'S that ``covariance`` makes."""
        jitter = 0.0
        for _ in range(MOST_TRIES):
            matrix = covariance()
            largest = float(matrix.diagonal().max())
            if not jitter and least_jitter(largest, shift):  # maybe columns have very different lengths
                found = invert_unscaled(matrix, shift)
                if found is not None:
                    return cls(*found, shift)
            jitter = max(jitter, least_jitter(largest, shift))
            matrix[np.diag_indices_from(matrix)] += shift + jitter
            try:
                inverse, log_det = invert_positive(matrix)
            except np.linalg.LinAlgError:  # arms so long that rounding exceeds the ridge
                jitter = max(2.0 * jitter, 1e-15 * largest)
            else:
                return cls(inverse, log_det, shift + jitter, jitter)
        raise np.linalg.LinAlgError("S'S is not positive semidefinite, whatever is added")

    @property
    def nbytes(self) -> int:
        """Bytes of P and Q, and of the arrays that a search or a draw keeps."""
        held = [self.inverse, self.pending, *(self.chosen or ())]
        of_root: int = 0 if self._root is None else self._root.nbytes
        total: int = of_root + sum(array.nbytes for array in held)
        return total

    def holds(self, leverage: Leverage) -> bool:
        """Whether a leverage is counted in ``nbytes``."""
        return self.chosen is not None and leverage.image is self.chosen[1]

    @property
    def rows_worth_a_rebuild(self) -> int:
        """The number of rows from which on a rebuild is cheaper than appending them."""
        return max(2, len(self.inverse) // 4)

    def follows(self, change: Change, norm_sq: float) -> bool:
        """Whether ``append`` is enough for a change: not after many rows, or for a very long x."""
        is_additive = change.lossless or not change.rebuilt
        return self.updates < self._most_updates and is_additive and norm_sq < _LONGEST * self.shift

    def leverage(self, x: AnyVector, norm_sq: float) -> Leverage:
        """P x, Q x and x'P x - |Q x|²: one pass over P."""
        del norm_sq
        rows = self.pending[: self.pending_count]
        if isinstance(x, SparseVector):
            image = x.values @ self.inverse[x.indices]
            seen = product(rows.take(x.indices, axis=1), x.values)
            return Leverage(image, seen, inner(image[x.indices], x.values) - inner(seen, seen))
        compiled = loops(self.inverse.size)
        if compiled is None:
            image, seen = self.inverse @ x, product(rows, x)
            return Leverage(image, seen, inner(image, x) - inner(seen, seen))
        image, seen = np.empty(len(x)), np.empty(self.pending_count)
        value = compiled.leverage_dense(x, self.inverse, self.pending, self.pending_count, image, seen)
        return Leverage(image, seen, value)

    def quadratic(self, leverage: Leverage, norm_sq: float) -> float:
        """x'A^-1 x, which lies between 0 and |x|² / shift."""
        return min(max(leverage.value, 0.0), norm_sq / self.shift)

    def quadratics_of(self, arms: View, norms_sq: Vector) -> Vector | None:
        """x'A^-1 x of many arms, each equal to ``quadratic``; None if nothing is compiled."""
        compiled, found = loops(len(norms_sq) * self.inverse.size), np.empty(len(norms_sq))
        if compiled is None:
            return None
        p, q, count = self.inverse, self.pending, self.pending_count
        compiled.quadratics_dense(*arms, norms_sq, p, q, count, self.shift, found)
        return found

    def quadratics(self, arms: AnyArray) -> Vector:
        """x'A^-1 x of many arms in one product, up to rounding of the longest arm."""
        rows = self.pending[: self.pending_count]
        quadratics = inner_rows(arms @ self.inverse, arms)
        if len(rows):
            quadratics -= np.square(product(arms, rows.T)).sum(axis=1)
        return np.maximum(quadratics, 0.0)

    def search(self, arms: View, theta: Vector, radius: float) -> Found | None:
        """The best of dense arms: means, bounds, and the few widths that matter."""
        compiled = loops(arms.array.size + self.inverse.size)
        if compiled is None:
            return None
        if self.chosen is None:
            dim = len(theta)
            self.chosen = np.empty(dim), np.empty(dim), np.empty(len(self.pending)), np.empty(1)
        x, image, seen, value = self.chosen
        p, q, count, shift = self.inverse, self.pending, self.pending_count, self.shift
        index: int = compiled.search_dense(
            *arms, theta, p, q, count, shift, radius, self.few, x, image, seen, value
        )
        if index == _TOO_MANY:  # one product with all arms finds the few that need a closer look
            close = self._close_to_best(arms, theta, radius)
            some = View(rows_of(arms, close))
            best = compiled.search_dense(
                *some, theta, p, q, count, shift, radius, len(close), x, image, seen, value
            )
            index = int(close[best])
        return (index, (x, Leverage(image, seen, value.item()))) if index >= 0 else None

    def _close_to_best(self, arms: View, theta: Vector, radius: float) -> AnyArray:
        """All arms whose scores could be the best, with a margin far above rounding."""
        scores, longest = np.empty(len(arms.array)), 0.0
        for start in range(0, len(scores), _TOGETHER):
            some = rows_of(arms, slice(start, start + _TOGETHER)).astype(np.float64, copy=False)
            widths = np.sqrt(self.quadratics(some))
            scores[start : start + _TOGETHER] = product(some, theta) + radius * widths
            longest = max(longest, math.sqrt(float(row_norms_sq(some).max())))
        reach = longest * (length_of(theta) + radius / math.sqrt(self.shift))
        return np.flatnonzero(scores >= scores.max() - 1e-5 * reach)

    def search_many(self, batch: Batch, theta: Vector, radius: float) -> AnyArray | None:
        """The best arm of each of many sets. Negative: this set has to be searched separately."""
        compiled = kernels()
        if compiled is None:
            return None
        (arms, bounds), found = batch, np.empty(len(batch.bounds) - 1, dtype=np.intp)
        p, q, count, shift = self.inverse, self.pending, self.pending_count, self.shift
        compiled.search_many_dense(*arms, bounds, theta, p, q, count, shift, radius, self.few, found)
        return found

    def leverage_to_beat(self, x: Vector, norm_sq: float, to_beat: ToBeat) -> Leverage | None:
        """The leverage of a dense x; None as soon as its score cannot be the best."""
        compiled, count = kernels(), self.pending_count
        if compiled is None or to_beat.least == -math.inf:
            return self.leverage(x, norm_sq)
        p, q = self.inverse, self.pending
        may_win = compiled.may_win_dense(x, norm_sq, *to_beat, p, q, count, self.shift)
        return self.leverage(x, norm_sq) if may_win else None

    def append_and_move(
        self, x: Vector, norm_sq: float, leverage: Leverage, value: float, moved: LinearState
    ) -> float | None:
        """Add a row to Q, and move theta along it."""
        compiled = kernels()
        if compiled is None:
            return None
        most, count = norm_sq / self.shift, self.pending_count
        image, seen = leverage.image, leverage.seen
        grown, error = compiled.grow_dense(
            x, value, self.pending, count, most, leverage.value, image, seen, *moved
        )
        if grown < 0.0:
            return None
        self.count_row(grown)
        return float(error)

    def solve(self, b: Vector, *, refine: bool = True) -> Vector:
        """A^-1 b."""
        del refine
        rows = self.pending[: self.pending_count]
        solution: Vector = self.inverse @ b - product(rows, b) @ rows
        return solution

    def solve_all(self, vectors: Matrix) -> Matrix:
        """A^-1 x for every row x, in one product, up to rounding of the largest."""
        rows = self.pending[: self.pending_count]
        solutions: Matrix = vectors @ self.inverse - product(vectors, rows.T) @ rows
        return solutions

    def sample_direction(self, random: np.random.Generator) -> Vector:
        """A draw from N(0, A^-1), by a root of P that follows the pending updates."""
        if self._root is None:
            self._root = UpdatedRoot(self.inverse, len(self.pending))
        for row in self.pending[self._root.count : self.pending_count]:
            self._root.subtract(row)
        return self._root.times(random.standard_normal(len(self.inverse)))

    def image(self, x: AnyVector, leverage: Leverage) -> Vector:
        """A^-1 x = P x - Q'(Q x)."""
        del x
        count = self.pending_count
        image: Vector = leverage.image - leverage.seen[:count] @ self.pending[:count]
        return image

    def moved(self, vectors: Matrix, along: Vector, x: AnyVector, leverage: Leverage) -> Matrix | None:
        """Every row of ``vectors`` plus its ``along`` times A^-1 x; None if something overflows."""
        return step_along(vectors, along, self.image(x, leverage))

    def append(self, x: AnyVector, norm_sq: float, leverage: Leverage) -> Step:
        """Add the row q = A^-1 x / sqrt(1 + x'A^-1 x) to Q."""
        quadratic, count = self.quadratic(leverage, norm_sq), self.pending_count
        pivot, image = math.sqrt(1.0 + quadratic), self.image(x, leverage)
        np.multiply(image, 1.0 / pivot, out=self.pending[count])
        self.count_row(math.log1p(quadratic))
        return Step(leverage, quadratic, pivot, lambda: image)

    def for_device(self) -> Matrix:
        """A^-1."""
        rows = self.pending[: self.pending_count]
        whole: Matrix = self.inverse - rows.T @ rows
        return whole

    def dump(self) -> tuple[Scalars, Arrays]:
        """JSON values and arrays that ``undump`` turns into the same inverse."""
        scalars = {"log_det": self.log_det, "shift": self.shift, "updates": self.updates}
        scalars["jitter"] = self.jitter
        return scalars, {"matrix": self.inverse, "pending": self.pending[: self.pending_count]}

    @classmethod
    def undump(cls, dim: int, scalars: Scalars, arrays: Arrays) -> "DenseInverse":
        """The inverse that ``dump`` described."""
        inverse = cls(arrays["matrix"].reshape(dim, dim), float(scalars["log_det"]), float(scalars["shift"]))
        inverse.jitter = float(scalars["jitter"])
        inverse.updates = int(scalars["updates"])
        inverse.pending_count = len(arrays["pending"])
        inverse.pending[: inverse.pending_count] = arrays["pending"]
        return inverse

    def count_row(self, grown: float) -> None:
        """Count a row that was written to Q, and by how much log det A has grown."""
        self.pending_count += 1
        self.updates += 1
        self.log_det += grown
        if self.pending_count == len(self.pending):
            self._flush()

    def _flush(self) -> None:
        """P := P - Q'Q, a panel of rows at a time."""
        rows = self.pending
        for start in range(0, len(self.inverse), 256):
            stop = start + 256
            self.inverse[start:stop] -= rows[:, start:stop].T @ rows
        self.pending_count = 0
        self._root = None
