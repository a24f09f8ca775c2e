"""One-pass reward models: every reward moves theta once, and is then discarded."""

import math
from abc import abstractmethod
from typing import NamedTuple, Self

import numpy as np

from sketchbandit.arrays import Arrays, Matrix, Scalars, Vector
from sketchbandit.errors import MergeError
from sketchbandit.estimate.base import AffineTheta, Estimate
from sketchbandit.linalg import AnyVector, dot
from sketchbandit.precision import Leverage, Precision, Step

_MOST_THETA = 1e300  # limit for the sum of |reward|·|arm| / ridge
_MOST_MARGIN = 1e200  # keeps differences and means of margins finite


class Move(NamedTuple):
    """How far theta goes along A^-1 x, and the weight of x in the sketch."""

    along: float
    weight: float
    cost: float = 0.0
    """The information that the round adds (``theory.mix_cost``), which widens the radius."""
    slope: float = 0.0
    """By how much ``along`` would fall if the margin before were larger by one."""


class OnePass(Estimate):
    """Each reward makes one step of online mirror descent, in the norm of A = (ridge + alpha) I + S'S.

    S sketches the rows sqrt(weight)·x. theta moves along A^-1 x, where A does not include the arm yet. This
    takes two passes over S, as many as linear rewards. Subclasses decide on the step length and the weight.
    """

    weighs = True
    is_normalised = True

    def bind(self, precision: Precision) -> None:
        """Start at theta = 0."""
        super().bind(precision)
        dim = precision.sketch.dim
        self._thetas: Matrix = np.zeros((2 if self.reward_scale.baseline else 1, dim))
        """theta, and below it its image if there is a baseline."""
        self._kept_level = self.level
        self._is_plain = type(self).scan is Estimate.scan  # False in subclasses with other margins
        self._margin: float | None = None  # of the arm that is learned from next
        self._next: tuple[Move, Matrix | None] | None = None  # the step decided on, and what it leads to
        self.most_reward_mass = _MOST_THETA * min(1.0, precision.ridge)
        self.count = 0.0
        """The number of rewards learned from, as far as they are not forgotten."""

    # -- what it tells ------------------------------------------------------------------------------

    @property
    def takes_baseline(self) -> bool:
        """Unless a subclass has margins other than x'theta."""
        return type(self).scan is Estimate.scan

    @property
    def theta(self) -> Vector:
        """The parameter vector. Do not write to it."""
        theta: Vector = self._now[0]
        return theta

    @property
    def _now(self) -> Matrix:
        """theta for the baseline of now, and its image. Rewards of other actions move it too."""
        rise = self.level - self._kept_level
        if not rise:
            return self._thetas
        theta, image = self._thetas
        moved: Matrix = np.stack([theta - rise * image, image])
        return moved

    @property
    def linear_theta(self) -> Vector | None:
        """theta, if margins are x'theta; else None."""
        self.precision.sync()
        return self.theta if self._is_plain else None

    @property
    def affine_theta(self) -> AffineTheta | None:
        """theta and its image, if margins are x'theta; else None."""
        self.precision.sync()
        if not self._is_plain:
            return None
        return AffineTheta(
            self._thetas[0], self._thetas[1] if self.reward_scale.baseline else None, self._kept_level
        )

    @property
    def nbytes(self) -> int:
        """Bytes of theta and its image."""
        return self._thetas.nbytes

    # -- learning -----------------------------------------------------------------------------------

    @abstractmethod
    def decide(self, margin: float, quadratic: float, norm_sq: float, reward: float) -> Move:
        """Decide on the step for a reward, given the margin, x'A^-1 x and |x|². Nothing changes yet."""

    def predict(self, x: AnyVector, leverage: Leverage) -> float:
        """The mean reward of one arm. Its margin is kept for ``weight``, which is called next."""
        del leverage
        if not self._is_plain:
            return math.nan
        self._follow_level()
        self._margin = self._margin_of(x)
        return self.mean_at(self._margin)

    def mean_at(self, margin: float) -> float:
        """The mean reward at a margin that includes the level."""
        return self.reward_scale.origin + margin if self.reward_scale.baseline else margin

    def target_of(self, reward: float) -> float:
        """The reward as ``decide`` wants it: less the origin, unless margins have a link."""
        return reward - self.reward_scale.origin if self.reward_scale.baseline else reward

    def _follow_level(self) -> None:
        """Move theta to the baseline of now."""
        self._thetas, self._kept_level = self._now, self.level

    def _margin_of(self, x: AnyVector) -> float:
        """The level plus x'theta, limited to what can be computed with; 0 if it is NaN."""
        with np.errstate(over="ignore", invalid="ignore"):
            margin = self.level + dot(self._thetas[0], x)
        if abs(margin) < _MOST_MARGIN:
            return margin
        return 0.0 if math.isnan(margin) else math.copysign(_MOST_MARGIN, margin)

    def weight(self, x: AnyVector, norm_sq: float, reward: float, leverage: Leverage) -> float:
        """Decide on the step, before A takes in the arm. ``learn`` makes the step."""
        precision = self.precision
        self._follow_level()
        margin, self._margin = self._margin_of(x) if self._margin is None else self._margin, None
        quadratic = precision.inverse.quadratic(leverage, norm_sq)
        move = self.decide(margin, quadratic, norm_sq, self.target_of(reward))
        along = np.array([move.along, 0.0][: len(self._thetas)])
        if self.reward_scale.baseline:
            with np.errstate(over="ignore", invalid="ignore"):
                along[1] = move.slope * (1.0 - dot(self._thetas[1], x))
        moved = precision.moved(self._thetas, along, x, leverage) if along.any() else None
        self._next = move, moved  # moved is None if the arm is too long for the ridge
        return move.weight

    def learn(self, x: AnyVector, reward: float, step: Step | None) -> None:
        """Make the step that was decided on, and follow the baseline, which has counted the reward."""
        del x, reward, step
        assert self._next is not None  # noqa: S101  (for the type checker)
        (move, moved), self._next = self._next, None
        self.count += 1.0
        self._spend(move)
        if moved is not None:
            self._thetas = moved
        self._follow_level()

    def _spend(self, move: Move) -> None:
        """Account for the cost of a step."""

    def forget(self, factor: float) -> None:
        """Reduce the count. theta stays; steps become longer, because A is smaller."""
        self.count *= factor

    def check_mergeable(self) -> None:
        """Raise: theta depends on the order of all rewards."""
        raise MergeError(
            f"{type(self).__name__} learns in one pass: theta depends on the order of the rewards, so two "
            "models cannot be merged; give all rewards to one policy, or use Linear, which merges"
        )

    # -- files --------------------------------------------------------------------------------------

    @abstractmethod
    def settings(self) -> Scalars:
        """The keyword arguments of the constructor, as JSON values."""

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in self.settings().items() if value is not None)
        return f"{type(self).__name__}({shown})"

    def dump(self) -> tuple[Scalars, Arrays]:
        """JSON values and arrays from which ``made_for`` and ``restore`` make the same model, to the bit."""
        names = ("theta", "image")[: len(self._thetas)]
        own = {"settings": self.settings(), "count": self.count, "level": self._kept_level}
        return own, dict(zip(names, self._thetas, strict=True))

    @classmethod
    def made_for(cls, scalars: Scalars) -> Self:
        """A fresh instance with the same settings."""
        return cls(**scalars["settings"])

    def restore(self, scalars: Scalars, arrays: Arrays) -> None:
        """Restore what ``dump`` returned."""
        names = ("theta", "image")[: len(self._thetas)]
        thetas = np.stack([arrays[name] for name in names])
        if thetas.shape != self._thetas.shape:
            raise ValueError(f"theta has shape {thetas.shape[1:]}")
        self._thetas, self.count = thetas, float(scalars["count"])
        self._kept_level = float(scalars.get("level", 0.0))  # not in files of 0.14
