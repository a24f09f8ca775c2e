"""What a policy believes of the rewards: the contract of an estimate."""

import math
from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self

import numpy as np

from sketchbandit.arms import Arms, Scan
from sketchbandit.arrays import Arrays, Matrix, Scalars, Vector
from sketchbandit.errors import InputError, MergeError
from sketchbandit.kinds import Kinds
from sketchbandit.linalg import AnyVector, as_dense, dot
from sketchbandit.precision import Leverage, Precision, Step
from sketchbandit.theory import Confidence


class Estimate(Kinds, ABC):
    """Learns from rewards, and tells the mean reward of an arm.

    A policy makes a copy of the estimate that it is given, and binds it to its precision. From then on it
    calls ``learn`` after the precision has taken in an arm. Subclasses set ``kind``, a name of their own, if
    their policies are to be saved.

    A model may be more than x'theta. ``scan`` tells margins, in whose unit widths count, and ``expected`` the
    mean rewards that follow from them, a function that grows. Where ``weighs`` is set, an arm goes into the
    sketch as sqrt(weight)·x, so that A = (ridge + alpha) I + the sum of weight·x x' as the sketch has it.
    """

    _kinds: ClassVar[dict[str, type[Any]]] = {}
    _noun = "estimate"

    weighs: ClassVar[bool] = False
    """Whether arms go into the sketch by their ``weight``, one by one; else as they are."""
    has_link: ClassVar[bool] = False
    """Whether mean rewards are something else than margins: whether there is a method ``expected``."""
    is_normalised: ClassVar[bool] = False
    """Whether A is in units of the noise: then a radius of one is a standard deviation."""

    precision: Precision
    most_weight: float = 1.0
    """No weight is larger."""
    reward_mass: float = 0.0
    """The sum of |reward|·|arm|."""
    most_reward_mass: float = math.inf
    """What that may become."""

    def bind(self, precision: Precision) -> None:
        """Stand on this precision, from which nothing was learned yet."""
        self.precision = precision

    @property
    @abstractmethod
    def theta(self) -> Vector:
        """The parameter; not to be written to."""

    def scan(self, arms: Arms) -> Scan:
        """The margin of every arm, x'theta unless a subclass says otherwise."""
        means, norms_sq = arms.scan(self.theta)
        return Scan(arms, means, norms_sq)

    @property
    def linear_theta(self) -> Vector | None:
        """theta, if it is at hand and margins are x'theta: for loops that read the arms themselves."""
        return None

    def expected(self, margins: Vector) -> Vector:
        """The mean rewards of arms of these margins: the same, unless ``has_link``."""
        return margins

    def radius(self, confidence: Confidence) -> float:
        """The theorem's radius, from what actually happened: of |theta - theta*| in the norm of A."""
        precision, sketch = self.precision, self.precision.sketch
        return confidence.radius(
            dim=sketch.dim,
            ridge=precision.ridge,
            alpha=sketch.alpha + precision.jitter,
            error_bound=sketch.error_bound,
            log_det=precision.log_det,
            mass=sketch.mass,
            rounding=sketch.rounding,
        )

    def check_confidence(self, confidence: Confidence) -> None:
        """Refuse a Confidence for which there is no theorem, by an InputError that names the remedy."""
        del confidence

    def check(self, added: float) -> None:
        """Refuse rewards that add so much to the reward mass that something could overflow."""
        total = self.reward_mass + added
        if not total < self.most_reward_mass:
            raise InputError(
                f"rewards times arms add up to {total:g}, too much for a ridge of {self.precision.ridge:g}: "
                "theta could overflow; rescale the rewards or use a larger ridge"
            )

    def check_reward(self, reward: float) -> None:
        """Refuse a reward that the model has no place for, by an InputError: nothing has changed yet."""
        del reward

    def predict(self, x: AnyVector, leverage: Leverage) -> float:
        """The mean reward expected of one arm, whose leverage is known, for the watch over predictions.

        NaN: it cannot be told quickly, as where a subclass has other margins than x'theta.
        """
        del leverage
        if type(self).scan is not Estimate.scan:
            return math.nan
        with np.errstate(over="ignore", invalid="ignore"):
            margin = dot(self.theta, x)
            return float(self.expected(np.array([margin]))[0]) if self.has_link else margin

    def prepare(self, x: AnyVector) -> None:
        """The arm x will be taken in: the last moment to look at the precision as it is."""
        del x
        self.precision.sync()

    def weight(self, x: AnyVector, norm_sq: float, reward: float, leverage: Leverage) -> float:
        """The weight with which the arm x will be taken in, where ``weighs``: from 0 to ``most_weight``.

        The precision is as it was before. ``learn`` follows, when it has the arm.
        """
        del x, norm_sq, reward, leverage
        return 1.0

    @abstractmethod
    def learn(self, x: AnyVector, reward: float, step: Step | None) -> None:
        """A reward of the arm x, which the precision has taken in by that step.

        No step: the precision was derived anew, or the arm has gone in by its ``weight``.
        """

    def gain(self, x: AnyVector, step: Step | None) -> Vector:
        """A^-1 x, now that A has x in it: what theta moves along, times the error of the prediction."""
        if step is None:
            return self.precision.apply(as_dense(x, self.precision.sketch.dim))
        return step.image() / (1.0 + step.quadratic)

    def learn_many(self, rows: Matrix, rewards: Vector) -> None:
        """Many rewards, after the precision was derived anew from all the arms."""
        for row, reward in zip(rows, rewards.tolist(), strict=True):
            if row.any():  # no direction to learn about
                self.learn(row, reward, None)

    def forget(self, factor: float) -> None:
        """All that was learned counts by this factor; the precision was derived anew before."""
        raise NotImplementedError(f"{type(self).__name__} cannot forget")

    def check_mergeable(self) -> None:
        """Refuse to merge, before anything changes."""
        if type(self).add is Estimate.add:
            raise MergeError(f"{type(self).__name__} has no method add, so its policies cannot merge")

    def add(self, other: Any) -> None:
        """Take in what another of the same class has learned; the precision was derived anew before."""
        raise NotImplementedError(f"{type(self).__name__} cannot add {type(other).__name__}")

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Bytes of every array held."""

    def settings(self) -> Scalars:
        """The constructor's keyword arguments, as JSON values: none, unless a subclass tells."""
        return {}

    @abstractmethod
    def dump(self) -> tuple[Scalars, Arrays]:
        """JSON values and arrays that ``restore`` turns into the same estimate."""

    @classmethod
    def made_for(cls, scalars: Scalars) -> Self:
        """A fresh instance with the settings of the one that ``dump`` told these JSON values of."""
        del scalars
        return cls()

    @abstractmethod
    def restore(self, scalars: Scalars, arrays: Arrays) -> None:
        """Set what ``dump`` told, on a fresh instance that is bound already."""
