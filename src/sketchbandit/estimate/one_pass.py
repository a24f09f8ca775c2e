"""Estimates whose theta is a state of its own: each reward moves it once, and is forgotten."""

import math
from abc import abstractmethod
from typing import Any, NamedTuple, Self

import numpy as np

from sketchbandit.arrays import Arrays, Scalars, Vector
from sketchbandit.errors import MergeError
from sketchbandit.estimate.base import Estimate
from sketchbandit.linalg import AnyVector, dot
from sketchbandit.precision import Leverage, Precision, Step

_MOST_THETA = 1e300  # the sum of |reward|·|arm|, over the ridge
_MOST_MARGIN = 1e200  # so that differences of margins, and means of them, are finite


class Move(NamedTuple):
    """How far theta goes along A^-1 x, and the weight of x in the sketch."""

    along: float
    weight: float
    cost: float = 0.0
    """What the round adds to the radius."""


class OnePass(Estimate):
    """One step of online mirror descent a reward, in the norm of A = (ridge + alpha) I + S'S.

    S sketches the rows sqrt(weight)·x. theta moves along A^-1 x, A as it was before the arm: two passes over
    S, the same as for linear rewards. Subclasses say how far, and with which weight.
    """

    weighs = True
    is_normalised = True

    def bind(self, precision: Precision) -> None:
        """Start at theta = 0."""
        super().bind(precision)
        self._theta: Vector = np.zeros(precision.sketch.dim)
        self._is_plain = type(self).scan is Estimate.scan  # no subclass has other margins
        self._margin: float | None = None  # of the arm that is about to be learned from
        self._next: tuple[Move, Vector | None] | None = None  # decided, and theta then
        self.most_reward_mass = _MOST_THETA * min(1.0, precision.ridge)
        self.count = 0.0
        """Rewards learned from, as far as they are not forgotten."""

    # -- what it tells ------------------------------------------------------------------------------

    @property
    def theta(self) -> Vector:
        """The parameter; not to be written to."""
        return self._theta

    @property
    def linear_theta(self) -> Vector | None:
        """Theta, if margins are x'theta."""
        self.precision.sync()
        return self._theta if self._is_plain else None

    @property
    def nbytes(self) -> int:
        """Bytes of theta."""
        return self._theta.nbytes

    # -- learning -----------------------------------------------------------------------------------

    @abstractmethod
    def decide(self, margin: float, quadratic: float, norm_sq: float, reward: float) -> Move:
        """What a reward of an arm does: its x'theta, x'A^-1 x and |x|² are known. Nothing changes yet."""

    def predict(self, x: AnyVector, leverage: Leverage) -> float:
        """The mean reward expected of one arm; its margin is kept for ``weight``, which follows."""
        del leverage
        if not self._is_plain:
            return math.nan
        self._margin = self._margin_of(x)
        return self.mean_at(self._margin)

    def mean_at(self, margin: float) -> float:
        """The mean reward at one margin."""
        return margin

    def _margin_of(self, x: AnyVector) -> float:
        """x'theta, or the most that a float can tell of it; NaN has no sign."""
        with np.errstate(over="ignore", invalid="ignore"):
            margin = dot(self._theta, x)
        if abs(margin) < _MOST_MARGIN:
            return margin
        return 0.0 if math.isnan(margin) else math.copysign(_MOST_MARGIN, margin)

    def weight(self, x: AnyVector, norm_sq: float, reward: float, leverage: Leverage) -> float:
        """Decide on the step, while A is as it was; ``learn`` makes it."""
        precision = self.precision
        margin, self._margin = self._margin_of(x) if self._margin is None else self._margin, None
        move = self.decide(margin, precision.inverse.quadratic(leverage, norm_sq), norm_sq, reward)
        moved = precision.moved(self._theta, move.along, x, leverage) if move.along else None
        self._next = move, moved  # no theta: the arm is too long for the ridge
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
        """What else a step changes."""

    def forget(self, factor: float) -> None:
        """theta stays where it is; with A the steps to come grow longer."""
        self.count *= factor

    def check_mergeable(self) -> None:
        """Refuse: theta depends on the order in which all rewards came."""
        raise MergeError(
            f"{type(self).__name__} learns in one pass: its theta is where the steps of one stream led, and "
            "two of them do not add up; give all rewards to one policy, or use Linear, which merges"
        )

    # -- files --------------------------------------------------------------------------------------

    @abstractmethod
    def settings(self) -> Scalars:
        """The constructor's keyword arguments, as JSON values."""

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in self.settings().items() if value is not None)
        return f"{type(self).__name__}({shown})"

    def dump(self) -> tuple[Scalars, Arrays]:
        """JSON values and arrays that ``made_for`` and ``restore`` make the same estimate of, to the bit."""
        return {"settings": self.settings(), "count": self.count}, {"theta": self._theta}

    @classmethod
    def made_for(cls, scalars: Scalars) -> Self:
        """A fresh instance of the same settings."""
        settings: dict[str, Any] = dict(scalars["settings"])
        return cls(**settings)

    def restore(self, scalars: Scalars, arrays: Arrays) -> None:
        """Set what ``dump`` told."""
        theta = arrays["theta"]
        if theta.shape != self._theta.shape:
            raise ValueError(f"theta has shape {theta.shape}")
        self._theta, self.count = theta, float(scalars["count"])
