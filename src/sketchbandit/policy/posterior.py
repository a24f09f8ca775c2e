"""What a model knows of theta: a sketch of the arms, A^-1 through it, and what rewards have taught."""

import copy
import math
from collections.abc import Sequence
from numbers import Real
from typing import NamedTuple

import numpy as np

from sketchbandit.arms import Arms, DenseArms, Scan, View, refuse
from sketchbandit.arrays import AnyArray, Vector
from sketchbandit.errors import InputError, InputTypeError, MergeError
from sketchbandit.estimate import STRENGTH, Estimate, RewardScale
from sketchbandit.explore import ArmCandidates, Explore
from sketchbandit.explore.base import Auto, check_strength
from sketchbandit.explore.search import Question, search
from sketchbandit.linalg import AnyVector
from sketchbandit.precision import Leverage, Precision, Saved, take_weighted
from sketchbandit.registry import setting_names
from sketchbandit.sketch import Change, Sketch
from sketchbandit.sketch.accounts import NO_CHANGE
from sketchbandit.sketch.checks import check_count, check_real
from sketchbandit.sketch.row_input import RowBatch
from sketchbandit.theory import Confidence


def read_baseline(baseline: object) -> bool | None:
    """The ``baseline`` setting, checked. None: as the policy, or the ``PerAction`` it is for, decides."""
    if baseline is not None and not isinstance(baseline, bool):
        raise InputTypeError(
            f"baseline is {baseline!r:.40}; give True (learn from rewards less their mean) or False"
        )
    return baseline


def why_no_baseline(rule: Explore, beta: object, estimate: Estimate) -> str:
    """Why a policy of these parts can have no baseline; empty if it can."""
    if isinstance(beta, Confidence) or any(isinstance(value, Confidence) for value in vars(rule).values()):
        return "the radius of a Confidence is a theorem for rewards as they are, without a baseline"
    if not estimate.takes_baseline:
        return f"{type(estimate).__name__} rewards cannot be learned less a baseline"
    return ""


def check_baseline(rule: Explore, beta: object, estimate: Estimate) -> None:
    """Raise if a policy of these parts can have no baseline."""
    if why := why_no_baseline(rule, beta, estimate):
        raise InputError(f"{why}; make the policy with baseline=False")


# The weight left when forgetting is applied: at a rebuild of the sketch, and at the latest.
_AT_A_REBUILD, _AT_THE_LATEST = 0.98, 0.9
_LEAST, _MOST = 1e-300, 1e300


def read_forget(forget: object) -> float | None:
    """The factor per round of a ``forget`` setting; None means never.

    A setting up to 1 is the factor itself. A setting above 1 is a half-life in rounds.

    Examples
    --------
    >>> read_forget(0.999), round(read_forget(100), 6), read_forget(1.0), read_forget(None)
    (0.999, 0.993092, None, None)

    """
    if forget is None:
        return None
    remedy = "give a factor per round, such as 0.999, or a half-life in rounds, such as 700; None: never"
    if isinstance(forget, (bool, np.bool_)) or not isinstance(forget, Real):
        raise InputTypeError(f"forget is {forget!r:.40} of type {type(forget).__name__}; {remedy}")
    try:
        number = float(forget)
    except OverflowError:  # an integer too large for a float
        number = math.inf
    if not 0.0 < number < math.inf:
        raise InputError(f"forget must be above 0 and finite, got {forget!s:.40}; {remedy}")
    factor = number if number <= 1.0 else math.pow(0.5, 1.0 / number)
    return factor if factor < 1.0 else None


def check_can_forget(sketch: Sketch, estimate: Estimate) -> None:
    """Raise if a sketch or reward model of the user's own cannot forget."""
    sketch._check_can_forget()
    if type(estimate).forget is Estimate.forget:
        raise InputTypeError(
            f"{type(estimate).__name__} cannot forget: give it a method forget(factor), or leave out forget="
        )


class Clock:
    """Collects the factors of the rounds, and says when to apply them.

    Forgetting means that the precision must be computed again. So it is applied when that happens anyway and
    at least 2 % are to be forgotten, and otherwise once 10 % are. The rows in between have equal weights.
    """

    __slots__ = ("_at_rebuild", "_at_the_latest", "factor", "last", "merges", "seen", "since")

    def __init__(self, factor: float) -> None:
        self.factor = factor
        self.since = 0
        """The number of rounds whose factors are not applied yet."""
        self.last = 0
        """The number of rounds when forgetting was last applied."""
        self.merges = 1.0
        """The factor by which delta shrinks because of merges."""
        self.seen: int | None = None
        """The round of a shared clock up to which ``since`` counts; None if the clock is not shared."""
        self._at_rebuild, self._at_the_latest = (
            max(1, math.ceil(math.log(left) / math.log(factor))) for left in (_AT_A_REBUILD, _AT_THE_LATEST)
        )

    def is_due(self, count: int, change: Change, sketch: Sketch) -> bool:
        """Count more rounds, and say whether forgetting is due now.

        A dense matrix takes rows in without a rebuild, so there it waits for the latest moment.
        """
        self.since += count
        if self.since < self._at_rebuild:
            return False
        return self.since >= self._at_the_latest or (change.rebuilt and not sketch.is_dense)

    def follow(self, now: int) -> None:
        """Count the rounds of a shared clock up to now."""
        self.since += now - (now if self.seen is None else self.seen)
        self.seen = now

    def rounds_left(self, now: int) -> int:
        """The rounds of a shared clock until forgetting is due at the latest."""
        return self._at_the_latest - self.since - (now - (now if self.seen is None else self.seen))

    def room(self, sketch: Sketch) -> int:
        """The number of rounds that can be learned at once before forgetting may be due."""
        return max(1, min(self._at_the_latest - self.since, sketch.plain_room))

    def strike(self, rounds: int) -> float:
        """Return the collected factor, to be applied after ``rounds`` rounds, and start collecting again."""
        factor = max(math.pow(self.factor, self.since), _LEAST)
        self.since, self.last = 0, rounds
        return factor

    def careful(self, confidence: Confidence) -> Confidence:
        """The confidence with the delta that is left at this moment."""
        return confidence.after_forgetting(self.last, merges=self.merges)

    def add(self, other: "Clock", rounds: int) -> None:
        """Merge with a clock of the same factor. Neither may have factors to apply."""
        for clock in (self, other):
            self.merges *= (clock.last + 1.0) * (clock.last + 2.0)
        self.merges = min(self.merges * other.merges, _MOST)
        self.last = rounds

    def dump(self) -> Sequence[float]:
        """The values that ``undump`` takes."""
        own = self.factor, self.since, self.last, self.merges
        return own if self.seen is None else (*own, self.seen)

    @classmethod
    def undump(cls, saved: Sequence[float]) -> "Clock":
        """The clock that ``dump`` described."""
        factor, since, last, merges, *seen = saved
        clock = cls(check_real("the factor of forgetting", factor, above=0.0, below=1.0))
        clock.since = check_count("rounds to be forgotten", since, at_least=0)
        clock.last = check_count("the round of the last forgetting", last, at_least=0)
        clock.merges = check_real("the share of delta for merges", merges, at_least=1.0)
        if seen:  # not in files of 0.14
            clock.seen = check_count("the round of the shared clock", seen[0], at_least=0)
        return clock


Beta = float | Confidence | Auto


class Step(NamedTuple):
    """What one reward did."""

    change: Change
    """What it did to the rows of the sketch."""
    error: float
    """The reward less its prediction; NaN if there is no fast way to predict it."""
    quadratic: float
    """x'A^-1 x before; -1 for a zero arm, of which nothing is learned."""


class Posterior:
    """theta = A^-1 b and its uncertainty A^-1, with A = (ridge + alpha) I + S'S.

    Attributes
    ----------
    precision : Precision
        A^-1, with the sketch that holds S and alpha.
    estimate : Estimate
        The reward model.
    ridge : float
        lambda.
    beta : float, Confidence or "auto"
        The factor on widths, as it was given.
    forget : float or None
        The factor by which old rounds are forgotten per round.
    clock : Clock or None
        When that is applied.
    rounds : int
        The number of rewards learned from.
    owns_scale : bool
        Whether the scale of the rewards is its own. The models of a ``PerAction`` share one.

    """

    def __init__(
        self,
        sketch: Sketch,
        estimate: Estimate,
        *,
        ridge: float,
        beta: Beta,
        forget: float | None,
        saved: Saved | None = None,
    ) -> None:
        if forget is not None:
            check_can_forget(sketch, estimate)
        self.forget = forget
        self.ridge = check_real("ridge", ridge, above=0.0)
        self.beta = check_strength("beta", beta)
        self.owns_scale = True
        self._begin(sketch, estimate, estimate.make_scale(baseline=False), saved)

    def _begin(
        self, sketch: Sketch, estimate: Estimate, scale: RewardScale, saved: Saved | None = None
    ) -> None:
        is_theorem = isinstance(self.beta, Confidence)
        self.precision = Precision(sketch, self.ridge, with_determinant=is_theorem, saved=saved)
        self.estimate = estimate
        self._checks_rewards = type(estimate).check_reward is not Estimate.check_reward
        estimate.reward_scale = scale
        estimate.bind(self.precision)
        self.clock = None if self.forget is None else Clock(self.forget)
        self.rounds = 0
        self._follow_beta()

    def begin_again(self, sketch: Sketch, estimate: Estimate) -> None:
        """Start again with nothing learned. A shared scale of the rewards stays."""
        sketch._lock = self.sketch._lock
        scale = self.scale if not self.owns_scale else estimate.make_scale(baseline=self.scale.baseline)
        self._begin(sketch, estimate, scale)

    def blank_estimate(self) -> Estimate:
        """A copy of the reward model that is bound to no precision and has learned nothing."""
        estimate = copy.copy(self.estimate)
        del estimate.precision, estimate.reward_scale
        estimate.reward_mass = estimate.arm_lengths = 0.0
        return copy.deepcopy(estimate)

    # -- settings -----------------------------------------------------------------------------------

    @property
    def sketch(self) -> Sketch:
        """The sketch of the arms."""
        return self.precision.sketch

    @property
    def scale(self) -> RewardScale:
        """Location and spread of the rewards."""
        return self.estimate.reward_scale

    def share_scale(self, scale: RewardScale) -> None:
        """Use a scale that belongs to somebody else."""
        self.estimate.reward_scale, self.owns_scale = scale, False

    def count_from(self, now: int) -> None:
        """Start counting at this round of a shared clock, unless the own clock counts already."""
        if self.clock is not None and self.clock.seen is None:
            self.clock.seen = now

    def use_baseline(self, baseline: bool, rule: Explore) -> None:
        """Learn from rewards less their mean, or as they are. Nothing may be learned yet."""
        if baseline == self.scale.baseline:
            return
        if baseline:
            check_baseline(rule, self.beta, self.estimate)
        self.estimate.reward_scale = self.estimate.make_scale(baseline=baseline)
        self.estimate.bind(self.precision)

    def explore_by(self, rule: Explore) -> None:
        """Take the factor on widths from a rule. A rule without one gets the present one."""
        estimate = self.estimate
        if self.scale.baseline:
            check_baseline(rule, self.beta if rule.beta is None else rule.beta, estimate)
        if rule.beta is None and "beta" in setting_names(type(rule)):
            rule.beta = self.beta
        beta = check_strength("beta", self.beta if rule.beta is None else rule.beta)
        if isinstance(beta, Confidence):
            if not math.isfinite(self.sketch.error_bound):
                raise InputError(
                    f"{type(self.sketch).__name__} certifies no error, so no theorem gives its radius; give "
                    "a constant beta"
                )
            estimate.check_confidence(beta)
            if estimate.weighs and isinstance(getattr(rule, "gamma", None), Confidence):
                raise InputError(
                    f"no theorem gives gamma for {type(estimate).__name__} rewards; give "
                    f"{type(rule).__name__} a number"
                )
        self.beta = beta
        self._follow_beta()

    def _follow_beta(self) -> None:
        self._radius = self.beta if isinstance(self.beta, float) else math.nan
        self._radius_at = (-1, -1)  # (rebuilds, rounds) for which a theorem's radius was computed

    @property
    def radius(self) -> float:
        """The factor on widths in the next choice."""
        beta = self.beta
        if beta == "auto":
            estimate = self.estimate
            return STRENGTH if estimate.is_normalised else estimate.reward_scale.radius
        if isinstance(beta, Confidence):
            self.precision.sync()
            now = self.precision.rebuilds, self.rounds
            if self._radius_at != now:
                careful = beta if self.clock is None else self.clock.careful(beta)
                self._radius, self._radius_at = self.estimate.radius(careful), now
        return self._radius

    # -- asking ---------------------------------------------------------------------------------------

    def scan(self, arms: Arms) -> Scan:
        """Means and norms. Raises unless all of them are finite."""
        self.precision.sync()  # a user's own reward model may not do this
        with np.errstate(over="ignore", invalid="ignore"):
            scan = self.estimate.scan(arms)
        if not (np.isfinite(scan.norms_sq).all() and np.isfinite(scan.means).all()):
            raise refuse(arms, scan.norms_sq, scan.means)
        return scan

    def candidates(self, arms: Arms, direction: Vector | None = None) -> ArmCandidates:
        """The arms as a rule sees them. Raises unless all scores are finite.

        ``direction`` is the draw that a batch of requests shares.
        """
        radius, scan, estimate = self.radius, self.scan(arms), self.estimate
        with np.errstate(over="ignore"):
            most = np.abs(scan.means).max() + radius * np.sqrt(scan.norms_sq.max() / self.precision.shift)
        if not math.isfinite(most):
            raise refuse(arms, scan.norms_sq, scan.means)
        expected = estimate.expected if estimate.has_link else None
        return ArmCandidates(
            scan,
            self.precision,
            radius,
            expected=expected,
            baseline=estimate.baseline,
            direction=direction,
        )

    def search(
        self, arms: View, rule: Explore, random: np.random.Generator, direction: Vector | None = None
    ) -> int | None:
        """The rule's choice among dense arms in compiled calls; None if that is impossible."""
        if rule.chooses_by == "bound":
            theta = self.estimate.linear_theta
            return None if theta is None else self.precision.search(arms, theta, self.radius)
        asked = self.ask(rule, direction)
        return None if asked is None else search(asked, arms, random)

    def ask(self, rule: Explore, direction: Vector | None = None) -> Question | None:
        """What the loops need to know to choose by this rule; None if margins are not x'theta."""
        theta = self.estimate.linear_theta
        if theta is None or (rule.by_rewards and self.estimate.has_link):
            return None
        return Question(rule, theta, self.precision, self.radius, direction)

    # -- learning -----------------------------------------------------------------------------------

    def check_many(self, batch: RowBatch, rewards: Vector) -> None:
        """Raise if an arm or a reward cannot be learned from. What passes is never refused later."""
        estimate = self.estimate
        if self._checks_rewards:
            for reward in rewards.tolist():
                estimate.check_reward(reward)
        self.sketch.row_stats.check(batch.mass * estimate.most_weight)
        with np.errstate(over="ignore"):
            if len(rewards):
                far = max(rewards.tolist(), key=lambda reward: abs(reward - self.scale.origin))
                length = float(np.sqrt(batch.mass * len(rewards)))
                estimate.check_mass(estimate.mass_with(far, length))

    def learn(
        self,
        x: AnyVector,
        row: AnyArray,
        norm_sq: float,
        reward: float,
        leverage: Leverage | None = None,
        *,
        predicts: bool = True,
    ) -> Step:
        """Learn from one arm x and its reward; forget where that is due.

        ``row`` is x as the sketch stores it, (1, dim). ``leverage`` is that of x, if it is known. The error
        of the prediction is found if ``predicts``. Raises, and changes nothing, if the arm or the reward
        cannot be used.
        """
        if not norm_sq + abs(reward) < math.inf:  # NaN ends here too
            raise _refused(norm_sq, reward)
        if self._checks_rewards:
            self.estimate.check_reward(reward)
        precision, estimate = self.precision, self.estimate
        scale, length = estimate.reward_scale, math.sqrt(norm_sq)
        total = estimate.mass_with(reward, length)
        if not total < estimate.most_reward_mass:
            estimate.check_mass(total)  # raises, with the reason
        sketch = precision.sketch
        if not sketch.row_stats.mass + norm_sq * estimate.most_weight <= sketch.row_stats.most_mass:
            sketch.row_stats.check(norm_sq * estimate.most_weight)
        estimate.prepare(x)  # nothing is refused from here on
        if not scale.has_begun:
            scale.begin(reward)
        if not norm_sq:  # a zero arm: no direction to learn about
            step = Step(sketch.take_one(row, norm_sq), math.nan, -1.0)
            precision.nothing_changed()
            scale.see(reward)
        else:
            if leverage is None:
                leverage = precision.leverage(x, norm_sq)
            quadratic = precision.inverse.quadratic(leverage, norm_sq)
            change, error = self._take(x, row, norm_sq, reward, leverage, predicts=predicts)
            estimate.arm_lengths += length
            estimate.reward_mass += abs(reward) * length
            step = Step(change, error, quadratic)
        self.rounds += 1
        clock = self.clock
        if clock is not None and clock.is_due(1, step.change, sketch):
            self.forget_now(orthogonal=step.change.orthogonal)
        return step

    def _take(
        self,
        x: AnyVector,
        row: AnyArray,
        norm_sq: float,
        reward: float,
        leverage: Leverage,
        *,
        predicts: bool,
    ) -> tuple[Change, float]:
        """Let the sketch take x, or sqrt(weight)·x, and learn. Returns the prediction error too, or NaN."""
        precision, estimate = self.precision, self.estimate
        if estimate.weighs:
            error = reward - estimate.predict(x, leverage) if predicts else math.nan
            weight = estimate.weight(x, norm_sq, reward, leverage)
            if not 0.0 <= weight <= estimate.most_weight:  # NaN ends here too
                raise InputError(
                    f"{type(estimate).__name__}.weight must return a number from 0 to most_weight "
                    f"({estimate.most_weight:g}), got {weight}"
                )
            change = take_weighted(precision, x, row, norm_sq, weight=weight, leverage=leverage)
            estimate.reward_scale.see(reward)
            estimate.learn(x, reward, None)
            return change, error
        inverse = precision.inverse
        change = precision.sketch.take_one(row, norm_sq, precision.products_of(leverage))
        follows = inverse.follows(change, norm_sq)
        fused = estimate.learn_fused(x, norm_sq, leverage, reward) if follows else None
        if fused is not None:
            estimate.reward_scale.see(reward)
            precision.grown(x, norm_sq, leverage, change)
            return change, fused
        error = reward - estimate.predict(x, leverage) if predicts else math.nan
        estimate.reward_scale.see(reward)
        step = inverse.append(x, norm_sq, leverage) if follows else None
        if follows:
            precision.grown(x, norm_sq, leverage, change)
        else:
            precision.rebuild(orthogonal=change.orthogonal)
        estimate.learn(x, reward, step)
        return change, error

    def learn_many(self, rows: AnyArray, norms_sq: Vector, rewards: Vector) -> Change:
        """Learn from many checked rows of the sketch's dtype; forget where that is due.

        With a clock, give at most ``clock.room`` rows.
        """
        precision, estimate, change = self.precision, self.estimate, NO_CHANGE
        if estimate.weighs or len(rows) < precision.rows_worth_a_rebuild:
            for i, (norm_sq, reward) in enumerate(zip(norms_sq.tolist(), rewards.tolist(), strict=True)):
                x = rows[i].astype(np.float64, copy=False)
                step = self.learn(x, rows[i : i + 1], norm_sq, reward, predicts=False)
                change = change.then(step.change)
            return change
        change = precision.sketch.take(rows, norms_sq)
        precision.rebuild()
        for norm_sq, reward in zip(norms_sq.tolist(), rewards.tolist(), strict=True):
            estimate.reward_scale.see(reward)
            estimate.arm_lengths += math.sqrt(norm_sq)
            estimate.reward_mass += abs(reward) * math.sqrt(norm_sq)
        estimate.learn_many(rows.astype(np.float64, copy=False), rewards)
        self.rounds += len(rewards)
        clock = self.clock
        if clock is not None and clock.is_due(len(rewards), change, self.sketch):
            self.forget_now(orthogonal=change.orthogonal)
        return change

    # -- forgetting ---------------------------------------------------------------------------------

    def forget_now(self, *, orthogonal: bool = False) -> None:
        """Apply the forgetting that the clock has gathered: multiply all weights, except the ridge."""
        assert self.clock is not None  # noqa: S101  (for the type checker)
        factor, estimate = self.clock.strike(self.rounds), self.estimate
        self.sketch.forget(factor)
        self.precision.rebuild(orthogonal=orthogonal)
        estimate.forget(factor)
        estimate.reward_mass *= factor
        estimate.arm_lengths *= factor
        if self.owns_scale:
            self.scale.forget(factor)

    def forget_until(self, now: int) -> None:
        """Count the rounds of a shared clock up to now. Forget if that is due, before the next reward."""
        clock = self.clock
        if clock is not None:
            is_due = clock.rounds_left(now) <= 0
            clock.follow(now)
            if is_due:
                self.forget_now()

    # -- merging ------------------------------------------------------------------------------------

    def check_mergeable(self, other: "Posterior") -> None:
        """Raise with the first setting that differs."""
        for name, mine, theirs in (
            ("ridge", self.ridge, other.ridge),
            ("beta", self.beta, other.beta),
            ("rewards", type(self.estimate), type(other.estimate)),
            ("forget", self.forget, other.forget),
            ("baseline", self.scale.baseline, other.scale.baseline),
        ):
            if mine != theirs:
                here, there = (v.__name__ if isinstance(v, type) else v for v in (mine, theirs))
                raise MergeError(f"cannot merge policies: {name} is {here!r} here and {there!r} there")
        if self.estimate.settings() != other.estimate.settings():
            raise MergeError(
                f"cannot merge policies: rewards is {self.estimate!r} here and {other.estimate!r} there"
            )

    def merge(self, other: "Posterior") -> None:
        """Add what another posterior with the same settings has learned, or raise and change nothing."""
        self.estimate.check_mergeable()
        self.estimate.check_mass(self.estimate.mass_with_all_of(other.estimate))
        if self.clock is not None and other.clock is not None:
            self.sketch._check_same_kind(other.sketch)
            self.sketch._check_mergeable(other.sketch)
            self.sketch.row_stats.check(other.sketch.row_stats.mass)
            other = copy.deepcopy(other)
            for posterior in (self, other):  # so that both have the weights of today
                if posterior.clock is not None and posterior.clock.since:
                    posterior.forget_now()
            assert other.clock is not None  # noqa: S101  (for the type checker)
            self.clock.add(other.clock, self.rounds + other.rounds)
        self.sketch.merge(other.sketch)  # raises before it changes anything
        self.precision.rebuild()
        if self.owns_scale:
            self.scale.add(other.scale)
        self.estimate.add(other.estimate)
        self.estimate.reward_mass += other.estimate.reward_mass
        self.estimate.arm_lengths += other.estimate.arm_lengths
        self.rounds += other.rounds

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays held, including those of the sketch."""
        return self.precision.nbytes + self.estimate.nbytes + self.sketch.nbytes


def refused(arm: AnyArray, norm_sq: float) -> InputError:
    """The error for one dense arm that is not finite."""
    return refuse(DenseArms(arm[np.newaxis]), np.array([norm_sq]))


def _refused(norm_sq: float, reward: float) -> InputError:
    if not math.isfinite(reward):
        return InputError(f"the reward is {reward}; rewards must be finite")
    return InputError(
        f"the arm's squared length is {norm_sq:g} and its reward is {reward:g}; rescale arms and rewards"
    )
