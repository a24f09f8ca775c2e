"""A set of arms as a rule sees it."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from sketchbandit.arms import Arms, DenseArms, OfferedArms, Scan, SparseArms, own_copy
from sketchbandit.arrays import AnyArray, Matrix, Vector
from sketchbandit.errors import InputError
from sketchbandit.precision import Leverage, Precision
from sketchbandit.theory import Confidence, regression_bound


class Candidates(ABC):
    """Arms to choose from: their means are known, and there are ways to ask for more.

    Attributes
    ----------
    means : array
        The margin x'theta of every arm, (K,), in whose unit widths count: where rewards are linear its mean
        reward. It orders the arms as their mean rewards do.
    rewards : array
        The mean reward of every arm, (K,), for rules that look at differences of them.
    radius : float
        beta, by which widths count; where arms have a model each, one for every arm, (K,).
    rounds : int
        How many rewards were learned from.

    """

    means: Vector
    radius: Any
    rounds: int

    def __len__(self) -> int:
        return len(self.means)

    @property
    def rewards(self) -> Vector:
        """The mean reward of every arm."""
        return self.means

    @abstractmethod
    def width(self, index: int) -> float:
        """sqrt(x'A^-1 x) of one arm: a pass over the sketch, so ask for as few as can be."""

    @abstractmethod
    def most_widths(self) -> Vector:
        """No width is larger, to the last bit: width² <= |x|² / rho. It costs nothing."""

    @abstractmethod
    def drawn(self, random: np.random.Generator) -> Vector:
        """Means plus x'v, v drawn from N(0, radius²·A^-1): one draw for all arms of one model."""

    @abstractmethod
    def along(self, direction: Vector) -> Vector:
        """Means plus radius·x'direction."""

    @abstractmethod
    def covariance(self) -> Matrix:
        """The covariance of ``drawn`` less that of the first arm, which no comparison sees, (K, K)."""

    @abstractmethod
    def first_copies(self) -> AnyArray:
        """For every arm the index of the first that equals it, (K,): draws cannot tell them apart."""

    @abstractmethod
    def regression_bound(self, confidence: Confidence) -> float:
        """A bound on the sum of squared errors of all predictions so far (``theory.regression_bound``)."""

    def keep(self) -> None:
        """What the last width took to compute will be needed: that arm may well be chosen."""
        return

    def widths(self) -> Vector:
        """The width of every arm."""
        return np.array([self.width(index) for index in range(len(self))])

    def widths_of(self, indices: AnyArray) -> Vector:
        """The widths of some arms, each to the bit as by itself."""
        return np.array([self.width(index) for index in indices.tolist()])

    def bonus(self, index: int) -> float:
        """radius·width of one arm."""
        radius = self.radius if isinstance(self.radius, float) else self.radius[index]
        return float(radius * self.width(index))

    def bonuses(self) -> Vector:
        """radius·width of every arm."""
        bonuses: Vector = self.radius * self.widths()
        return bonuses

    def bonuses_of(self, indices: AnyArray) -> Vector:
        """radius·width of some arms."""
        radius = self.radius if isinstance(self.radius, float) else self.radius[indices]
        bonuses: Vector = radius * self.widths_of(indices)
        return bonuses

    def most_bonuses(self) -> Vector:
        """No bonus is larger; these cost nothing."""
        bonuses: Vector = self.radius * self.most_widths()
        return bonuses


def copies_among(first: AnyArray, indices: AnyArray) -> AnyArray:
    """``first_copies`` of some of the arms, from those of all."""
    _, places, of = np.unique(first[indices], return_index=True, return_inverse=True)
    copies: AnyArray = places[of]
    return copies


class Left(Candidates):
    """Some of a set of arms: those that are left when others were chosen."""

    def __init__(self, whole: Candidates, indices: AnyArray) -> None:
        self.means = whole.means[indices]
        self.radius = whole.radius if isinstance(whole.radius, float) else whole.radius[indices]
        self.rounds = whole.rounds
        self._whole, self._indices = whole, indices

    @property
    def rewards(self) -> Vector:
        """Those of the whole set."""
        return self._whole.rewards[self._indices]

    def width(self, index: int) -> float:
        """That of the whole set."""
        return self._whole.width(int(self._indices[index]))

    def widths(self) -> Vector:
        """Those of the whole set."""
        return self._whole.widths()[self._indices]

    def most_widths(self) -> Vector:
        """Those of the whole set."""
        return self._whole.most_widths()[self._indices]

    def drawn(self, random: np.random.Generator) -> Vector:
        """A draw for the whole set."""
        return self._whole.drawn(random)[self._indices]

    def along(self, direction: Vector) -> Vector:
        """Those of the whole set."""
        return self._whole.along(direction)[self._indices]

    def covariance(self) -> Matrix:
        """Rows and columns of that of the whole set."""
        some: Matrix = self._whole.covariance()[np.ix_(self._indices, self._indices)]
        return some

    def first_copies(self) -> AnyArray:
        """Among those that are left."""
        return copies_among(self._whole.first_copies(), self._indices)

    def regression_bound(self, confidence: Confidence) -> float:
        """That of the model."""
        return self._whole.regression_bound(confidence)


class ArmCandidates(Candidates):
    """Arms that share one model; ``expected`` makes mean rewards of margins."""

    def __init__(
        self,
        scan: Scan,
        precision: Precision,
        radius: float,
        expected: Callable[[Vector], Vector] | None = None,
    ) -> None:
        self.means = scan.means
        self._expected = expected
        self.radius = radius
        self.rounds = precision.sketch.tally.count
        self._scan = scan
        self._precision = precision
        self._looked_at: tuple[int, Leverage] | None = None
        self._covariance: Matrix | None = None
        self._root: Matrix | None = None  # of X A^-1 X'
        self._copies: AnyArray | None = None
        self._widths: Vector | None = None

    @property
    def rewards(self) -> Vector:
        """By the link of the model, where it has one."""
        return self.means if self._expected is None else self._expected(self.means)

    def width(self, index: int) -> float:
        """One pass over the sketch."""
        norm_sq = self._scan.norm_sq(index)
        leverage = self._precision.leverage_in(self._scan.arms, index, norm_sq, self._scan.products)
        self._looked_at = index, leverage
        return math.sqrt(self._precision.inverse.quadratic(leverage, norm_sq))

    def widths(self) -> Vector:
        """The width of every arm, worked out once."""
        if self._widths is None:
            squares = self._precision.quadratics(self._scan)
            self._widths = super().widths() if squares is None else np.sqrt(squares)
        return self._widths

    def widths_of(self, indices: AnyArray) -> Vector:
        """In one pass, where there is a quicker way than one by one."""
        arms, _, norms_sq, _ = self._scan
        if isinstance(arms, SparseArms):
            return super().widths_of(indices)
        some = Scan(arms.some(indices), self.means[indices], norms_sq[indices])
        squares = self._precision.quadratics(some)
        return super().widths_of(indices) if squares is None else np.sqrt(squares)

    def most_widths(self) -> Vector:
        """|x| / sqrt(rho)."""
        return np.sqrt(self._scan.norms_sq / self._precision.shift)

    def drawn(self, random: np.random.Generator) -> Vector:
        """Where means are x'theta, those of a theta that was drawn; of sparse arms just its scores."""
        if self._root is None:
            gram = self._precision.gram(self._scan)
            if gram is None:
                return self.along(self._precision.half(random))
            values, vectors = np.linalg.eigh(gram)
            self._root = vectors * np.sqrt(np.maximum(values, 0.0))
        off = (self._root @ random.standard_normal(len(self)))[self.first_copies()]  # equal arms draw alike
        scores: Vector = self.means + self.radius * off
        return scores

    def along(self, direction: Vector) -> Vector:
        """Means plus radius·x'direction."""
        moved: Vector = self.means + self.radius * self._scan.arms.times(direction)
        return moved

    def covariance(self) -> Matrix:
        """radius²·D A^-1 D', D the arms less the first: what they share would cancel, digits and all."""
        if self._covariance is None:
            arms, first = self._scan.arms, _dense(self._scan.arms, 0)
            products = self._precision.products(arms, first)
            if products is None:
                products = np.empty((len(self), len(self)))
                for i, row in enumerate(products):
                    row[:] = arms.times(self._precision.apply(_dense(arms, i) - first))
            products -= products[:, :1].copy()
            with np.errstate(over="ignore", invalid="ignore"):
                self._covariance = self.radius * self.radius * (products + products.T) / 2.0
            if not np.isfinite(self._covariance).all():
                raise InputError("draws of the arms' scores overflow; use a smaller scale")
        return self._covariance

    def first_copies(self) -> AnyArray:
        """By their bytes, -0 and 0 being one."""
        if self._copies is None:
            found: dict[bytes, int] = {}
            rows = _bytes_of(self._scan.arms)
            self._copies = np.array([found.setdefault(row, i) for i, row in enumerate(rows)])
        return self._copies

    def regression_bound(self, confidence: Confidence) -> float:
        """With the realised radius, certificate and determinant."""
        sketch = self._precision.sketch
        return regression_bound(
            self.radius,
            dim=sketch.dim,
            ridge=self._precision.ridge,
            alpha=sketch.alpha,
            error_bound=sketch.error_bound,
            log_det=self._precision.log_det,
            mass=sketch.mass,
            arm_norm=confidence.arm_norm,
        )

    def keep(self) -> None:
        """For the update that may follow."""
        if self._looked_at is not None:
            index, leverage = self._looked_at
            self._precision.last_choice = own_copy(self._scan.arms.vector(index)), leverage


def _bytes_of(arms: Arms) -> Iterator[bytes]:
    """Those of every arm: equal for equal arms, and no others."""
    if isinstance(arms, OfferedArms):
        arms = arms.some(slice(None))
    if isinstance(arms, DenseArms):
        wide = arms.array.astype(np.float64, copy=False) + 0.0
        together, length = wide.tobytes(), wide.itemsize * wide.shape[1]
        yield from (together[at : at + length] for at in range(0, len(together), length))
        return
    for index in range(len(arms)):
        indices, values = arms.vector(index)
        there = values != 0.0
        yield bytes(indices[there].astype(np.int64).tobytes() + values[there].tobytes())


def _dense(arms: Arms, index: int) -> Vector:
    x: Vector = arms.row(index, np.dtype(np.float64))[0]
    return x
