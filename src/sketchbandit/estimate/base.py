"""What a policy believes of the rewards: the contract of an estimate."""

import math
from abc import ABC, abstractmethod
from typing import Any, ClassVar

from sketchbandit.arms import Arms, Scan
from sketchbandit.arrays import Arrays, Matrix, Scalars, Vector
from sketchbandit.errors import InputError, MergeError
from sketchbandit.kinds import Kinds
from sketchbandit.linalg import AnyVector, as_dense
from sketchbandit.precision import Precision, Step


class Estimate(Kinds, ABC):
    """Learns from rewards, and tells the mean reward of an arm.

    A policy makes a copy of the estimate that it is given, and binds it to its precision. From then on it
    calls ``learn`` after the precision has taken in an arm. Subclasses set ``kind``, a name of their own, if
    their policies are to be saved.
    """

    _kinds: ClassVar[dict[str, type[Any]]] = {}
    _noun = "estimate"

    precision: Precision
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
        """The mean reward of every arm, x'theta unless a subclass says otherwise."""
        means, norms_sq = arms.scan(self.theta)
        return Scan(arms, means, norms_sq)

    @property
    def linear_theta(self) -> Vector | None:
        """theta, if it is at hand and means are x'theta: for loops that read the arms themselves."""
        return None

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

    def prepare(self, x: AnyVector) -> None:
        """The arm x will be taken in: the last moment to look at the precision as it is."""
        del x
        self.precision.sync()

    @abstractmethod
    def learn(self, x: AnyVector, reward: float, step: Step | None) -> None:
        """A reward of the arm x, which the precision has taken in by that step.

        No step: the precision was derived anew.
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

    @abstractmethod
    def dump(self) -> tuple[Scalars, Arrays]:
        """JSON values and arrays that ``restore`` turns into the same estimate."""

    @abstractmethod
    def restore(self, scalars: Scalars, arrays: Arrays) -> None:
        """Set what ``dump`` told, on a fresh instance that is bound already."""
