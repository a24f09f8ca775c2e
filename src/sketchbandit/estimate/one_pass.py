"""One-pass reward models: every reward moves theta once, and is then discarded."""

import math
from abc import abstractmethod
from typing import Any, NamedTuple, Self

import numpy as np

from sketchbandit.arrays import Arrays, Scalars, Vector
from sketchbandit.errors import MergeError
from sketchbandit.estimate.base import Estimate
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
        self._theta: Vector = np.zeros(precision.sketch.dim)
        self._is_plain = type(self).scan is Estimate.scan  # False in subclasses with other margins
        self._margin: float | None = None  # of the arm that is learned from next
        self._next: tuple[Move, Vector | None] | None = None  # the step decided on, and the theta after it
        self.most_reward_mass = _MOST_THETA * min(1.0, precision.ridge)
        self.count = 0.0
        """The number of rewards learned from, as far as they are not forgotten."""

    # -- what it tells ------------------------------------------------------------------------------

    @property
    def theta(self) -> Vector:
        """The parameter vector. Do not write to it."""
        return self._theta

    @property
    def linear_theta(self) -> Vector | None:
        """theta, if margins are x'theta; else None."""
        self.precision.sync()
        return self._theta if self._is_plain else None

    @property
    def nbytes(self) -> int:
        """Bytes of theta."""
        return self._theta.nbytes

    # -- learning -----------------------------------------------------------------------------------

    @abstractmethod
    def decide(self, margin: float, quadratic: float, norm_sq: float, reward: float) -> Move:
        """Decide on the step for a reward, given x'theta, x'A^-1 x and |x|². Nothing changes yet."""

    def predict(self, x: AnyVector, leverage: Leverage) -> float:
        """The mean reward of one arm. Its margin is kept for ``weight``, which is called next."""
        del leverage
        if not self._is_plain:
            return math.nan
        self._margin = self._margin_of(x)
        return self.mean_at(self._margin)

    def mean_at(self, margin: float) -> float:
        """The mean reward at a margin."""
        return margin

    def _margin_of(self, x: AnyVector) -> float:
        """x'theta, limited to what can be computed with; 0 if it is NaN."""
        with np.errstate(over="ignore", invalid="ignore"):
            margin = dot(self._theta, x)
        if abs(margin) < _MOST_MARGIN:
            return margin
        return 0.0 if math.isnan(margin) else math.copysign(_MOST_MARGIN, margin)

    def weight(self, x: AnyVector, norm_sq: float, reward: float, leverage: Leverage) -> float:
        """Decide on the step, before A takes in the arm. ``learn`` makes the step."""
        precision = self.precision
        margin, self._margin = self._margin_of(x) if self._margin is None else self._margin, None
        move = self.decide(margin, precision.inverse.quadratic(leverage, norm_sq), norm_sq, reward)
        moved = precision.moved(self._theta, move.along, x, leverage) if move.along else None
        self._next = move, moved  # moved is None if the arm is too long for the ridge
        return move.weight

    def learn(self, x: AnyVector, reward: float, step: Step | None) -> None:
        """Make the step that was decided on."""
        del x, reward, step
        assert self._next is not None  # noqa: S101  (for the type checker)
        (move, moved), self._next = self._next, None
        self.count += 1.0
        self._spend(move)
        if moved is not None:
            self._theta = moved

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
        return {"settings": self.settings(), "count": self.count}, {"theta": self._theta}

    @classmethod
    def made_for(cls, scalars: Scalars) -> Self:
        """A fresh instance with the same settings."""
        settings: dict[str, Any] = dict(scalars["settings"])
        return cls(**settings)

    def restore(self, scalars: Scalars, arrays: Arrays) -> None:
        """Restore what ``dump`` returned."""
        theta = arrays["theta"]
        if theta.shape != self._theta.shape:
            raise ValueError(f"theta has shape {theta.shape}")
        self._theta, self.count = theta, float(scalars["count"])
