"""The interface of a reward model."""

import math
from abc import ABC, abstractmethod
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from sketchbandit.arms import Arms, Scan
from sketchbandit.arrays import Arrays, Matrix, Scalars, Vector
from sketchbandit.errors import InputError, InputTypeError, MergeError
from sketchbandit.estimate.reward_scale import RewardScale
from sketchbandit.linalg import AnyVector, as_dense, dot
from sketchbandit.precision import Leverage, Precision, Step
from sketchbandit.registry import Registry, setting_names
from sketchbandit.theory import Confidence


class AffineTheta(NamedTuple):
    """theta as a function of the level of the rewards: theta - (level - at)·image."""

    theta: Vector
    image: Vector | None
    """A^-1 times the sum of all arms: what theta loses when the level rises by one. None: nothing."""
    at: float
    """The level for which theta was computed."""


MODELS: Registry["Estimate"] = Registry("reward model")


class Estimate(ABC):
    """Base class of reward models. A model learns from rewards, and predicts the mean reward of an arm.

    A policy copies the model it is given, and binds it to its precision A^-1. Then it calls ``learn`` after
    the precision has taken in an arm. A subclass needs a ``kind``, a name of its own, if policies with it are
    to be saved (docs/extending.md).

    A model can be more than x'theta. ``scan`` returns margins; confidence widths are in their unit.
    ``expected`` turns margins into mean rewards, and must be increasing. If ``weighs`` is set, an arm goes
    into the sketch as sqrt(weight)·x, so that A = (ridge + alpha) I + the sketched sum of weight·x x'.

    Examples
    --------
    >>> import sketchbandit as sb
    >>> isinstance(sb.oful(2, rewards=sb.Logistic()).estimate, sb.Estimate)
    True

    """

    kind: ClassVar[str]
    """The name of the model in files and settings."""
    weighs: ClassVar[bool] = False
    """Whether arms go into the sketch one by one, by their ``weight``. If not, they go in as they are."""
    has_link: ClassVar[bool] = False
    """Whether mean rewards differ from margins, so that ``expected`` is used."""
    is_normalised: ClassVar[bool] = False
    """Whether A is in units of the noise. Then a radius of one is one standard deviation."""

    precision: Precision
    reward_scale: RewardScale
    """Location and spread of the rewards. The policy sets it before it calls ``bind``."""
    most_weight: float = 1.0
    """An upper bound on all weights."""
    arm_lengths: float = 0.0
    """The sum of |arm|."""
    reward_mass: float = 0.0
    """The sum of |reward|·|arm|."""
    most_reward_mass: float = math.inf
    """An upper limit for ``reward_mass``."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        MODELS.register(cls)

    def bind(self, precision: Precision) -> None:
        """Use this precision. Nothing may be learned with it yet."""
        self.precision = precision

    @property
    def takes_baseline(self) -> bool:
        """Whether the model can learn from rewards less a baseline (``reward_scale.baseline``)."""
        return False

    def make_scale(self, *, baseline: bool) -> RewardScale:
        """An empty scale for the rewards of this model."""
        return RewardScale(baseline=baseline)

    @property
    def level(self) -> float:
        """The location of the rewards less their origin, in the unit of the margin; 0 without a baseline."""
        return 0.0

    @property
    def baseline(self) -> float:
        """What margins are measured from: the margin of an arm is the baseline plus x'theta."""
        return 0.0

    @property
    @abstractmethod
    def theta(self) -> Vector:
        """The parameter vector. Do not write to it."""

    def scan(self, arms: Arms) -> Scan:
        """The margin of every arm less the baseline: x'theta, unless a subclass overrides it."""
        means, norms_sq = arms.scan(self.theta)
        return Scan(arms, means, norms_sq)

    @property
    def linear_theta(self) -> Vector | None:
        """theta, if it is known and margins are x'theta; else None. For loops that read arms themselves."""
        return None

    @property
    def affine_theta(self) -> "AffineTheta | None":
        """``linear_theta`` as a function of the level, for loops that read many models."""
        theta = self.linear_theta
        return None if theta is None else AffineTheta(theta, None, 0.0)

    def expected(self, margins: Vector) -> Vector:
        """The mean rewards for given margins. They are equal, unless ``has_link``."""
        return margins

    def radius(self, confidence: Confidence) -> float:
        """The theorem's radius for |theta - theta*| in the norm of A, from what actually happened."""
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
        """Raise an InputError with a remedy if no theorem covers this Confidence."""
        del confidence

    def mass_with(self, reward: float, length: float) -> float:
        """A bound on |sum of (reward - baseline)·arm| with one more arm of this length."""
        scale = self.reward_scale
        if scale.baseline:  # the first reward is measured from 0, so it cannot be of any size
            return 2.0 * max(scale.reach, abs(reward - scale.origin)) * (self.arm_lengths + length)
        return self.reward_mass + abs(reward) * length

    def mass_with_all_of(self, other: Self) -> float:
        """``mass_with`` all arms of another model that is to be merged."""
        mine, theirs = self.reward_scale, other.reward_scale
        if mine.baseline:
            reach = max(mine.reach, theirs.reach + abs(theirs.origin - mine.origin))
            return 2.0 * reach * (self.arm_lengths + other.arm_lengths)
        return self.reward_mass + other.reward_mass

    def check_mass(self, total: float) -> None:
        """Raise if something could overflow with so large a ``mass_with``."""
        if not total < self.most_reward_mass:
            raise InputError(
                f"rewards times arms add up to {total:g}, too much for a ridge of {self.precision.ridge:g}: "
                "theta could overflow; rescale the rewards or use a larger ridge"
            )

    def check_reward(self, reward: float) -> None:
        """Raise an InputError if the model cannot use this reward. Nothing has changed yet."""
        del reward

    def predict(self, x: AnyVector, leverage: Leverage) -> float:
        """The mean reward of one arm with known leverage, for the watch over predictions.

        NaN if there is no fast way, for instance if a subclass has margins other than x'theta.
        """
        del leverage
        if type(self).scan is not Estimate.scan:
            return math.nan
        with np.errstate(over="ignore", invalid="ignore"):
            margin = self.baseline + dot(self.theta, x)
            return float(self.expected(np.array([margin]))[0]) if self.has_link else margin

    def prepare(self, x: AnyVector) -> None:
        """Prepare for the arm x, which is taken in next: the last chance to read the present precision."""
        del x
        self.precision.sync()

    def weight(self, x: AnyVector, norm_sq: float, reward: float, leverage: Leverage) -> float:
        """The weight, from 0 to ``most_weight``, with which arm x is taken in; used if ``weighs``.

        The precision does not include the arm yet. ``learn`` is called when it does.
        """
        del x, norm_sq, reward, leverage
        return 1.0

    @abstractmethod
    def learn(self, x: AnyVector, reward: float, step: Step | None) -> None:
        """Learn from a reward of arm x, which the precision has taken in by ``step``.

        ``step`` is None if the precision was computed again, or if the arm went in by its ``weight``.
        """

    def learn_fused(self, x: AnyVector, norm_sq: float, leverage: Leverage, reward: float) -> float | None:
        """``learn``, and append the arm to the inverse, in one loop; the prediction error from before.

        None, and nothing is done, if there is no such loop.
        """
        del x, norm_sq, leverage, reward
        return None

    def gain(self, x: AnyVector, step: Step | None) -> Vector:
        """A^-1 x, where A includes x. theta moves along it, by the prediction error."""
        if step is None:
            return self.precision.apply(as_dense(x, self.precision.sketch.dim))
        return step.image() / (1.0 + step.quadratic)

    def learn_many(self, rows: Matrix, rewards: Vector) -> None:
        """Learn from many rewards, after the precision was computed again from all arms."""
        for row, reward in zip(rows, rewards.tolist(), strict=True):
            if row.any():  # a zero arm has no direction to learn about
                self.learn(row, reward, None)

    def forget(self, factor: float) -> None:
        """Multiply the weight of everything learned by this factor. The precision has done so already."""
        raise NotImplementedError(f"{type(self).__name__} cannot forget")

    def check_mergeable(self) -> None:
        """Raise if models of this class cannot be merged, before anything changes."""
        if type(self).add is Estimate.add:
            raise MergeError(f"{type(self).__name__} has no method add, so its policies cannot merge")

    def add(self, other: Any) -> None:
        """Add what another model of this class has learned. Precision and scale have done so already."""
        raise NotImplementedError(f"{type(self).__name__} cannot add {type(other).__name__}")

    def move_origin(self, by: float) -> None:
        """Note that rewards are measured from an origin that is larger by this much."""
        del by

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Bytes of all arrays held."""

    def settings(self) -> Scalars:
        """The arguments of the constructor that are attributes of the same name, as JSON values."""
        return {name: getattr(self, name) for name in setting_names(type(self)) if hasattr(self, name)}

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in self.settings().items() if value is not None)
        return f"{type(self).__name__}({shown})"

    @abstractmethod
    def dump(self) -> tuple[Scalars, Arrays]:
        """JSON values and arrays that ``restore`` turns into the same estimate."""

    def _saved(self) -> tuple[Scalars, Arrays]:
        """What ``dump`` returns, with the settings. Raises if a file could not hold the whole model."""
        MODELS.check(self)
        kind, (scalars, arrays) = type(self), self.dump()
        if kind.made_for.__func__ is not Estimate.made_for.__func__:  # type: ignore[attr-defined]
            return scalars, arrays
        lost = [name for name in setting_names(kind) if name not in self.settings()]
        if lost:
            raise InputTypeError(
                f"{kind.__name__} keeps no attribute for arguments of its constructor ({', '.join(lost)}): "
                "a file would lose them; keep them as attributes of the same name, or write made_for"
            )
        return {**scalars, "settings": self.settings()} if self.settings() else scalars, arrays

    @classmethod
    def made_for(cls, scalars: Scalars) -> Self:
        """A fresh instance with the settings in these JSON values, which came from a file."""
        return cls(**scalars.get("settings", {}))

    @abstractmethod
    def restore(self, scalars: Scalars, arrays: Arrays) -> None:
        """Restore what ``dump`` returned, on a fresh instance that is already bound."""


def model_of(given: object) -> Estimate:
    """A reward model: given as such, by its name, or as a mapping of ``model``, its name, and its settings.

    Examples
    --------
    >>> model_of({"model": "robust", "scale": 0.5})
    Robust(moment=1.5, scale=0.5, threshold=0.25, caution=1.0)

    """
    if isinstance(given, Estimate):
        return given
    example = '{"model": "robust", "scale": 0.1}'
    refusal = f"rewards must be a reward model, its name, or a mapping such as {example}"
    return MODELS.make(given, key="model", refusal=refusal)


def model_settings(model: Estimate) -> Scalars:
    """The settings as JSON values, with the name as ``model``: the input of ``model_of``.

    Examples
    --------
    >>> model_settings(model_of("linear"))
    {'model': 'linear'}

    """
    return {"model": model.kind, **model.settings()}
