"""The interface of a low-rank and a dense inverse."""

from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np

from sketchbandit.arms import Batch, View
from sketchbandit.arrays import AnyArray, Arrays, Matrix, Scalars, Vector
from sketchbandit.linalg import SUM_ROUNDING, AnyVector
from sketchbandit.sketch import Change

MOST_TRIES = 60  # attempts to factor with a jitter; each doubles it


class Leverage(NamedTuple):
    """Products of a vector x with an inverse: enough for x'A^-1 x, and to add x.

    Through rows: S x, u = W S x and |x|² - |u|². Dense: P x, Q x and x'P x - |Q x|².
    """

    image: Vector
    seen: Vector
    value: float

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        return self.image.nbytes + self.seen.nbytes

    def times(self, factor: float) -> "Leverage":
        """The leverage of factor·x."""
        return Leverage(factor * self.image, factor * self.seen, factor * factor * self.value)


class ToBeat(NamedTuple):
    """The mean of an arm, the factor on its width, and the score that it has to beat."""

    mean: float
    radius: float
    least: float


Found = tuple[int, tuple[Vector, Leverage]]
"""The best of many arms: its index; the arm in float64, and its leverage."""


def least_jitter(largest: float, shift: float) -> float:
    """What must be added to the diagonal besides the shift, if rounding of long rows exceeds the shift."""
    noise = SUM_ROUNDING * largest
    return noise if noise > shift else 0.0


def step_along(vectors: Matrix, along: Vector, image: Vector) -> Matrix | None:
    """Every row of ``vectors`` plus its ``along`` times the image; None if something overflows."""
    with np.errstate(over="ignore", invalid="ignore"):
        moved = vectors + along[:, np.newaxis] * image
    return moved if np.isfinite(moved).all() else None


class Step(NamedTuple):
    """What an inverse did when x was added.

    Attributes
    ----------
    leverage : Leverage
        Of x, before it was taken in.
    quadratic : float
        x'A^-1 x, A as it was before.
    pivot : float
        What the factor of A has on its diagonal for x.
    image : callable
        Makes A^-1 x, A as it was before; to be called before the next row comes.

    """

    leverage: Leverage
    quadratic: float
    pivot: float
    image: Callable[[], Vector]


class LinearState(NamedTuple):
    """What a step of linear rewards moves: theta, b, the sum of all arms and its image, and by which levels.

    ``before`` is the level for which theta was computed, ``lag`` what has been added to it since, ``rise``
    what the step adds to both.
    """

    theta: Vector
    b: Vector
    sum: Vector
    image: Vector
    before: float
    lag: float
    rise: float


class Inverse(Protocol):
    """(shift I + S'S)^-1, to which rows are added one by one."""

    @property
    def shift(self) -> float:
        """The diagonal of A without S'S, including the jitter: a lower bound on all eigenvalues."""

    @property
    def jitter(self) -> float:
        """The part of the shift that was added because rounding of long rows exceeded the rest."""

    @property
    def nbytes(self) -> int:
        """Bytes of every array held."""

    @property
    def rows_worth_a_rebuild(self) -> int:
        """The number of rows from which on a rebuild is cheaper than appending them."""

    def search(self, arms: View, theta: Vector, radius: float) -> Found | None:
        """The dense arm of the largest x'theta + radius·width, ties to the lowest index, in a compiled call.

        None if nothing is compiled, or if a score is not finite.
        """

    def search_many(self, batch: Batch, theta: Vector, radius: float) -> AnyArray | None:
        """The same for each of many sets. Negative: this set has to be searched separately."""

    def leverage_to_beat(self, x: Vector, norm_sq: float, to_beat: ToBeat) -> Leverage | None:
        """The leverage of a dense x; None as soon as its score cannot be the best."""

    def append_and_move(
        self, x: Vector, norm_sq: float, leverage: Leverage, value: float, moved: "LinearState"
    ) -> float | None:
        """``append``, and a step of linear rewards, in one compiled loop; the prediction error from before.

        None, and nothing is done, if nothing is compiled or something overflows.
        """

    def quadratics_of(self, arms: View, norms_sq: Vector) -> Vector | None:
        """x'A^-1 x of many dense arms, each equal to ``quadratic``; None if nothing is compiled."""

    def follows(self, change: Change, norm_sq: float) -> bool:
        """Whether ``append`` is enough for a change of the sketch by one row."""

    def leverage(self, x: AnyVector, norm_sq: float) -> Leverage:
        """The leverage of one vector."""

    def quadratic(self, leverage: Leverage, norm_sq: float) -> float:
        """x'A^-1 x."""

    def image(self, x: AnyVector, leverage: Leverage) -> Vector:
        """A^-1 x for an x with known leverage, as a new array."""

    def moved(self, vectors: Matrix, along: Vector, x: AnyVector, leverage: Leverage) -> Matrix | None:
        """Every row of ``vectors`` plus its ``along`` times A^-1 x, as a new array; None if it overflows."""

    def append(self, x: AnyVector, norm_sq: float, leverage: Leverage) -> Step:
        """Add the row x."""

    def solve(self, b: Vector, *, refine: bool = True) -> Vector:
        """A^-1 b, with one step of refinement if needed."""

    def sample_direction(self, random: np.random.Generator) -> Vector:
        """A draw from N(0, A^-1)."""

    def for_device(self) -> Matrix:
        """The matrix (dim, n) with which widths of arms on a device are computed."""

    def dump(self) -> tuple[Scalars, Arrays]:
        """JSON values and arrays from which the same inverse is made again."""
