"""One-pass models, whose theta each reward moves once: clicks, counts, and rewards with outliers."""

import math
from abc import abstractmethod
from collections.abc import Callable
from functools import partial
from typing import ClassVar, NamedTuple, Self

import numpy as np
from scipy.special import expit

from sketchbandit.arrays import Arrays, Matrix, Scalars, Vector
from sketchbandit.errors import InputError, MergeError
from sketchbandit.estimate.base import AffineTheta, Estimate
from sketchbandit.estimate.reward_scale import RewardScale
from sketchbandit.linalg import AnyVector, dot, length_of
from sketchbandit.precision import Leverage, Precision, Step
from sketchbandit.sketch.checks import check_real
from sketchbandit.theory import Confidence, mix_cost

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


_MOST_STEPS = 2500  # halvings from the largest float to the smallest; about five are usual
_FARTHEST = 1e250
_DIGITS = 4e-16
MOST_LOG_RATE = 30.0
"""The margin from which on rates continue along a tangent. A rate above 1e13 is never intended."""
_MOST_RATE = math.exp(MOST_LOG_RATE)
_MOST_EXCESS = 1e250  # keeps the excess times the slope finite


def implicit_margin(pull: Callable[[float], tuple[float, float]], *, margin: float, reach: float) -> float:
    """The solution z of z = margin + reach·pull(z). It is unique, because the pull decreases in z.

    ``pull`` returns the pull and the curvature, by which it decreases.

    z minimises loss(z) + (z - margin)² / (2·reach), where the loss has the slope -pull(z). This is Newton's
    method between two bounds. Its first iterate is the step of the second-order surrogate (Zhang et al. 2025,
    eq. of the OMD estimator).

    Examples
    --------
    >>> round(implicit_margin(lambda z: (3.0 - z, 1.0), margin=0.0, reach=1.0), 12)
    1.5

    """
    slope, curvature = pull(margin)
    if not slope or not reach > 0.0:
        return margin
    far = margin + reach * slope  # z cannot be further, because the pull only decreases on the way
    far = min(max(far, -_FARTHEST), _FARTHEST)
    low, high = min(margin, far), max(margin, far)
    z = margin + reach * slope / (1.0 + reach * curvature)
    before = abs(reach * slope)
    for _ in range(_MOST_STEPS):
        if not low < z < high:
            z = 0.5 * low + 0.5 * high
        slope, curvature = pull(z)
        off = (z - margin) - reach * slope
        if off > 0.0:
            high = z
        elif off < 0.0:
            low = z
        else:
            return z
        after = z - off / (1.0 + reach * curvature)
        if abs(after - z) <= _DIGITS * (abs(z) + abs(margin)):
            return min(max(after, low), high)
        z = after if abs(off) <= 0.5 * before else 0.5 * low + 0.5 * high  # bisect if Newton is slow
        before = abs(off)
    return z


class Generalized(OnePass):
    """The mean reward is mu(x'theta), where mu is the slope of b in the loss b(x'theta) - reward·x'theta.

    Each reward makes one step of online mirror descent (Zhang, Xu, Zhao, Sugiyama 2025, arXiv 2507.11847; for
    clicks Faury et al. 2022). It uses the loss itself instead of its second-order approximation:

        theta' = argmin of loss(theta) + |theta - theta_t|²_A / (2·step),   A' = A + mu'(x'theta')·x x'.

    The minimiser lies on the line theta_t + s·A^-1 x, so it takes one equation in one unknown.
    """

    has_link = True

    curvature_limit: ClassVar[float] = math.inf
    """An upper bound on the curvature, whatever the margin."""

    def __init__(
        self, *, theta_norm: float | None = None, arm_norm: float = 1.0, step: float | None = None
    ) -> None:
        self.theta_norm = None if theta_norm is None else check_real("theta_norm", theta_norm, above=0.0)
        self.arm_norm = check_real("arm_norm", arm_norm, above=0.0)
        self._step = None if step is None else check_real("step", step, above=0.0)
        self.most_weight = self.pull(0.0, self.curvature_at)[1]

    curvature_at: ClassVar[float] = 0.0
    """A margin at which the curvature is largest."""

    @property
    def step(self) -> float:
        """The step eta: as given; else 1 + theta_norm·arm_norm, as the theorem needs; else 1."""
        if self._step is not None:
            return self._step
        return 1.0 if self.theta_norm is None else 1.0 + self.theta_norm * self.arm_norm

    def bind(self, precision: Precision) -> None:
        """Start at theta = 0."""
        super().bind(precision)
        self.information = 0.0
        """The sum of ``theory.mix_cost`` over all rewards."""
        self._moved = 0.0  # an upper bound on what compensations have added to |theta - theta*|²_A
        self._seen_shift = precision.shift

    # -- the model ----------------------------------------------------------------------------------

    @abstractmethod
    def pull(self, reward: float, margin: float) -> tuple[float, float]:
        """reward - mu(margin), the negative slope of the loss, and mu'(margin). Both are finite.

        mu' must be at least |mu''|. It is the weight of an arm with this margin.
        """

    def mean_at(self, margin: float) -> float:
        """mu(margin)."""
        return -self.pull(0.0, margin)[0]

    # -- the baseline ---------------------------------------------------------------------------------

    prior_weight: ClassVar[float] = 1.0
    """How many rewards the mean at margin 0 counts for in the base rate, so that it is never at an end."""

    def margin_at(self, mean: float) -> float:
        """The margin with this mean reward, the inverse of mu. A model with a baseline needs it."""
        raise NotImplementedError(f"{type(self).__name__} has no margin_at(mean), so it takes no baseline")

    @property
    def takes_baseline(self) -> bool:
        """Unless a subclass has no ``margin_at``, or margins other than x'theta."""
        return super().takes_baseline and type(self).margin_at is not Generalized.margin_at

    @property
    def level(self) -> float:
        """The margin of the base rate, the mean of all rewards; 0 without a baseline."""
        scale = self.reward_scale
        if not scale.baseline:
            return 0.0
        weight = self.prior_weight
        total = scale.count * scale.mean + weight * self.mean_at(0.0)
        return self.margin_at(total / (scale.count + weight))

    @property
    def baseline(self) -> float:
        """The margin of the base rate; 0 without a baseline."""
        return self.level

    def target_of(self, reward: float) -> float:
        """The reward itself: margins have a link."""
        return reward

    # -- learning -----------------------------------------------------------------------------------

    def decide(self, margin: float, quadratic: float, norm_sq: float, reward: float) -> Move:
        """The implicit step, limited to |x'theta| <= theta_norm·|x|, because theta* satisfies this."""
        self._follow_shift()
        level = self.level
        step = self.step
        reach = step * quadratic
        pull = partial(self.pull, reward)
        new = implicit_margin(pull, margin=margin, reach=reach)
        slope, weight = pull(new)
        along = step * slope
        if self.theta_norm is not None:
            most = self.theta_norm * math.sqrt(norm_sq)
            if abs(new - level) > most and quadratic > 0.0:
                new = level + math.copysign(most, new - level)
                along = (new - margin) / quadratic
                weight = pull(new)[1]
        cost = mix_cost(reach, weight, most_curvature=self.curvature_limit)
        return Move(along, weight, cost, step * weight / (1.0 + reach * weight))

    def _spend(self, move: Move) -> None:
        self.information += move.cost

    def _follow_shift(self) -> None:
        """A compensation of a adds at most a·|theta - theta*|² <= a·(|theta| + S)² to the potential."""
        shift = self.precision.shift
        if shift != self._seen_shift:
            reach = length_of(self._thetas[0]) + (self.theta_norm or 0.0)
            self._moved += max(shift - self._seen_shift, 0.0) * reach * reach
            self._seen_shift = shift

    # -- the radius ---------------------------------------------------------------------------------

    def check_confidence(self, confidence: Confidence) -> None:
        """Raise unless theta_norm and arm_norm are those of the Confidence, and the step is long enough."""
        name, known = type(self).__name__, self.theta_norm
        if known is None or known != confidence.theta_norm or self.arm_norm != confidence.arm_norm:
            raise InputError(
                f"the radius of {name} rewards needs the norms of its Confidence: give "
                f"rewards={name}(theta_norm={confidence.theta_norm:g}, arm_norm={confidence.arm_norm:g})"
            )
        least = 1.0 + known * self.arm_norm
        if self.step < least:
            raise InputError(
                f"the theorem needs a step of at least {least:g}, got {self.step:g}; leave out step"
            )

    def radius(self, confidence: Confidence) -> float:
        """Theorem 2 of docs/beyond-linear.md, computed from what actually happened."""
        self._follow_shift()
        return confidence.one_pass_radius(
            ridge=self.precision.ridge, step=self.step, information=self.information, moved=self._moved
        )

    # -- files --------------------------------------------------------------------------------------

    def settings(self) -> Scalars:
        """The keyword arguments of the constructor."""
        return {"theta_norm": self.theta_norm, "arm_norm": self.arm_norm, "step": self._step}

    def dump(self) -> tuple[Scalars, Arrays]:
        """JSON values and arrays from which ``made_for`` and ``restore`` make the same model, to the bit."""
        self._follow_shift()
        scalars, arrays = super().dump()
        own = {"information": self.information, "moved": self._moved, "shift": self._seen_shift}
        return {**scalars, **own}, arrays

    def restore(self, scalars: Scalars, arrays: Arrays) -> None:
        """Restore what ``dump`` returned."""
        super().restore(scalars, arrays)
        self.information, self._moved = float(scalars["information"]), float(scalars["moved"])
        self._seen_shift = float(scalars["shift"])


class Logistic(Generalized):
    """Logistic rewards, for clicks: rewards from 0 to 1 with mean 1 / (1 + exp(-x'theta)).

    ``policy.mean`` is this probability, and ``policy.margin`` is x'theta. ``ucb`` and ``width`` are in the
    unit of the margin. Rewards between 0 and 1 are allowed too, because the theorem only needs their mean.

    Parameters
    ----------
    theta_norm : float, optional
        S, a bound on |theta*|, if one is known. Steps are then limited to |x'theta| <= S·|x|, because theta*
        satisfies this. There is no other projection. A ``Confidence`` needs it.
    arm_norm : float
        L, a bound on |x|. It is only used together with ``theta_norm``.
    step : float, optional
        eta, the factor on the length of a Newton step. Default 1 + S·L, as in the theorem, or 1 if S is not
        known.

    Examples
    --------
    >>> import sketchbandit as sb
    >>> policy = sb.oful(2, rewards=sb.Logistic(), beta=0.5)
    >>> for _ in range(20):
    ...     policy.update([1.0, 0.0], 1.0)
    ...     policy.update([0.0, 1.0], 0.0)
    >>> policy.mean([[1.0, 0.0], [0.0, 1.0]]).round(2)
    array([0.88, 0.12])

    """

    kind = "logistic"
    curvature_limit = 0.25

    def margin_at(self, mean: float) -> float:
        """log(mean / (1 - mean))."""
        return math.log(mean) - math.log1p(-mean)

    def check_reward(self, reward: float) -> None:
        """Raise unless the reward is from 0 to 1."""
        if not 0.0 <= reward <= 1.0:
            raise InputError(
                f"the reward is {reward:g}, but Logistic takes rewards from 0 to 1; give 1 for a click and 0 "
                "for none, scale the rewards, or use Linear"
            )

    def expected(self, margins: Vector) -> Vector:
        """1 / (1 + exp(-margin)), without overflow."""
        means: Vector = expit(margins)
        return means

    def pull(self, reward: float, margin: float) -> tuple[float, float]:
        """reward - mu without cancellation (1 - mu is the mean at the opposite sign), and mu (1 - mu)."""
        odds = math.exp(-abs(margin))
        whole = 1.0 + odds
        more, less = 1.0 / whole, odds / whole
        mean, rest = (more, less) if margin >= 0.0 else (less, more)
        return reward * rest - (1.0 - reward) * mean, odds / (whole * whole)


class Poisson(Generalized):
    """Poisson rewards, for counts: rewards of at least 0 with mean exp(x'theta), the rate.

    ``policy.mean`` is the rate, and ``policy.margin`` is x'theta. Nothing overflows: above a margin of 30, a
    rate of 1e13, the exponential continues along its tangent.

    Parameters
    ----------
    theta_norm, arm_norm, step
        As for ``Logistic``. The theorem holds for rewards that are Poisson given the past.

    Examples
    --------
    >>> import sketchbandit as sb
    >>> policy = sb.oful(1, rewards=sb.Poisson())
    >>> policy.update([[1.0]] * 50, [4.0, 2.0] * 25)
    >>> round(policy.mean([1.0]), 1)
    3.0

    """

    kind = "poisson"
    curvature_at = MOST_LOG_RATE
    prior_weight = 0.5

    def margin_at(self, mean: float) -> float:
        """log(mean)."""
        return math.log(mean)

    def check_confidence(self, confidence: Confidence) -> None:
        """Raise if margins may reach the tangent: the theorem is about the exponential."""
        super().check_confidence(confidence)
        if confidence.theta_norm * confidence.arm_norm > MOST_LOG_RATE:
            raise InputError(
                f"theta_norm·arm_norm is {confidence.theta_norm * confidence.arm_norm:g}, but the "
                f"theorem for Poisson rewards needs at most {MOST_LOG_RATE:g}; give smaller norms"
            )

    def check_reward(self, reward: float) -> None:
        """Raise unless the reward is at least 0."""
        if not reward >= 0.0:
            raise InputError(
                f"the reward is {reward:g}, but Poisson takes counts, which are at least 0; use Linear for "
                "rewards of both signs"
            )

    def expected(self, margins: Vector) -> Vector:
        """exp(margin) up to a margin of 30, and its tangent above."""
        beyond = np.clip(margins - MOST_LOG_RATE, 0.0, _MOST_EXCESS)
        rates: Vector = np.exp(np.minimum(margins, MOST_LOG_RATE)) * (1.0 + beyond)
        return rates

    def pull(self, reward: float, margin: float) -> tuple[float, float]:
        """The count minus the rate, and the slope of the rate, which is constant above 30."""
        if margin <= MOST_LOG_RATE:
            rate = math.exp(margin)
            return reward - rate, rate
        return reward - _MOST_RATE * (1.0 + min(margin - MOST_LOG_RATE, _MOST_EXCESS)), _MOST_RATE


_KNOWN = 3  # rewards whose median one outlier does not move far


class Robust(OnePass):
    """Linear rewards with outliers: only the moment E|noise|^moment of the noise must be finite.

    The mean reward is x'theta. This is one-pass adaptive Huber regression (Wang, Zhang, Zhao, Zhou 2025,
    arXiv 2503.00419). With w the width of the arm in units of its noise, and t rewards so far,

        sigma = max(scale, caution·|x|_{A^-1}),   w = |x|_{A^-1} / sigma,
        tau = threshold·sqrt(1 + w²)/w·t^((2 - moment) / (2·moment)),
        theta' = theta + A'^-1 x·clip((reward - x'theta) / sigma, ±tau) / sigma,   A' = A + x x'/sigma².

    A well-known arm has a large tau, because it has many rewards. The residual of a little-known arm is
    clipped early. If nothing is clipped and sigma is 1, this is ``Linear``. Widths, and so beta, are in units
    of the noise. The ridge is in units of a squared arm norm over scale².

    Parameters
    ----------
    moment : float
        1 + eps, in (1, 2]. 2 means a finite variance. t-distributed noise with n degrees of freedom has all
        moments below n.
    scale : float
        The size of the noise, (E|noise|^moment)^(1/moment), or a guess of it.
    threshold : float
        tau_0. With a smaller value more is clipped. docs/beyond-linear.md has the gain and the cost of 0.25.
    caution : float
        Arms with a width above scale/caution count less, as if their noise were larger.

    Examples
    --------
    >>> import sketchbandit as sb
    >>> policy = sb.oful(1, rewards=sb.Robust(scale=0.1))
    >>> policy.update([[1.0]] * 20, [1.0] * 19 + [1e6])
    >>> round(policy.mean([1.0]), 1)
    0.8

    """

    kind = "robust"

    def __init__(
        self, *, moment: float = 1.5, scale: float = 1.0, threshold: float = 0.25, caution: float = 1.0
    ) -> None:
        self.moment = check_real("moment", moment, above=1.0, at_most=2.0)
        self.scale = check_real("scale", scale, at_least=1e-100, at_most=1e100)
        self.threshold = check_real("threshold", threshold, above=0.0)
        self.caution = check_real("caution", caution, at_least=0.0)
        self.most_weight = 1.0 / (self.scale * self.scale)

    def decide(self, margin: float, quadratic: float, norm_sq: float, reward: float) -> Move:
        """The clipped residual, along A'^-1 x = A^-1 x / (1 + w²)."""
        del norm_sq
        if self.reward_scale.baseline and self.reward_scale.count < _KNOWN:
            return Move(0.0, 0.0)  # an outlier may be all that is known of the level
        width = math.sqrt(quadratic)
        sigma = max(self.scale, self.caution * width)
        w = width / sigma
        residual = (reward - margin) / sigma
        free = residual
        if w > 0.0:
            grown = math.pow(self.count + 1, (2.0 - self.moment) / (2.0 * self.moment))
            tau = self.threshold * math.sqrt(1.0 + w * w) / w * grown
            residual = min(max(residual, -tau), tau)
        by = 1.0 / (sigma * (1.0 + w * w))
        return Move(residual * by, 1.0 / (sigma * sigma), slope=by / sigma if residual == free else 0.0)

    def make_scale(self, *, baseline: bool) -> RewardScale:
        """A scale whose location outliers do not move."""
        return RewardScale(baseline=baseline, robust=(self.scale, self.moment))

    @property
    def level(self) -> float:
        """The robust location of the rewards less their origin; 0 without a baseline."""
        return self.reward_scale.location if self.reward_scale.baseline else 0.0

    @property
    def baseline(self) -> float:
        """The robust location of the rewards; 0 without a baseline."""
        return self.reward_scale.origin + self.level if self.reward_scale.baseline else 0.0

    def check_confidence(self, confidence: Confidence) -> None:
        """Raise: the constants of the paper are too large to be useful, and none are proved for a sketch."""
        del confidence
        raise InputError(
            "no theorem gives the radius of Robust rewards on a sketch; give a constant beta, in units of "
            'the noise, or "auto"'
        )

    def settings(self) -> Scalars:
        """The keyword arguments of the constructor."""
        return {
            "moment": self.moment,
            "scale": self.scale,
            "threshold": self.threshold,
            "caution": self.caution,
        }
