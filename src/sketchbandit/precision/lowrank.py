"""(shift I + S'S)^-1 through the rows of the sketch, in O(r·d + r²) per operation."""

import math
from typing import Any

import numpy as np

from sketchbandit.arms import Batch, SparseArms, View, sum_runs
from sketchbandit.arrays import AnyArray, Arrays, Matrix, Parts, Scalars, Vector
from sketchbandit.kernels import CANCELLED, kernels, loops
from sketchbandit.linalg import (
    SUM_ROUNDING,
    AnyVector,
    SparseVector,
    add_multiple,
    inner,
    invert_lower,
    product,
    rows_times,
    times_rows,
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
from sketchbandit.sketch import Change, Sketch

# With r rows a round costs 2·r·d + 2·r² here and about 1.3·d² through a dense inverse.
_MOST_ROWS = 0.75  # of dim


def project(parts: Parts, x: AnyVector) -> Vector:
    """S x."""
    if isinstance(x, SparseVector):
        bounds = np.array([0, len(x.indices)])
        return _project_entries(parts, x.indices, x.values, bounds)[:, 0]
    if len(parts) == 1:
        return rows_times(parts[0], x)
    return np.concatenate([rows_times(part, x) for part in parts])


def project_sparse(parts: Parts, arms: SparseArms) -> Matrix:
    """S X' for sparse arms, (r, K), reading only the columns where they are not zero."""
    matrix = arms.matrix
    values = matrix.data.astype(np.float64, copy=False)
    return _project_entries(parts, matrix.indices, values, matrix.indptr)


def combine(weights: Vector, parts: Parts) -> Vector:
    """S'w, for the first ``len(weights)`` rows of S."""
    if len(parts) == 1:
        return times_rows(weights, parts[0][: len(weights)])
    total = np.zeros(parts[0].shape[1])
    taken = 0
    for part in parts:
        some = weights[taken : taken + len(part)]
        total += times_rows(some, part[: len(some)])
        taken += len(some)
    return total


def _project_entries(parts: Parts, indices: AnyArray, values: Vector, bounds: AnyArray) -> Matrix:
    """One column per run of entries. It does not depend on the other runs."""
    return np.concatenate([sum_runs(part.take(indices, axis=1) * values, bounds) for part in parts])


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


class LowRankInverse:
    """A^-1 = (I - S' W'W S) / shift for A = shift·I + S'S, S the sketch's own rows, W a GrowingFactor.

    The rows belong to the sketch. The first ``factor.count`` of them are read.
    """

    def __init__(self, sketch: Sketch, factor: GrowingFactor) -> None:
        self._sketch = sketch
        self.factor = factor

    @classmethod
    def of(cls, sketch: Sketch, shift: float, *, orthogonal: bool) -> "LowRankInverse":
        """The inverse for the rows of a sketch: O(r²·d + r³), or O(r·d) if they are orthogonal."""
        products = sketch.row_products(orthogonal=orthogonal)
        if orthogonal:
            return cls(sketch, GrowingFactor.of_orthogonal(products.diagonal(), shift))
        return cls(sketch, GrowingFactor.of_gram(products, shift))

    @property
    def shift(self) -> float:
        """The diagonal of A without S'S, including the jitter."""
        return self.factor.shift

    @property
    def jitter(self) -> float:
        """The part of the shift that was added because rounding of long rows exceeded the rest."""
        return self.factor.jitter

    @property
    def nbytes(self) -> int:
        """Bytes of the factor."""
        return self.factor.nbytes

    @property
    def rows_worth_a_rebuild(self) -> int:
        """The number of rows from which on a rebuild is cheaper than appending them."""
        return max(2, self.factor.count // 4)

    @property
    def plain_rows(self) -> AnyArray | None:
        """S as one array for the compiled loops, if it is one; else None."""
        parts = self._sketch.views()
        return parts[0] if len(parts) == 1 and parts[0].flags.c_contiguous else None

    def _loops(self, times: int) -> tuple[Any, AnyArray | None]:
        """For so many passes over S, and S."""
        rows = self.plain_rows
        return loops(0 if rows is None else times * rows.size), rows

    @property
    def _parts(self) -> Parts:
        return self._sketch.views()

    def follows(self, change: Change, norm_sq: float) -> bool:
        """Whether ``append`` is enough for a change of the sketch by one row."""
        del norm_sq
        most = _MOST_ROWS * self._sketch.dim
        return not change.rebuilt and change.appended == 1 and self.factor.count < most

    def leverage(self, x: AnyVector, norm_sq: float) -> Leverage:
        """S x, u = W S x and |x|² - |u|²: one pass over S."""
        compiled, rows = self._loops(1)
        if compiled is None or isinstance(x, SparseVector) or rows is None:
            return self.leverage_of(project(self._parts, x), x, norm_sq)
        count = self.factor.count
        y, u = np.empty(count), np.empty(count)
        value = compiled.leverage_rows(x, norm_sq, rows, self.factor.array, count, self.shift, y, u)
        return Leverage(y, u, value)

    def leverage_of(self, y: Vector, x: AnyVector, norm_sq: float) -> Leverage:
        """The same where y = S x is known: O(r²), unless x lies almost in the span of S."""
        u = self.factor.matrix @ y
        remainder = norm_sq - inner(u, u)
        if remainder < CANCELLED * norm_sq:
            # |x|² - |u|² = |x - S'g|² + shift |g|² with g = W'u, where the difference has no digits left.
            g = u @ self.factor.matrix
            outside = -combine(g, self._parts)
            add_multiple(outside, 1.0, x)
            remainder = inner(outside, outside) + self.shift * inner(g, g)
        return Leverage(y, u, remainder)

    def quadratic(self, leverage: Leverage, norm_sq: float) -> float:
        """x'A^-1 x = (|x|² - |u|²) / shift."""
        del norm_sq
        return leverage.value / self.factor.shift

    def quadratics_of(self, arms: View, norms_sq: Vector) -> Vector | None:
        """x'A^-1 x of many arms, each equal to ``quadratic``; None if nothing is compiled."""
        (compiled, rows), found = self._loops(len(norms_sq)), np.empty(len(norms_sq))
        if compiled is None or rows is None:
            return None
        factor = self.factor
        compiled.quadratics_rows(*arms, norms_sq, rows, factor.array, factor.count, factor.shift, found)
        return found

    def search(self, arms: View, theta: Vector, radius: float) -> Found | None:
        """The best of dense arms: means, bounds, and the few widths that matter."""
        rows = self.plain_rows
        compiled = None if rows is None else loops(arms.array.size + rows.size)
        if compiled is None or rows is None:
            return None
        factor = self.factor
        count = factor.count
        x, y, u, value = np.empty(len(theta)), np.empty(count), np.empty(count), np.empty(1)
        index: int = compiled.search_rows(
            *arms, theta, rows, factor.array, count, factor.shift, radius, x, y, u, value
        )
        return (index, (x, Leverage(y, u, value.item()))) if index >= 0 else None

    def search_many(self, batch: Batch, theta: Vector, radius: float) -> AnyArray | None:
        """The best arm of each of many sets. Negative: this set has to be searched separately."""
        compiled, rows, factor = kernels(), self.plain_rows, self.factor
        if compiled is None or rows is None:
            return None
        (arms, bounds), found = batch, np.empty(len(batch.bounds) - 1, dtype=np.intp)
        compiled.search_many_rows(
            *arms, bounds, theta, rows, factor.array, factor.count, factor.shift, radius, found
        )
        return found

    def leverage_to_beat(self, x: Vector, norm_sq: float, to_beat: ToBeat) -> Leverage | None:
        """The leverage of a dense x; None as soon as its score cannot be the best."""
        compiled, rows = kernels(), self.plain_rows
        if compiled is None or rows is None:
            return self.leverage(x, norm_sq)
        factor, count = self.factor.array, self.factor.count
        y, u = np.empty(count), np.empty(count)
        value = compiled.leverage_above(x, norm_sq, *to_beat, rows, factor, count, self.shift, y, u)
        return None if value < 0.0 else Leverage(y, u, value)

    def append_and_move(
        self, x: Vector, norm_sq: float, leverage: Leverage, value: float, moved: LinearState
    ) -> float | None:
        """Append a row to the factor, and move theta along A^-1 x, with one pass over S."""
        rows, factor = self.plain_rows, self.factor
        compiled = None if rows is None else loops(rows.size)
        if compiled is None:
            return None
        pivot = factor.begin_row(norm_sq, leverage.value)
        quadratic = leverage.value / factor.shift
        error: float = compiled.grow_rows(
            x, value, rows, factor.array, factor.count, pivot, quadratic, factor.shift, leverage.seen, *moved
        )
        if not math.isfinite(error):
            return None
        factor.end_row()
        return error

    def gram_of_sparse(self, arms: SparseArms, products: Matrix | None) -> Matrix:
        """X A^-1 X' = (X X' - U'U) / shift, U = W S X'; nothing of length dim is touched."""
        images = project_sparse(self._parts, arms) if products is None else products
        seen = self.factor.matrix @ images
        with np.errstate(over="ignore", invalid="ignore"):
            wide = arms.matrix.astype(np.float64, copy=False)
            gram: Matrix = ((wide @ wide.T).toarray() - product(seen.T, seen)) / self.factor.shift
        return gram

    def append(self, x: AnyVector, norm_sq: float, leverage: Leverage) -> Step:
        """Append a row to the factor; A^-1 x = (x - S'W'u) / shift costs one pass over S."""
        count = self.factor.count
        pivot = self.factor.begin_row(norm_sq, leverage.value)
        array, compiled = self.factor.array, kernels()
        if compiled is None:
            np.multiply(leverage.seen @ array[:count, :count], -1.0 / pivot, out=array[count, :count])
            array[count, count] = 1.0 / pivot
        else:
            compiled.write_row(leverage.seen, array, count, pivot)
        self.factor.end_row()
        return Step(
            leverage,
            self.quadratic(leverage, norm_sq),
            pivot,
            lambda: self._image(x, leverage.seen @ array[:count, :count]),
        )

    def image(self, x: AnyVector, leverage: Leverage) -> Vector:
        """A^-1 x = (x - S'W'u) / shift: one pass over S."""
        return self._image(x, leverage.seen @ self.factor.matrix)

    def moved(self, vectors: Matrix, along: Vector, x: AnyVector, leverage: Leverage) -> Matrix | None:
        """Every row of ``vectors`` plus its ``along`` times A^-1 x; None if something overflows."""
        compiled, rows = self._loops(1)
        if compiled is None or isinstance(x, SparseVector) or rows is None:
            return step_along(vectors, along, self.image(x, leverage))
        made = np.empty_like(vectors)
        factor, count = self.factor.array, self.factor.count
        is_finite = compiled.moved_rows(
            x, vectors, along, rows, factor, count, self.shift, leverage.seen, made
        )
        return made if is_finite else None

    def _image(self, x: AnyVector, back: Vector) -> Vector:
        made = -combine(back, self._parts)
        add_multiple(made, 1.0, x)
        made /= self.shift
        return made

    def solve(self, b: Vector, *, refine: bool = True) -> Vector:
        """A^-1 b, refined once: where b lies almost in the span of S, (b - S'g) / shift cancels."""
        scale = float(np.abs(b).max(initial=0.0))
        if not scale:
            return np.zeros_like(b)
        unit = b / scale  # scaled, so that S b does not overflow
        solution = self._solve_once(unit)
        if not refine:
            return solution * scale
        with np.errstate(over="ignore", invalid="ignore"):
            parts = self._parts
            residual = unit - self.shift * solution - combine(project(parts, solution), parts)
            correction = self._solve_once(residual)
        if np.isfinite(correction).all():
            solution += correction
        return solution * scale

    def _solve_once(self, b: Vector) -> Vector:
        parts = self._parts
        weights = (self.factor.matrix @ project(parts, b)) @ self.factor.matrix
        solution: Vector = (b - combine(weights, parts)) / self.shift
        return solution

    def sample_direction(self, random: np.random.Generator) -> Vector:
        """(z - S'W'W (S z - sqrt(shift) y)) / sqrt(shift), z and y from N(0, I): two passes over S.

        It is A^-1 (sqrt(shift)·z + S'y), whose covariance is A^-1 A A^-1, for SS' = (W'W)^-1 - shift·I.
        """
        noise = random.standard_normal(self._sketch.dim)
        weights = random.standard_normal(self.factor.count)
        compiled, rows = self._loops(1)
        if compiled is not None and rows is not None:
            compiled.draw_rows(noise, weights, rows, self.factor.array, self.factor.count, self.shift)
            return noise
        parts, root = self._parts, math.sqrt(self.shift)
        seen = self.factor.matrix @ (project(parts, noise) - root * weights)
        drawn: Vector = (noise - combine(seen @ self.factor.matrix, parts)) / root
        return drawn

    # -- W S b instead of theta: nothing of length dim is touched where arms are sparse -----------------

    def weights(self, b: Vector) -> Vector:
        """W S b."""
        scale = float(np.abs(b).max(initial=0.0)) or 1.0
        weights: Vector = (self.factor.matrix @ project(self._parts, b / scale)) * scale
        return weights

    def means_of_sparse(self, arms: SparseArms, weights: Vector, targets: Vector) -> tuple[Vector, Matrix]:
        """x'theta = (x'b - (S x)'W' (W S b)) / shift, and S X'. ``targets`` are the x'b."""
        products = project_sparse(self._parts, arms)
        means: Vector = (targets - product(weights @ self.factor.matrix, products)) / self.shift
        return means, products

    def for_device(self) -> Matrix:
        """(W S)', (dim, r): |W S x|² is what the sketch takes from |x|²."""
        factor = self.factor.matrix
        rows = np.concatenate([part.astype(np.float64, copy=False) for part in self._parts])
        return np.ascontiguousarray((factor @ rows[: len(factor)]).T)

    # -- files ----------------------------------------------------------------------------------------

    def dump(self) -> tuple[Scalars, Arrays]:
        """JSON values and arrays that ``undump`` turns into the same inverse."""
        return {"shift": self.shift, "jitter": self.jitter}, {"factor": self.factor.matrix}

    @classmethod
    def undump(cls, sketch: Sketch, scalars: Scalars, arrays: Arrays) -> "LowRankInverse":
        """The inverse that ``dump`` described."""
        factor = GrowingFactor(float(scalars["shift"]))
        factor.restore(arrays["factor"])
        factor.jitter = float(scalars["jitter"])
        return cls(sketch, factor)
