"""What is asked of an evaluation, and the estimates with intervals from the terms of the candidates."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from sketchbandit.errors import InputError
from sketchbandit.evaluation import sequences
from sketchbandit.evaluation.bounded import Bounded, Selected
from sketchbandit.evaluation.estimators import METHODS, methods_of
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
from sketchbandit.evaluation.models import FOLDS, PAST
from sketchbandit.evaluation.results import LOGGED, Difference, Estimate, Evaluation
from sketchbandit.evaluation.sequences import Anytime, check_range
from sketchbandit.evaluation.terms import Terms, logged_terms
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


def conclude(log: Log, terms: Mapping[str, Terms], settings: Settings) -> Evaluation:
    """Estimates from the terms of the candidates."""
    maker = logged_terms(log, next(iter(terms.values())).predicted)
    common = common_reward(log.reward)
    is_normal = settings.interval in ("normal", "bootstrap")
    weights = {name: weights_of(found, log, common, is_normal=is_normal) for name, found in terms.items()}
    selected = {name: Selected(common, found.uncommon) for name, found in weights.items()}
    judge = _Judge({LOGGED: maker, **terms}, selected, log, settings)
    rows = []
    for name, found in weights.items():
        for method in settings.methods:
            ends = judge.interval(name, method) if has_interval(found, settings) else NOTHING
            rows.append(Estimate(name, method, judge.value(name, method), *ends, found.effective_size))

    def compare(policy: str, other: str, method: str) -> Difference:
        for name in (policy, other):
            if name != LOGGED and name not in terms:
                raise InputError(f"unknown policy {name!r}; there are {LOGGED}, {', '.join(terms)}")
        if method not in settings.methods:
            raise InputError(f"{method!r} was not asked for; there are {', '.join(settings.methods)}")
        value = judge.value(policy, method) - judge.value(other, method)
        named = [(name, weights[name]) for name in (policy, other) if name != LOGGED]
        silent = [f"{name}: {found.verdict}" for name, found in named if not has_interval(found, settings)]
        if silent:
            return Difference(policy, other, method, value, *NOTHING, "; ".join(silent))
        ends = judge.difference(policy, other, method)
        return Difference(policy, other, method, value, *ends, _undecided(value, ends, log, common))

    logged = Estimate(LOGGED, "mean", float(log.reward.mean()), *judge.of_log(), float(len(log)))
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


class _Judge:
    """Values and intervals, by candidate and method.

    The interval of a biased method is that of its unbiased counterpart, extended to include the value. The
    part that was taken from the weights, or left to the model, is not known any better.
    """

    def __init__(
        self,
        terms: Mapping[str, Terms],
        selected: Mapping[str, Selected],
        log: Log,
        settings: Settings,
    ) -> None:
        asked = [METHODS[name].counterpart for name in settings.methods]
        methods = dict.fromkeys([*settings.methods, *filter(None, asked)])
        self._samples = {
            (name, key): METHODS[key].sample(found) for name, found in terms.items() for key in methods
        }
        self._intervals: Intervals
        check_weights(terms, settings.max_weight)
        level, assumed = settings.level, Assumed(settings.range_of(log), settings.max_weight)
        if settings.interval == "anytime":
            self._intervals = Anytime(terms, level, assumed)
        elif settings.interval == "bounded":
            self._intervals = Bounded(terms, level, assumed, selected)
        elif settings.interval == "bootstrap":
            draws, seed = settings.draws, settings.seed
            self._intervals = Bootstrap(self._samples, log.reward, level, draws=draws, seed=seed)
        else:
            self._intervals = Normal(self._samples, log.reward, level)

    def value(self, name: str, method: str) -> float:
        return self._samples[name, method].value

    def of_log(self) -> Interval:
        return self._intervals.of_log()

    def interval(self, name: str, method: str) -> Interval:
        honest = METHODS[method].counterpart
        found = self._intervals.interval(name, honest or method)
        return found if honest is None else found.stretched(self.value(name, method))

    def difference(self, one: str, other: str, method: str) -> Interval:
        honest = METHODS[method].counterpart
        found = self._intervals.difference(one, other, honest or method)
        return (
            found if honest is None else found.stretched(self.value(one, method) - self.value(other, method))
        )


def _notes(log: Log, settings: Settings) -> list[str]:
    notes = [f"{count:,} row{'s' * (count > 1)} left out: {why}" for why, count in log.left_out.items()]
    if settings.interval == "anytime":
        low, high = settings.range_of(log)
        notes.append(
            f"any-time intervals: rewards lie within {low:g} and {high:g}, and logged probabilities are true"
        )
    else:
        notes.append(f"{settings.interval} intervals: for a log whose length was fixed beforehand")
    if settings.interval == "bounded":
        low, high = settings.range_of(log)
        most = "" if settings.max_weight is None else f", and weights are at most {settings.max_weight:g}"
        notes.append(f"rewards lie within {low:g} and {high:g}{most}")
    if settings.needs_model:
        folded = (
            "the rows before"
            if settings.how_folded == PAST
            else f"all but its own of {settings.how_folded} parts"
        )
        notes.append(f"the model of the rewards predicts each row from {folded}")
    return notes
