"""(shift I + S'S)^-1 through the rows of the sketch, O(r·d + r²) for everything."""

import math
from typing import Any, NamedTuple

import numpy as np

from sketchbandit.arrays import AnyArray, Matrix, Parts, Vector
from sketchbandit.linalg import AnyVector, SparseVector, add_multiple, dot, row_norms_sq
from sketchbandit.ridge.arms import SparseArms
from sketchbandit.ridge.backend import kernels
from sketchbandit.ridge.factor import CANCELLED, GrowingFactor
from sketchbandit.ridge.parts import combine, gram_of_parts, project, project_sparse
from sketchbandit.sketch import Change

# With r rows a round costs 2·r·d + 2·r² here and about 1.3·d² through a dense inverse.
_MOST_ROWS = 0.75  # of dim


class Shadow(NamedTuple):
    """What a vector x leaves on the rows: y = S x, u = W y and |x|² - |u|²."""

    y: Vector
    u: Vector
    remainder: float


class LowRankInverse:
    """A^-1 = (I - S' W'W S) / shift for A = shift·I + S'S, S the sketch's own rows, W a GrowingFactor.

    The rows are not kept here: the methods are given the sketch's parts, and read the first ``count`` rows.
    """

    def __init__(self, dim: int, factor: GrowingFactor) -> None:
        self._dim = dim
        self.factor = factor

    @classmethod
    def of_rows(cls, parts: Parts, dim: int, shift: float, *, orthogonal: bool) -> "LowRankInverse":
        """The inverse for these rows: O(r²·d + r³), or O(r·d) if they are orthogonal."""
        if orthogonal:
            norms_sq = np.concatenate([row_norms_sq(part) for part in parts])
            return cls(dim, GrowingFactor.of_orthogonal(norms_sq, shift))
        return cls(dim, GrowingFactor.of_gram(gram_of_parts(parts), shift))

    @property
    def shift(self) -> float:
        """What stands on the diagonal of A besides S'S, the jitter included."""
        return self.factor.shift

    @property
    def jitter(self) -> float:
        """What of the shift was added where rounding of long rows had eaten the rest."""
        return self.factor.jitter

    @property
    def nbytes(self) -> int:
        """Bytes of the factor."""
        return self.factor.nbytes

    @property
    def rows_worth_a_rebuild(self) -> int:
        """From how many rows at once on a rebuild is cheaper than appending them."""
        return max(2, self.factor.count // 4)

    def follows(self, change: Change, norm_sq: float) -> bool:
        """Whether ``grow`` is all that a change of the sketch asks for."""
        del norm_sq
        return not change.rebuilt and change.appended == 1 and self.factor.count < _MOST_ROWS * self._dim

    def shadow(self, x: AnyVector, norm_sq: float, parts: Parts) -> Shadow:
        """The shadow of one vector: one pass over S."""
        compiled = kernels()
        if compiled is None or isinstance(x, SparseVector) or not _is_plain(parts):
            return self.shadow_of(project(parts, x), x, norm_sq, parts)
        count = self.factor.count
        y, u = np.empty(count), np.empty(count)
        remainder = compiled.shadow_rows(x, norm_sq, parts[0], self.factor.array, count, self.shift, y, u)
        return Shadow(y, u, remainder)

    def shadow_of(self, y: Vector, x: AnyVector, norm_sq: float, parts: Parts) -> Shadow:
        """The shadow of a vector whose y = S x is known: O(r²), unless x lies almost in the span of S."""
        u = self.factor.matrix @ y
        remainder = norm_sq - float(u @ u)
        if remainder < CANCELLED * norm_sq:
            # |x|² - |u|² = |x - S'g|² + shift |g|² with g = W'u, where the difference has no digits left.
            g = u @ self.factor.matrix
            outside = -combine(g, parts)
            add_multiple(outside, 1.0, x)
            remainder = float(outside @ outside) + self.shift * float(g @ g)
        return Shadow(y, u, remainder)

    def quadratic(self, shadow: Shadow, norm_sq: float) -> float:
        """x'A^-1 x = (|x|² - |u|²) / shift."""
        del norm_sq
        return shadow.remainder / self.shift

    def search(
        self, arms: AnyArray, theta: Vector, radius: float, parts: Parts
    ) -> tuple[int, Vector, Shadow] | None:
        """The best of dense arms in one compiled call (-1: a score is not finite); None: not compiled."""
        compiled = kernels()
        if compiled is None or arms.dtype != np.float64 or not _is_plain(parts):
            return None
        factor = self.factor
        count = factor.count
        x, y, u, remainder = np.empty(self._dim), np.empty(count), np.empty(count), np.empty(1)
        index = compiled.search_rows(
            arms, theta, parts[0], factor.array, count, factor.shift, radius, x, y, u, remainder
        )
        return index, x, Shadow(y, u, remainder.item())

    def means_of_sparse(
        self, arms: SparseArms, weights: Vector, b: Vector, parts: Parts
    ) -> tuple[Vector, Matrix]:
        """x'theta = (x'b - (S x)'W' (W S b)) / shift, and S X': nothing of length dim is touched."""
        products = project_sparse(parts, arms)
        means: Vector = (arms.times(b) - (weights @ self.factor.matrix) @ products) / self.shift
        return means, products

    def solve(self, b: Vector, parts: Parts, *, refine: bool = True) -> Vector:
        """A^-1 b, refined once: where b lies almost in the span of S, (b - S'g) / shift cancels."""
        scale = float(np.abs(b).max(initial=0.0))
        if not scale:
            return np.zeros_like(b)
        unit = b / scale  # so that S b does not overflow where A^-1 b does not
        solution = self._solve_once(unit, parts)
        if not refine:
            return solution * scale
        with np.errstate(over="ignore", invalid="ignore"):
            residual = unit - self.shift * solution - combine(project(parts, solution), parts)
            correction = self._solve_once(residual, parts)
        if np.isfinite(correction).all():
            solution += correction
        return solution * scale

    def _solve_once(self, b: Vector, parts: Parts) -> Vector:
        return self._apply(b, (self.factor.matrix @ project(parts, b)) @ self.factor.matrix, parts)

    def weights(self, b: Vector, parts: Parts) -> Vector:
        """W S b."""
        scale = float(np.abs(b).max(initial=0.0)) or 1.0
        weights: Vector = (self.factor.matrix @ project(parts, b / scale)) * scale
        return weights

    def grow(
        self,
        x: Vector,
        reward: float,
        norm_sq: float,
        shadow: Shadow,
        parts: Parts,
        theta: Vector,
        b: Vector,
    ) -> bool:
        """Append x, as the sketch has just done, and move theta and b; False: theta'x overflows."""
        compiled = kernels()
        factor = self.factor
        shift, quadratic = factor.shift, shadow.remainder / factor.shift
        if compiled is not None and _is_plain(parts):
            pivot = factor.begin_row(norm_sq, shadow.remainder)
            grown: bool = compiled.grow_rows(
                x,
                reward,
                parts[0],
                factor.array,
                factor.count,
                pivot,
                quadratic,
                shift,
                shadow.u,
                theta,
                b,
            )
            if grown:
                factor.end_row()
            return grown
        with np.errstate(over="ignore", invalid="ignore"):
            error = reward - dot(theta, x)
        if not math.isfinite(error):
            return False
        image = self._apply(x, shadow.u @ factor.matrix, parts)
        theta += (error / (1.0 + quadratic)) * image
        add_multiple(b, reward, x)
        self.append(norm_sq, shadow)
        return True

    def grow_weights(
        self, x: AnyVector, reward: float, norm_sq: float, shadow: Shadow, weights: Vector, b: Vector
    ) -> Vector:
        """Append x, and move W S b and b: O(r² + non-zeros of x)."""
        add_multiple(b, reward, x)
        pivot = self.append(norm_sq, shadow)
        weights += reward * shadow.u
        return np.append(weights, (dot(b, x) - float(weights @ shadow.u)) / pivot)

    def append(self, norm_sq: float, shadow: Shadow) -> float:
        """Append a row to the factor alone; returns its pivot."""
        back = shadow.u @ self.factor.matrix
        pivot = self.factor.begin_row(norm_sq, shadow.remainder)
        row = self.factor.array[self.factor.count]
        np.multiply(back, -1.0 / pivot, out=row[: len(back)])
        row[len(back)] = 1.0 / pivot
        self.factor.end_row()
        return pivot

    def dump(self) -> tuple[dict[str, Any], dict[str, AnyArray]]:
        """JSON values and arrays that ``undump`` turns into the same inverse."""
        return {"shift": self.shift, "jitter": self.jitter}, {"factor": self.factor.matrix}

    @classmethod
    def undump(cls, dim: int, scalars: dict[str, Any], arrays: dict[str, AnyArray]) -> "LowRankInverse":
        """The inverse that ``dump`` described."""
        factor = GrowingFactor(float(scalars["shift"]))
        factor.restore(arrays["factor"])
        factor.jitter = float(scalars["jitter"])
        return cls(dim, factor)

    def _apply(self, x: Vector, back: Vector, parts: Parts) -> Vector:
        """A^-1 x for ``back`` = W'W S x: one pass over S."""
        image: Vector = (x - combine(back, parts)) / self.shift
        return image


def _is_plain(parts: Parts) -> bool:
    """Whether S is one float64 array, as the compiled loops read it."""
    return len(parts) == 1 and parts[0].dtype == np.float64 and bool(parts[0].flags.c_contiguous)
