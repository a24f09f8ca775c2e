"""A sketch, a precision, an estimate and a rule, joined: the state of a policy."""

import math
from typing import Any, ClassVar

import numpy as np

from sketchbandit.arrays import Vector
from sketchbandit.errors import InputError, InputTypeError
from sketchbandit.estimate import STRENGTH, Estimate, RewardScale
from sketchbandit.explore import Explore
from sketchbandit.explore.base import Auto, check_strength
from sketchbandit.policy.baseline import check_baseline, why_no_baseline
from sketchbandit.policy.drift import PredictionWatch
from sketchbandit.policy.forgetting import Clock, check_can_forget
from sketchbandit.policy.health import Health, HealthWatch, mass_to_look_at
from sketchbandit.policy.learner import Learner
from sketchbandit.policy.verdicts import following_sentence, offset_sentence, world_sentence
from sketchbandit.precision import Precision, Saved
from sketchbandit.registry import setting_names
from sketchbandit.sketch import Sketch
from sketchbandit.sketch.checks import check_real
from sketchbandit.sketch.columns import ColumnNames
from sketchbandit.theory import Confidence
from sketchbandit.thread_safety import Lock

_FAR, _ENOUGH_REWARDS = 5.0, 100  # deviations from 0, and the number of rewards that it takes to say so
_FOLLOWED = 3.0  # memory lengths after a change until a policy that forgets has adapted


class JoinedPolicy(Learner):
    """Base class of ``Choosing`` and ``Policy``: the parts and their settings."""

    _kinds: ClassVar[dict[str, type[Any]]] = {}
    _noun = "policy"

    def _set_up(
        self,
        sketch: Sketch,
        ridge: float,
        beta: float | Confidence | Auto,
        *,
        explore: Explore,
        estimate: Estimate,
        forget: float | None = None,
        baseline: bool | None = None,
        saved: Saved | None = None,
    ) -> None:
        if forget is not None:
            check_can_forget(sketch, estimate)
        self._forget = forget
        self._wants_baseline = baseline
        self._ridge = check_real("ridge", ridge, above=0.0)
        self._beta = check_strength("beta", beta)
        is_theorem = isinstance(self._beta, Confidence)
        self._dtype, self._dim = sketch.dtype, sketch.dim
        self._plain_dim = self._dim  # length of an arm that needs no conversion
        self._is_float64 = self._dtype == np.float64
        scale = estimate.make_scale(baseline=False)
        self._begin(sketch, estimate, scale, with_determinant=is_theorem, saved=saved)
        self._explore_by(explore)
        if baseline:
            self._use_baseline()
        self._lock = self._make_lock()
        self._columns = ColumnNames()

    def _begin(
        self,
        sketch: Sketch,
        estimate: Estimate,
        scale: RewardScale,
        *,
        with_determinant: bool = False,
        saved: Saved | None = None,
    ) -> None:
        """Start with nothing learned, except for the scale of the rewards."""
        self._precision = Precision(sketch, self._ridge, with_determinant=with_determinant, saved=saved)
        self._estimate = estimate
        self._checks_rewards = type(estimate).check_reward is not Estimate.check_reward
        estimate.reward_scale = scale
        estimate.bind(self._precision)
        self._watch = HealthWatch()
        self._world = PredictionWatch()
        self._mass_to_look_at = mass_to_look_at(sketch, self._ridge)
        self._radius_at = (-1, -1)
        self._clock = None if self._forget is None else Clock(self._forget)
        self._rounds = 0

    def _begin_again(self, sketch: Sketch, estimate: Estimate) -> None:
        """Start again with nothing learned. A ``PerAction`` keeps the scale of all its models."""
        sketch._lock = self._lock
        scale = self._reward_scale if self._is_part else estimate.make_scale(baseline=self._has_baseline)
        self._begin(sketch, estimate, scale, with_determinant=isinstance(self._beta, Confidence))

    @property
    def _reward_scale(self) -> RewardScale:
        return self._estimate.reward_scale

    @property
    def _has_baseline(self) -> bool:
        return self._estimate.reward_scale.baseline

    def _use_baseline(self) -> None:
        """Learn from rewards less their mean. Nothing may be learned yet."""
        check_baseline(self._explore, self._beta, self._estimate)
        self._estimate.reward_scale = self._estimate.make_scale(baseline=True)
        self._estimate.bind(self._precision)

    @property
    def _can_have_baseline(self) -> bool:
        """Whether the policy was not told otherwise, and its parts can learn from rewards less their mean."""
        return self._wants_baseline is not False and not why_no_baseline(
            self._explore, self._beta, self._estimate
        )

    def _default_to_baseline(self) -> None:
        """Use a baseline unless the policy was told not to, or cannot. Nothing may be learned yet."""
        if self._wants_baseline is None and self._can_have_baseline:
            self._use_baseline()

    def _set_baseline(self, baseline: bool) -> None:
        """Use a baseline, or none, whatever the recipe has chosen. Nothing may be learned yet."""
        self._wants_baseline = baseline
        if baseline and not self._has_baseline:
            self._use_baseline()
        elif self._has_baseline and not baseline:
            self._estimate.reward_scale = self._estimate.make_scale(baseline=False)
            self._estimate.bind(self._precision)

    def _explore_by(self, rule: Explore) -> None:
        """Use this rule. If it has no beta of its own, the present beta stays."""
        if self._has_baseline:
            check_baseline(rule, self._beta if rule.beta is None else rule.beta, self._estimate)
        if rule.beta is None and "beta" in setting_names(type(rule)):
            rule.beta = self._beta
        beta = check_strength("beta", self._beta if rule.beta is None else rule.beta)
        sketch = self._precision.sketch
        if isinstance(beta, Confidence) and not math.isfinite(sketch.error_bound):
            raise InputError(
                f"{type(sketch).__name__} certifies no error, so no theorem gives its radius; give a "
                "constant beta"
            )
        if isinstance(beta, Confidence):
            self._estimate.check_confidence(beta)
            if self._estimate.weighs and isinstance(getattr(rule, "gamma", None), Confidence):
                raise InputError(
                    f"no theorem gives gamma for {type(self._estimate).__name__} rewards; give "
                    f"{type(rule).__name__} a number"
                )
        super()._explore_by(rule)
        self._beta = beta
        self._confidence = None if isinstance(beta, float) else beta
        self._radius = beta if isinstance(beta, float) else math.nan
        self._radius_at = (-1, -1)  # (rebuilds, rounds) for which a theorem's radius was computed

    def _make_lock(self) -> Lock:
        """The lock of the sketch, so that a compression of it happens between two rounds."""
        return self._precision.sketch._lock

    # -- what it tells ------------------------------------------------------------------------------

    @property
    def ridge(self) -> float:
        """lambda, the ridge parameter."""
        return self._ridge

    @property
    def beta(self) -> float | Confidence | Auto:
        """The confidence radius as it was given: a float, a ``Confidence`` or "auto"."""
        return self._beta

    @beta.setter
    def beta(self, value: Any) -> None:
        raise InputTypeError(f"beta belongs to the rule; set the rule: policy.explore = sb.UCB({value!r})")

    @property
    def forget(self) -> float | None:
        """The factor by which old rounds are forgotten per round; None if nothing is forgotten."""
        return self._forget

    @property
    def sketch(self) -> Any:  # a Sketch: which one, whoever made the policy knows
        """The sketch of the arms played. Read from it only; the policy updates it."""
        return self._precision.sketch

    @property
    def precision(self) -> Precision:
        """A^-1, always up to date with the sketch. Read from it only; the policy updates it."""
        return self._precision

    @property
    def estimate(self) -> Any:  # an Estimate
        """The reward model. Read from it only, and in the thread that plays; the policy updates it."""
        return self._estimate

    @property
    def theta(self) -> Vector:
        """The parameter vector, shape (dim,): a copy. The margin of an arm is ``baseline`` + x'theta.

        For linear rewards, theta = A^-1 b, with b the sum of (reward - baseline)·x.
        """
        return self._estimate.theta.copy()

    @property
    def baseline(self) -> float:
        """What margins are measured from: the margin of an arm is the baseline plus x'theta.

        For linear rewards it is the mean of all rewards so far; with a link, the margin of their base rate.
        It is 0 for a policy without a baseline (docs/bandits.md).

        Examples
        --------
        >>> import sketchbandit as sb
        >>> policy = sb.oful(1, baseline=True)
        >>> policy.update([[1.0], [1.0]], [10.0, 12.0])
        >>> policy.baseline, policy.mean([1.0])
        (11.0, 11.0)

        """
        return self._estimate.baseline

    @property
    def radius(self) -> float:
        """The confidence radius beta_t of the next choice."""
        if self._confidence == "auto":
            return STRENGTH if self._estimate.is_normalised else self._reward_scale.radius
        if self._confidence is not None:
            self._precision.sync()
            now = self._precision.rebuilds, self._rounds
            if self._radius_at != now:
                clock, confidence = self._clock, self._confidence
                careful = confidence if clock is None else clock.careful(confidence)
                self._radius, self._radius_at = self._estimate.radius(careful), now
        return self._radius

    @property
    def rounds(self) -> int:
        """The number of rewards learned from. One round is one reward."""
        return self._rounds

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays held, including those of the sketch."""
        return self._precision.nbytes + self._estimate.nbytes + self._precision.sketch.nbytes

    def health(self) -> Health:
        """Report on the error bound and on the predictions, with a sentence that says what to do."""
        forgets = self._clock is not None
        found = self._watch.report(self.sketch, self._rounds, self._ridge, forgets=forgets)
        if found.enough_digits and not found.heading_for_linear_regret and self._rewards_are_far_from_zero:
            scale = self._reward_scale
            found = found._replace(sentence=offset_sentence(scale.mean, scale.deviation))
        return found._replace(**self._health_of_world(found.sentence))

    @property
    def _rewards_are_far_from_zero(self) -> bool:
        """Whether their mean is so many deviations that a policy without a baseline learns slowly."""
        scale = self._reward_scale
        is_likely = not scale.baseline and self._estimate.takes_baseline and scale.count >= _ENOUGH_REWARDS
        return is_likely and 0.0 < _FAR * scale.deviation < abs(scale.mean)

    def _health_of_world(self, sentence: str) -> dict[str, Any]:
        """The fields of ``Health`` about the predictions, and the sentence."""
        noticed, memory = self._world.changed_at, math.inf
        if noticed is None:
            return {}
        if self._forget is not None:
            memory = _FOLLOWED / (1.0 - self._forget)
            sentence = f"{following_sentence(noticed)} {sentence}"
        else:
            sentence = world_sentence(noticed)
        if self._rounds - noticed > memory:
            return {"changed_at": noticed}
        return {"world_changed": True, "changed_at": noticed, "sentence": sentence}
