"""Fixed policies judged by a log: as they are, or after they have learned from another part of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from inspect import signature
from itertools import pairwise
from typing import Any

import numpy as np

from sketchbandit.errors import InputError, InputTypeError
from sketchbandit.evaluation import sequences
from sketchbandit.evaluation.bounded import Bounded, Selected
from sketchbandit.evaluation.estimators import METHODS, Sample, methods_of
from sketchbandit.evaluation.intervals import (
    NOTHING,
    Assumed,
    Bootstrap,
    Interval,
    Intervals,
    Normal,
    check_weights,
)
from sketchbandit.evaluation.log import Log
from sketchbandit.evaluation.models import FOLDS, PAST, fit
from sketchbandit.evaluation.results import LOGGED, Difference, Estimate, Evaluation
from sketchbandit.evaluation.sequences import Anytime, check_range
from sketchbandit.evaluation.target_policies import candidates_of, check_makers, train
from sketchbandit.evaluation.terms import Tell, Terms, logged_terms, one_blas_thread, terms_of
from sketchbandit.evaluation.weights import Weights, common_reward, undecided, weights_of
from sketchbandit.sketch.checks import check_count, check_real

BOUNDED = "bounded"
INTERVALS = (BOUNDED, "normal", "bootstrap", "anytime")


@dataclass(frozen=True)
class Settings:
    """The settings of an evaluation, apart from log and candidates."""

    methods: Sequence[str] = ("ips", "snips", "dr")
    model: object = "ridge"
    folds: int | str | None = None
    interval: str = BOUNDED
    level: float = 0.95
    reward_range: tuple[float, float] | None = None
    max_weight: float | None = None
    draws: int = 1000
    seed: int = 0

    def __post_init__(self) -> None:
        methods = methods_of(self.methods)
        object.__setattr__(self, "methods", tuple(methods))
        if self.interval not in INTERVALS:
            raise InputError(f"unknown interval {self.interval!r}; choose from {', '.join(INTERVALS)}")
        check_real("level", self.level, above=0.0, below=1.0)
        check_count("draws", self.draws, at_least=2)
        if self.max_weight is not None:
            check_real("max_weight", self.max_weight, above=0.0)
        if self.reward_range is not None:
            object.__setattr__(self, "reward_range", check_range(self.reward_range))
        if self.interval != "anytime":
            return
        without = [name for name in methods if name not in sequences.ANYTIME_METHODS]
        if without:
            raise InputError(
                f"there is no any-time interval for {', '.join(without)}; use methods=('ips',), or 'dr' with "
                "max_weight"
            )
        if self.folds not in (None, PAST):
            raise InputError(
                f"an any-time interval needs models of the past only; use folds='past', got {self.folds!r}"
            )

    @property
    def needs_model(self) -> bool:
        """Whether a method needs a reward model."""
        return any(METHODS[name].needs_model for name in self.methods)

    @property
    def how_folded(self) -> int | str:
        """The folds, or "past", which any-time intervals need."""
        if self.folds is not None:
            return self.folds
        return PAST if self.interval == "anytime" else FOLDS

    def range_of(self, log: Log) -> tuple[float, float]:
        """The smallest and largest possible reward, as given.

        If not given: for any-time intervals 0 to 1, if all rewards are in it; otherwise those in the log.
        """
        low, high = float(log.reward.min()), float(log.reward.max())
        if self.interval != "anytime":
            return range_with(self.reward_range, low, high)
        if self.reward_range is not None:
            return self.reward_range
        if not 0.0 <= low <= high <= 1.0:
            raise InputError(
                f"rewards are from {low:g} to {high:g}; an any-time interval needs reward_range="
                "(least, most), the smallest and largest possible reward"
            )
        return 0.0, 1.0


def range_with(given: tuple[float, float] | None, low: float, high: float) -> tuple[float, float]:
    """The range of rewards that go from ``low`` to ``high``: as given, or just this."""
    if given is None:
        return (0.0, 1.0) if low == high and 0.0 <= low <= 1.0 else (low, high)
    if not given[0] <= low <= high <= given[1]:
        raise InputError(
            f"rewards are from {low:g} to {high:g}, and reward_range is {given[0]:g} to {given[1]:g}: give "
            "the range that no reward leaves"
        )
    return given


_RARE = 10  # one reward of so many is worth counting by itself


# -- fixed policies, or such that learn first ----------------------------------------------------


def evaluate(
    log: Log,
    policies: Mapping[str, object],
    methods: Sequence[str] = ("ips", "snips", "dr"),
    *,
    tell: Tell = lambda _: None,
    **settings: Any,
) -> Evaluation:
    """Estimate the mean reward per decision of fixed policies, had they made the decisions of the log.

    The policies learn nothing more. A policy that has learned from rows of this log is refused; use
    ``train_and_judge``, which learns from some rows and judges on others. What a policy earns *while it
    learns* is another question; use ``replay``.

    Parameters
    ----------
    log : Log
        The logged decisions.
    policies : dict
        The candidates by name. A candidate is a policy, with its exploration rule. Or a function from arms
        (arms, dim) to probabilities (``Batched``: for many sets at once). Or an array of probabilities,
        (decisions, arms) or (arms,). Or "uniform". Or the name of an action: always this one.
    methods : sequence of str
        The estimators: "dm", "ips", "clipped", "snips", "dr", "switch-dr", "drs", "drs-pessimistic".
    tell : callable, optional
        Called with the number of further decisions done, for a progress bar.
    model : "ridge", Ridge, scikit-learn estimator, or function
        The reward model for "dm" and the doubly robust methods. A function of rows (n, dim) is used as it is.
        All others are cross-fitted.
    folds : int or "past"
        How the reward model is cross-fitted. An int: the log is cut into so many parts, and each is predicted
        by a model of the others. "past": each row is predicted by a model of rows before it. Default 3.
    interval : {"bounded", "normal", "bootstrap", "anytime"}
        The kind of confidence interval. The first three are for a log whose length was fixed in advance.
        "bounded", the default, holds for rare rewards and heavy weights too (docs/coverage.md has its
        coverage); "normal" and "bootstrap" do not. "anytime" holds however often one looks and whenever one
        stops. It exists for "ips", and for "dr" with ``max_weight``.
    level : float
        The confidence level. Default 0.95.
    reward_range : (float, float)
        The smallest and largest possible reward. Default: for "bounded" those in the log; for "anytime"
        (0, 1), if all rewards are in it.
    max_weight : float
        An upper bound on all weights. For a log with a floor it is K/floor. "anytime" with "dr" needs it.
        Default for "bounded": the mean weight of decisions as the candidate makes them, (Σ w²)/(Σ w), or that
        of the heaviest if few decisions carry the sum.
    draws, seed : int
        The number of bootstrap samples, and their seed. Default 1,000 and 0.

    Returns
    -------
    Evaluation
        A sequence of rows ``Estimate(policy, method, value, low, high, effective_size)``.

    Examples
    --------
    >>> import numpy as np
    >>> random = np.random.default_rng(0)
    >>> arms = random.standard_normal((4000, 5, 3))
    >>> chosen = random.integers(5, size=4000)
    >>> reward = 1.0 + arms[np.arange(4000), chosen] @ [0.3, -0.1, 0.2]
    >>> log = Log(arms=arms, chosen=chosen, reward=reward, probability=np.full(4000, 0.2))
    >>> evaluate(log, {"first": lambda arms: [1, 0, 0, 0, 0], "uniform": "uniform"}, methods=("snips", "dr"))
    policy   method  value  95% interval    effective size
    logged   mean    0.996  0.984 to 1.008  4,000
    first    snips   0.977  0.948 to 1.005  825
    first    dr      0.987  0.969 to 1.006  825
    uniform  snips   0.996  0.984 to 1.008  4,000
    uniform  dr      1.000  0.994 to 1.007  4,000

    """
    chosen = Settings(methods=methods, **settings)
    candidates = candidates_of(log, policies)
    limits = chosen.range_of(log) if chosen.interval == "anytime" else None
    with one_blas_thread():
        models = fit(log, chosen.model, chosen.how_folded) if chosen.needs_model else None
        return conclude(log, terms_of(log, candidates, models, limits=limits, tell=tell), chosen)


def train_and_judge(
    log: Log,
    makers: Mapping[str, object],
    methods: Sequence[str] = ("ips", "snips", "dr"),
    *,
    split: float | None = None,
    parts: int | None = None,
    tell: Tell = lambda _: None,
    **settings: Any,
) -> Evaluation:
    """Estimate the mean reward of policies that learn from one part of the log, on another part.

    Parameters
    ----------
    log : Log
        The logged decisions.
    makers : dict
        By name, a function without arguments that returns a fresh policy. "uniform" can be added:
        ``{"mine": lambda: sb.adaptive(20), "uniform": "uniform"}``.
    methods : sequence of str
        As for ``evaluate``.
    split : float, optional
        The share at the beginning of the log to learn from. The rest is for judging. Default 0.5, unless
        ``parts`` is given.
    parts : int, optional
        Use instead of a split. The log is cut into so many parts. Each part judges policies that have learned
        from all others. So every row is used for judging, and the policies judged have learned from
        (parts - 1)/parts of the log. They also see rows that come after those they are judged on, so use it
        for logs in which time does not matter.
    tell, settings
        As for ``evaluate``.

    Returns
    -------
    Evaluation
        As for ``evaluate``.

    Examples
    --------
    >>> import sketchbandit as sb
    >>> random = np.random.default_rng(0)
    >>> arms, chosen = random.standard_normal((2000, 5, 3)), random.integers(5, size=2000)
    >>> reward = arms[np.arange(2000), chosen] @ [0.3, -0.1, 0.2]
    >>> log = Log(arms=arms, chosen=chosen, reward=reward, probability=np.full(2000, 0.2))
    >>> found = train_and_judge(log, {"oful": lambda: sb.oful(3)}, methods=("snips",))
    >>> found.difference("oful").is_clear
    True

    """
    chosen = Settings(methods=methods, **settings)
    with one_blas_thread():
        judging, terms = judged(log, makers, chosen, split=split, parts=parts, tell=tell)
        return conclude(judging, terms, chosen)


def judged(
    log: Log,
    makers: Mapping[str, object],
    settings: Settings,
    *,
    split: float | None = None,
    parts: int | None = None,
    tell: Tell = lambda _: None,
) -> tuple[Log, dict[str, Terms]]:
    """The rows used for judging, and the terms of every candidate on them."""
    check_makers(makers)
    judging = judging_rows(log, settings, split=split, parts=parts)
    if parts is None:
        past = log.part(0, judging.start - log.start)
        return judging, _terms(judging, [past], makers, settings, tell)
    ends = [len(log) * number // parts for number in range(parts + 1)]
    found = []
    for start, stop in pairwise(ends):
        others = [log.part(*some) for some in ((0, start), (stop, len(log))) if some[0] < some[1]]
        found.append(_terms(log.part(start, stop), others, makers, settings, tell))
    return judging, {name: _joined([part[name] for part in found]) for name in makers}


def judging_rows(
    log: Log, settings: Settings, *, split: float | None = None, parts: int | None = None
) -> Log:
    """The rows used for judging: those after the split, or all."""
    if parts is None:
        return log.split(0.5 if split is None else split)[1]
    if split is not None:
        raise InputError("split learns from the beginning, parts from all other parts; give only one of them")
    if settings.interval == "anytime":
        raise InputError(
            "any-time intervals need policies that learned from earlier rows; give split instead of parts"
        )
    if check_count("parts", parts, at_least=2) > len(log):
        raise InputError(f"{len(log)} decisions cannot be cut into {parts} parts; give fewer parts")
    return log


def _terms(
    log: Log, learned: Sequence[Log], makers: Mapping[str, object], settings: Settings, tell: Tell
) -> dict[str, Terms]:
    """The terms of fresh policies on a log, after they have learned from others."""
    policies = {name: _made(name, given, learned) for name, given in makers.items()}
    models = fit(log, settings.model, settings.how_folded) if settings.needs_model else None
    limits = settings.range_of(log) if settings.interval == "anytime" else None
    return terms_of(log, candidates_of(log, policies), models, limits=limits, tell=tell)


def _made(name: str, given: object, learned: Sequence[Log]) -> object:
    """A fresh policy that has learned. Anything that is not a maker is returned as it is."""
    if hasattr(given, "probabilities"):
        raise InputTypeError(
            f"{name} is a policy, not a maker; give a function that returns a fresh policy, or judge this "
            "policy with evaluate"
        )
    if not callable(given) or isinstance(given, tuple):
        return given
    try:
        signature(given).bind()
    except TypeError as error:
        raise InputTypeError(
            f"{name}: a maker takes no arguments and returns a policy; judge something that does not learn "
            "with evaluate, or give it here as Batched(function)"
        ) from error
    fresh = given()
    if not hasattr(fresh, "update"):
        raise InputTypeError(f"{name}: the maker must return a policy, got {type(fresh).__name__}")
    if getattr(fresh, "rounds", 0):
        raise InputError(
            f"{name}: the maker returned a policy that has learned {fresh.rounds} rewards; return a fresh one"
        )
    return train(fresh, *learned)


def _joined(parts: Sequence[Terms]) -> Terms:
    """Concatenate the terms of one candidate over the parts."""
    reward, weight, predicted, value = (
        np.concatenate([getattr(part, name) for part in parts])
        for name in ("reward", "weight", "predicted", "value")
    )
    unlogged = sum(part.unlogged * len(part) for part in parts) / len(reward)
    return Terms(reward, weight, predicted, value, unlogged)


# -- estimates with intervals --------------------------------------------------------------------


def conclude(log: Log, terms: Mapping[str, Terms], settings: Settings) -> Evaluation:
    """Estimates from the terms of the candidates.

    The interval of a biased method is that of its unbiased counterpart, extended to include the value. The
    part that was taken from the weights, or left to the model, is not known any better.
    """
    maker = logged_terms(log, next(iter(terms.values())).predicted)
    common = common_reward(log.reward)
    is_normal = settings.interval in ("normal", "bootstrap")
    weights = {name: weights_of(found, log, common, is_normal=is_normal) for name, found in terms.items()}
    selected = {name: Selected(common, found.uncommon) for name, found in weights.items()}
    with_log = {LOGGED: maker, **terms}
    unbiased = {name: METHODS[name].counterpart or name for name in settings.methods}
    samples = {
        (name, method): METHODS[method].sample(found)
        for name, found in with_log.items()
        for method in dict.fromkeys([*unbiased, *unbiased.values()])
    }
    intervals = _intervals(with_log, samples, selected, log, settings)

    def extended(ends: Interval, method: str, value: float) -> Interval:
        return ends if unbiased[method] == method else ends.stretched(value)

    rows = []
    for name, found in weights.items():
        for method in settings.methods:
            value, ends = samples[name, method].value, NOTHING
            if has_interval(found, settings):
                ends = extended(intervals.interval(name, unbiased[method]), method, value)
            rows.append(Estimate(name, method, value, *ends, found.effective_size))

    def compare(policy: str, other: str, method: str) -> Difference:
        for name in (policy, other):
            if name != LOGGED and name not in terms:
                raise InputError(f"unknown policy {name!r}; there are {LOGGED}, {', '.join(terms)}")
        if method not in settings.methods:
            raise InputError(f"{method!r} was not asked for; there are {', '.join(settings.methods)}")
        value = samples[policy, method].value - samples[other, method].value
        named = [(name, weights[name]) for name in (policy, other) if name != LOGGED]
        silent = [f"{name}: {found.verdict}" for name, found in named if not has_interval(found, settings)]
        if silent:
            return Difference(policy, other, method, value, *NOTHING, "; ".join(silent))
        ends = extended(intervals.difference(policy, other, unbiased[method]), method, value)
        return Difference(policy, other, method, value, *ends, _undecided(value, ends, log, common))

    logged = Estimate(LOGGED, "mean", float(log.reward.mean()), *intervals.of_log(), float(len(log)))
    return Evaluation(
        rows,
        logged=logged,
        weights=weights,
        interval=settings.interval,
        level=settings.level,
        compare=compare,
        notes=_notes(log, settings),
    )


def has_interval(weights: Weights, settings: Settings) -> bool:
    """Whether there is an interval. An any-time interval holds for few decisions too."""
    return not weights.verdict or (settings.interval == "anytime" and weights.is_covered)


def _undecided(value: float, ends: Interval, log: Log, common: float) -> str:
    """Why a difference is not clear, and how many more decisions would decide; empty if it is clear."""
    if np.isnan(ends.low) or ends.low > 0.0 or ends.high < 0.0:
        return ""
    count, told = len(log), int((log.reward != common).sum())
    seen = f"{told:,} rewards other than {common:g}" if _RARE * told < count else f"{count:,} decisions"
    return undecided(seen, count, value, value - ends.low if value > 0.0 else ends.high - value)


def _intervals(
    terms: Mapping[str, Terms],
    samples: Mapping[tuple[str, str], Sample],
    selected: Mapping[str, Selected],
    log: Log,
    settings: Settings,
) -> Intervals:
    """The intervals of the kind that is asked for."""
    check_weights(terms, settings.max_weight)
    level, assumed = settings.level, Assumed(settings.range_of(log), settings.max_weight)
    if settings.interval == "anytime":
        return Anytime(terms, level, assumed)
    if settings.interval == "bounded":
        return Bounded(terms, level, assumed, selected)
    if settings.interval == "bootstrap":
        return Bootstrap(samples, log.reward, level, draws=settings.draws, seed=settings.seed)
    return Normal(samples, log.reward, level)


def _notes(log: Log, settings: Settings) -> list[str]:
    notes = [f"{count:,} row{'s' * (count > 1)} left out: {why}" for why, count in log.left_out.items()]
    low, high = settings.range_of(log)
    within = f"rewards lie within {low:g} and {high:g}"
    if settings.interval == "anytime":
        notes.append(f"any-time intervals: {within}, and logged probabilities are true")
    else:
        notes.append(f"{settings.interval} intervals: for a log whose length was fixed beforehand")
    if settings.interval == "bounded":
        most = "" if settings.max_weight is None else f", and weights are at most {settings.max_weight:g}"
        notes.append(within + most)
    if settings.needs_model:
        folds = settings.how_folded
        folded = "the rows before" if folds == PAST else f"all but its own of {folds} parts"
        notes.append(f"the model of the rewards predicts each row from {folded}")
    return notes
