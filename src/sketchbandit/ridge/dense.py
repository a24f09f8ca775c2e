"""A dense inverse that takes rank-one updates: for sketches that are exact, or nearly as large as dim."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sketchbandit.arrays import AnyArray, Matrix, Vector
from sketchbandit.linalg import (
    AnyVector,
    SparseVector,
    add_multiple,
    dot,
    invert_positive,
    invert_unscaled,
    row_norms_sq,
)
from sketchbandit.ridge.backend import kernels
from sketchbandit.ridge.factor import MOST_TRIES, least_jitter
from sketchbandit.sketch import Change

_MOST_PENDING = 32  # rank-one updates that are taken together, at the speed of a matrix product
_CHEAP = 2_000_000  # entries of P: what costs less than the calls of another way
_TOGETHER = 1024  # arms in one product
_MANY = -2  # what a search returns that gave up
_LONGEST = 1e12  # |x|² over the shift: P is known to rounding of its largest entry, 1/shift, only


class DenseShadow(NamedTuple):
    """What a vector x leaves on the inverse: P x, Q x and x'P x - |Q x|²."""

    image: Vector
    seen: Vector
    whole: float


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
        """What of the shift was added where rounding of long rows had eaten the rest."""
        self.pending: Matrix = np.zeros((min(_MOST_PENDING, max(1, dim // 4)), dim))
        self.pending_count = 0
        self.updates = 0
        self._most_updates = max(256, dim)
        self._few = max(16, _CHEAP // inverse.size)  # a product with all arms costs about as many
        # Where a search leaves the arm it chose and its shadow: valid until the next one.
        self._chosen: tuple[Vector, Vector, Vector, Vector] | None = None

    @classmethod
    def of_covariance(cls, covariance: Callable[[], Matrix], shift: float) -> "DenseInverse":
        """The inverse of S'S + shift I, in the memory of the S'S that ``covariance`` makes."""
        jitter = 0.0
        for _ in range(MOST_TRIES):
            matrix = covariance()
            largest = float(matrix.diagonal().max())
            if not jitter and least_jitter(largest, shift):  # columns of very different lengths, perhaps
                found = invert_unscaled(matrix, shift)
                if found is not None:
                    return cls(*found, shift)
            jitter = max(jitter, least_jitter(largest, shift))
            matrix[np.diag_indices_from(matrix)] += shift + jitter
            try:
                inverse, log_det = invert_positive(matrix)
            except np.linalg.LinAlgError:  # arms so long that rounding has eaten the ridge
                jitter = max(2.0 * jitter, 1e-15 * largest)
            else:
                return cls(inverse, log_det, shift + jitter, jitter)
        raise np.linalg.LinAlgError("S'S is not positive semidefinite, whatever is added")

    @property
    def nbytes(self) -> int:
        """Bytes of P and Q, and of what a search leaves."""
        return self.inverse.nbytes + self.pending.nbytes + sum(a.nbytes for a in self._chosen or ())

    def holds(self, array: Any) -> bool:
        """Whether an array is counted in ``nbytes``."""
        return any(array is mine for mine in self._chosen or ())

    @property
    def rows_worth_a_rebuild(self) -> int:
        """From how many rows at once on a rebuild is cheaper than appending them."""
        return max(2, len(self.inverse) // 4)

    def follows(self, change: Change, norm_sq: float) -> bool:
        """Whether ``grow`` is all that a change of the sketch asks for: not after many, or a very long x."""
        return self.updates < self._most_updates and change.additive and norm_sq < _LONGEST * self.shift

    def shadow(self, x: AnyVector, norm_sq: float = 0.0, parts: Any = None) -> DenseShadow:
        """The shadow of one vector: one pass over P."""
        del norm_sq, parts  # P stands for the rows
        rows = self.pending[: self.pending_count]
        if isinstance(x, SparseVector):
            image = x.values @ self.inverse[x.indices]
            seen = rows.take(x.indices, axis=1) @ x.values
            return DenseShadow(image, seen, float(image[x.indices] @ x.values) - float(seen @ seen))
        compiled = kernels()
        if compiled is None:
            image, seen = self.inverse @ x, rows @ x
            return DenseShadow(image, seen, float(image @ x) - float(seen @ seen))
        image, seen = np.empty(len(x)), np.empty(self.pending_count)
        whole = compiled.shadow_dense(x, self.inverse, self.pending, self.pending_count, image, seen)
        return DenseShadow(image, seen, whole)

    def quadratic(self, shadow: DenseShadow, norm_sq: float) -> float:
        """x'A^-1 x, which lies between 0 and |x|² / shift."""
        return min(max(shadow.whole, 0.0), norm_sq / self.shift)

    def search(
        self, arms: AnyArray, theta: Vector, radius: float, parts: Any = None
    ) -> tuple[int, Vector, DenseShadow] | None:
        """The best of dense arms in one compiled call (-1: a score is not finite); None: not compiled."""
        del parts
        compiled = kernels()
        if compiled is None or arms.dtype != np.float64:
            return None
        if self._chosen is None:
            dim = len(theta)
            self._chosen = np.empty(dim), np.empty(dim), np.empty(len(self.pending)), np.empty(1)
        x, image, seen, whole = self._chosen
        p, q, count, shift = self.inverse, self.pending, self.pending_count, self.shift
        search = compiled.search_dense
        index = search(arms, theta, p, q, count, shift, radius, self._few, x, image, seen, whole)
        if index == _MANY:  # one product with all arms tells which of them to look at closely
            close = self._close_to_best(arms, theta, radius)
            some, most = arms[close], len(close)
            found = search(some, theta, p, q, count, shift, radius, most, x, image, seen, whole)
            index = int(close[found])
        return index, x, DenseShadow(image, seen, whole.item())

    def _close_to_best(self, arms: AnyArray, theta: Vector, radius: float) -> NDArray[np.intp]:
        """Every arm whose score, to far more than rounding, could be the best."""
        rows = self.pending[: self.pending_count]
        scores = np.empty(len(arms))
        for start in range(0, len(arms), _TOGETHER):
            some = arms[start : start + _TOGETHER]
            quadratics = np.vecdot(some @ self.inverse, some)
            if len(rows):
                quadratics -= np.square(some @ rows.T).sum(axis=1)
            scores[start : start + _TOGETHER] = some @ theta + radius * np.sqrt(np.maximum(quadratics, 0.0))
        longest = math.sqrt(float(row_norms_sq(arms).max()))
        reach = longest * (float(np.linalg.norm(theta)) + radius / math.sqrt(self.shift))
        return np.flatnonzero(scores >= scores.max() - 1e-5 * reach)

    def solve(self, b: Vector, parts: Any = None, *, refine: bool = True) -> Vector:
        """A^-1 b."""
        del parts, refine
        rows = self.pending[: self.pending_count]
        solution: Vector = self.inverse @ b - (rows @ b) @ rows
        return solution

    def grow(
        self,
        x: AnyVector,
        reward: float,
        norm_sq: float,
        shadow: DenseShadow,
        parts: Any,
        theta: Vector,
        b: Vector,
    ) -> bool:
        """Take in x, and move theta and b; False: theta'x overflows."""
        del parts
        compiled = kernels()
        if compiled is None or isinstance(x, SparseVector):
            with np.errstate(over="ignore", invalid="ignore"):
                error = reward - dot(theta, x)
            if not math.isfinite(error):
                return False
            image = self.append(norm_sq, shadow)
            theta += (error / (1.0 + self.quadratic(shadow, norm_sq))) * image
            add_multiple(b, reward, x)
            return True
        image, seen, whole = shadow
        most = norm_sq / self.shift
        grown = compiled.grow_dense(
            x, reward, self.pending, self.pending_count, most, whole, image, seen, theta, b
        )
        if grown < 0.0:
            return False
        self._count_row(grown)
        return True

    def append(self, norm_sq: float, shadow: DenseShadow) -> Vector:
        """Take in x alone; returns A^-1 x, A as it was before."""
        quadratic = self.quadratic(shadow, norm_sq)
        count = self.pending_count
        image: Vector = shadow.image - shadow.seen[:count] @ self.pending[:count]
        np.multiply(image, 1.0 / math.sqrt(1.0 + quadratic), out=self.pending[self.pending_count])
        self._count_row(math.log1p(quadratic))
        return image

    def dump(self) -> tuple[dict[str, Any], dict[str, AnyArray]]:
        """JSON values and arrays that ``undump`` turns into the same inverse."""
        scalars = {"log_det": self.log_det, "shift": self.shift, "updates": self.updates}
        scalars["jitter"] = self.jitter
        return scalars, {"matrix": self.inverse, "pending": self.pending[: self.pending_count]}

    @classmethod
    def undump(cls, dim: int, scalars: dict[str, Any], arrays: dict[str, AnyArray]) -> "DenseInverse":
        """The inverse that ``dump`` described."""
        inverse = cls(arrays["matrix"].reshape(dim, dim), float(scalars["log_det"]), float(scalars["shift"]))
        inverse.jitter = float(scalars["jitter"])
        inverse.updates = int(scalars["updates"])
        inverse.pending_count = len(arrays["pending"])
        inverse.pending[: inverse.pending_count] = arrays["pending"]
        return inverse

    def _count_row(self, grown: float) -> None:
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
