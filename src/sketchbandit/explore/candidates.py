"""A set of arms as an exploration rule sees it, and the largest of many scores."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from sketchbandit.arms import Arms, Scan, first_copies, own_copy
from sketchbandit.arrays import AnyArray, Matrix, Vector
from sketchbandit.errors import InputError
from sketchbandit.kernels import CLOSE
from sketchbandit.linalg import symmetric_root
from sketchbandit.precision import Leverage, Precision
from sketchbandit.theory import Confidence, regression_bound

_NEAR = 1e-7  # of the largest variance: a covariance matrix has lost half the digits of smaller ones


class Candidates(ABC):
    """The arms that a rule chooses from: their means, and methods for everything that costs more.

    Attributes
    ----------
    means : array of shape (K,)
        The margin x'theta of every arm, less the baseline. For linear rewards this is the mean reward less
        the baseline. Otherwise it is in the same order as the mean rewards. Widths are in its unit.
    baseline : float
        What margins are measured from; 0 for a policy without a baseline.
    rewards : array of shape (K,)
        The mean reward of every arm.
    radius : float
        beta, the factor on widths. With a model per action, an array of shape (K,).
    rounds : int
        The number of rewards learned from.

    Examples
    --------
    >>> import sketchbandit as sb
    >>> class Peek(sb.Greedy):
    ...     def choose(self, candidates, count, random):
    ...         print(candidates.means, candidates.widths())
    ...         return super().choose(candidates, count, random)
    >>> sb.oful(2, explore=Peek()).select([[1.0, 0.0], [0.0, 2.0]])
    [0. 0.] [1. 2.]
    0

    """

    means: Vector
    baseline: float = 0.0
    radius: Any
    rounds: int

    def __len__(self) -> int:
        return len(self.means)

    @property
    def margins(self) -> Vector:
        """The baseline plus x'theta of every arm."""
        return self.means + self.baseline if self.baseline else self.means

    @property
    def rewards(self) -> Vector:
        """The mean reward of every arm."""
        return self.margins

    @property
    def relative_rewards(self) -> Vector:
        """The mean reward of every arm up to a constant, so that a baseline costs differences no digits."""
        return self.means

    @abstractmethod
    def width(self, index: int) -> float:
        """The width sqrt(x'A^-1 x) of one arm. It takes a pass over the sketch, so ask for few."""

    @abstractmethod
    def most_widths(self) -> Vector:
        """Upper bounds on all widths, |x| / sqrt(rho). They hold to the last bit, and cost nothing."""

    @abstractmethod
    def drawn(self, random: np.random.Generator) -> Vector:
        """Means plus x'v, with v drawn from N(0, radius²·A^-1). All arms of one model share the draw."""

    @abstractmethod
    def along(self, direction: Vector) -> Vector:
        """Means plus radius·x'direction."""

    @abstractmethod
    def covariance(self) -> Matrix:
        """The covariance (K, K) of ``drawn`` minus the score of the first arm. Comparisons need no more."""

    def factor(self) -> Matrix:
        """F with F F' = ``covariance``, (K, m): draws are means + F z. Copies have equal rows."""
        return symmetric_root(self.covariance())

    @abstractmethod
    def first_copies(self) -> AnyArray:
        """For every arm, the first arm that draws cannot tell apart from it, but for rounding, (K,)."""

    def first_copies_of(self, indices: AnyArray) -> AnyArray:
        """The same among some arms, whose ``indices`` ascend, as places among these."""
        return copies_among(self.first_copies(), indices)

    @abstractmethod
    def regression_bound(self, confidence: Confidence) -> float:
        """A bound on the sum of squared errors of all predictions so far (``theory.regression_bound``)."""

    def keep(self) -> None:
        """Keep what the last width took to compute, because that arm will probably be chosen."""
        return

    def widths(self) -> Vector:
        """The width of every arm."""
        return np.array([self.width(index) for index in range(len(self))])

    def widths_of(self, indices: AnyArray) -> Vector:
        """The widths of some arms. Each is equal to ``width``, to the bit."""
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

    def bounds(self) -> Vector:
        """The upper confidence bound, margin + radius·width, of every arm.

        The baseline is added last, so that the order is that of the choice.
        """
        bounds: Vector = self.means + self.bonuses() + self.baseline
        return bounds

    def most_bonuses(self) -> Vector:
        """Upper bounds on all bonuses. They cost nothing."""
        bonuses: Vector = self.radius * self.most_widths()
        return bonuses


def copies_among(first: AnyArray, indices: AnyArray) -> AnyArray:
    """``first_copies`` of some of the arms, computed from those of all."""
    _, places, of = np.unique(first[indices], return_index=True, return_inverse=True)
    copies: AnyArray = places[of]
    return copies


class Left(Candidates):
    """The arms of a set that are left after others were chosen."""

    def __init__(self, whole: Candidates, indices: AnyArray) -> None:
        self.means = whole.means[indices]
        self.baseline = whole.baseline
        self.radius = whole.radius if isinstance(whole.radius, float) else whole.radius[indices]
        self.rounds = whole.rounds
        self._whole, self._indices = whole, indices

    @property
    def rewards(self) -> Vector:
        """Those of the whole set."""
        return self._whole.rewards[self._indices]

    @property
    def relative_rewards(self) -> Vector:
        """Those of the arms left."""
        return self._whole.relative_rewards[self._indices]

    def width(self, index: int) -> float:
        """The width in the whole set."""
        return self._whole.width(int(self._indices[index]))

    def widths(self) -> Vector:
        """Those of the whole set."""
        return self._whole.widths()[self._indices]

    def most_widths(self) -> Vector:
        """Those of the whole set."""
        return self._whole.most_widths()[self._indices]

    def drawn(self, random: np.random.Generator) -> Vector:
        """One draw for the whole set."""
        return self._whole.drawn(random)[self._indices]

    def along(self, direction: Vector) -> Vector:
        """Those of the whole set."""
        return self._whole.along(direction)[self._indices]

    def covariance(self) -> Matrix:
        """The rows and columns of the arms left."""
        some: Matrix = self._whole.covariance()[np.ix_(self._indices, self._indices)]
        return some

    def factor(self) -> Matrix:
        """The rows of the arms left."""
        return self._whole.factor()[self._indices]

    def first_copies(self) -> AnyArray:
        """The first copies among the arms left."""
        return self._whole.first_copies_of(self._indices)

    def first_copies_of(self, indices: AnyArray) -> AnyArray:
        """Those of the whole set."""
        return self._whole.first_copies_of(self._indices[indices])

    def regression_bound(self, confidence: Confidence) -> float:
        """The bound of the model."""
        return self._whole.regression_bound(confidence)


class ArmCandidates(Candidates):
    """Arms that share one model. ``expected`` turns margins into mean rewards."""

    def __init__(
        self,
        scan: Scan,
        precision: Precision,
        radius: float,
        *,
        expected: Callable[[Vector], Vector] | None = None,
        baseline: float = 0.0,
        direction: Vector | None = None,
    ) -> None:
        self.means, self.baseline = scan.means, baseline
        self._direction = direction  # the draw that a batch of requests shares
        self._expected = expected
        self.radius = radius
        self.rounds = precision.sketch.row_stats.count
        self._scan = scan
        self._precision = precision
        self._looked_at: tuple[int, Leverage] | None = None
        self._covariance: Matrix | None = None
        self._factor: Matrix | None = None
        self._root: Matrix | None = None  # a square root of X A^-1 X'
        self._copies: AnyArray | None = None
        self._widths: Vector | None = None

    @property
    def rewards(self) -> Vector:
        """The mean rewards, through the link of the model if it has one."""
        return self.margins if self._expected is None else self._expected(self.margins)

    @property
    def relative_rewards(self) -> Vector:
        """The mean rewards, less the baseline if there is no link."""
        return self.means if self._expected is None else self.rewards

    def width(self, index: int) -> float:
        """The width of one arm: one pass over the sketch."""
        norm_sq = self._scan.norm_sq(index)
        leverage = self._precision.leverage_in(self._scan.arms, index, norm_sq, self._scan.products)
        self._looked_at = index, leverage
        return math.sqrt(self._precision.inverse.quadratic(leverage, norm_sq))

    def widths(self) -> Vector:
        """The width of every arm, computed once."""
        if self._widths is None:
            squares = self._precision.quadratics(self._scan)
            self._widths = super().widths() if squares is None else np.sqrt(squares)
        return self._widths

    def widths_of(self, indices: AnyArray) -> Vector:
        """The widths of some arms, in one pass if that is possible."""
        arms, _, norms_sq, _ = self._scan
        if arms.matrix is not None:
            return super().widths_of(indices)
        some = Scan(arms.some(indices), self.means[indices], norms_sq[indices])
        squares = self._precision.quadratics(some)
        return super().widths_of(indices) if squares is None else np.sqrt(squares)

    def most_widths(self) -> Vector:
        """Upper bounds on the widths: |x| / sqrt(rho)."""
        return np.sqrt(self._scan.norms_sq / self._precision.shift)

    def drawn(self, random: np.random.Generator) -> Vector:
        """The scores x'theta~ of one drawn theta~. For few sparse arms only the scores are drawn."""
        if self._direction is not None:
            return self.along(self._direction)
        if self._root is None:
            gram = self._precision.gram(self._scan)
            if gram is None or (nearest(gram, self.first_copies()) >= 0).any():
                return self.along(self._precision.sample_direction(random))
            self._root = symmetric_root(gram)
        off = (self._root @ random.standard_normal(len(self)))[self.first_copies()]
        scores: Vector = self.means + self.radius * off
        return scores

    def along(self, direction: Vector) -> Vector:
        """Means plus radius·x'direction."""
        moved: Vector = self.means + self.radius * self._scan.arms.times(direction)
        return moved

    def covariance(self) -> Matrix:
        """radius²·D A^-1 D', where D is the arms minus the first arm: their common part would cost digits."""
        if self._covariance is None:
            self._covariance = self._covariance_from(np.zeros(len(self), dtype=np.intp))
        return self._covariance

    def _covariance_from(self, origins: AnyArray) -> Matrix:
        """radius²·D A^-1 D', where D is every arm minus its origin."""
        arms = self._scan.arms
        products = self._precision.products(arms, origins)
        if products is None:
            products = np.empty((len(self), len(self)))
            for i, row in enumerate(products):
                row[:] = arms.times(self._precision.apply(_dense(arms, i) - _dense(arms, int(origins[i]))))
        products -= products[:, origins]
        with np.errstate(over="ignore", invalid="ignore"):
            covariance: Matrix = self.radius * self.radius * (products + products.T) / 2.0
        if not np.isfinite(covariance).all():
            raise InputError("draws of the scores overflow; use a smaller scale, or rescale the arms")
        return covariance

    def factor(self) -> Matrix:
        """A root of the covariance. For arms near others, one of their differences from these.

        In a root of the whole they would be known to 1e-8 of the largest score only.
        """
        if self._factor is None:
            first, covariance = self.first_copies(), self.covariance()
            alone = np.flatnonzero(first == np.arange(len(first)))
            origins = nearest(covariance, first)
            if (origins >= 0).any():
                covariance = self._covariance_from(np.maximum(origins, 0))
            some = covariance[np.ix_(alone, alone)]
            sizes = np.sqrt(np.maximum(some.diagonal(), 0.0))
            sizes[sizes == 0.0] = 1.0
            self._factor = np.zeros((len(self), len(alone)))
            if (origins >= 0).any():
                self._factor[alone] = sizes[:, np.newaxis] * symmetric_root(some / np.outer(sizes, sizes))
                for index in np.flatnonzero(origins > 0):
                    self._factor[index] += self._factor[origins[index]]
            else:
                self._factor[alone] = symmetric_root(some)
            self._factor = self._factor[first]
        return self._factor

    def first_copies(self) -> AnyArray:
        """Arms that are equal in every feature but for rounding."""
        if self._copies is None:
            self._copies = first_copies(self._scan.arms)
        return self._copies

    def first_copies_of(self, indices: AnyArray) -> AnyArray:
        """The same, without a look at the other arms."""
        if self._copies is None:
            return first_copies(self._scan.arms.some(indices))
        return super().first_copies_of(indices)

    def regression_bound(self, confidence: Confidence) -> float:
        """The bound with the realised radius, error bound and determinant."""
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
        """Keep the leverage of the last arm looked at, for its update."""
        if self._looked_at is not None:
            index, leverage = self._looked_at
            self._precision.last_choice = own_copy(self._scan.arms.vector(index)), leverage


def nearest(covariance: Matrix, first: AnyArray) -> AnyArray:
    """The nearest of the arms before each, if its score differs by little; -1 if not, and for copies."""
    variances = covariance.diagonal()
    apart = variances[:, np.newaxis] + variances - 2.0 * covariance
    is_copy = first != np.arange(len(first))
    apart[np.triu_indices(len(first))] = np.inf
    apart[is_copy] = np.inf
    apart[:, is_copy] = np.inf
    found = apart.argmin(axis=1)
    is_near = apart[np.arange(len(first)), found] < _NEAR * variances.max(initial=0.0)
    origins: AnyArray = np.where(is_near, found, -1)
    return origins


def _dense(arms: Arms, index: int) -> Vector:
    x: Vector = arms.row(index, np.dtype(np.float64))[0]
    return x


Numbers = TypeVar("Numbers", float, Vector)


def upper_bound(means: Numbers, radius: float, widths: Numbers) -> Numbers:
    """mean + radius·width (Alg. 2). ``kernels.search`` has the compiled version."""
    return means + radius * widths


def largest(values: Vector, count: int) -> list[int]:
    """The indices of the largest values, largest first. Ties go to the lowest index."""
    if count == 1:
        return [int(values.argmax())]
    if count < len(values):
        least = np.partition(values, -count)[-count]
        above = np.flatnonzero(values >= least)
    else:
        above = np.arange(len(values))
    indices: list[int] = above[np.argsort(-values[above], kind="stable")][:count].tolist()
    return indices


def close_to_best(scores: Vector, best: int) -> AnyArray:
    """The arms up to the best one that may be copies of it. The loops only say whether there are any."""
    return np.flatnonzero(scores[: best + 1] >= scores[best] - CLOSE * np.abs(scores).max())
