"""Estimates with intervals, from the terms of the candidates."""

from collections.abc import Mapping

from sketchbandit.errors import InputError
from sketchbandit.evaluation import anytime, intervals
from sketchbandit.evaluation.estimators import METHODS, Sample
from sketchbandit.evaluation.evaluation import Evaluation
from sketchbandit.evaluation.intervals import NOTHING, Bootstrap, Interval
from sketchbandit.evaluation.log import Log
from sketchbandit.evaluation.models import PAST
from sketchbandit.evaluation.results import LOGGED, Difference, Estimate
from sketchbandit.evaluation.settings import Settings
from sketchbandit.evaluation.terms import Terms, logged_terms
from sketchbandit.evaluation.weights import Weights, weights_of


def conclude(log: Log, terms: Mapping[str, Terms], settings: Settings) -> Evaluation:
    """Estimates from the terms of the candidates."""
    maker = logged_terms(log, next(iter(terms.values())).predicted)
    judge = _Judge({LOGGED: maker, **terms}, log, settings)
    weights = {name: weights_of(found, log) for name, found in terms.items()}
    rows = []
    for name, found in weights.items():
        for method in settings.methods:
            ends = judge.interval(name, method) if _is_said(found, settings) else NOTHING
            rows.append(Estimate(name, method, judge.value(name, method), *ends, found.effective_size))

    def compare(policy: str, other: str, method: str) -> Difference:
        for name in (policy, other):
            if name != LOGGED and name not in terms:
                raise InputError(f"unknown policy {name!r}; there are {LOGGED}, {', '.join(terms)}")
        if method not in settings.methods:
            raise InputError(f"{method!r} was not asked for; there are {', '.join(settings.methods)}")
        both = [weights[name] for name in (policy, other) if name != LOGGED]
        is_said = all(_is_said(found, settings) for found in both)
        ends = judge.difference(policy, other, method) if is_said else NOTHING
        value = judge.value(policy, method) - judge.value(other, method)
        return Difference(policy, other, method, value, *ends)

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


def _is_said(weights: Weights, settings: Settings) -> bool:
    """Whether there is an interval. An any-time interval holds for few decisions too."""
    return not weights.verdict or (settings.interval == "anytime" and weights.is_covered)


class _Judge:
    """Values and intervals, by candidate and method.

    The interval of a biased method is that of its unbiased counterpart, extended to include the value. The
    part that was taken from the weights, or left to the model, is not known any better.
    """

    def __init__(self, terms: Mapping[str, Terms], log: Log, settings: Settings) -> None:
        self._terms, self._settings = terms, settings
        asked = [METHODS[name].counterpart for name in settings.methods]
        methods = dict.fromkeys([*settings.methods, *filter(None, asked)])
        self._samples = {
            (name, key): METHODS[key].sample(found) for name, found in terms.items() for key in methods
        }
        self._places = {key: place for place, key in enumerate(self._samples)}
        self._bootstrap: Bootstrap | None = None
        if settings.interval == "bootstrap":
            samples = list(self._samples.values())
            self._bootstrap = Bootstrap(samples, draws=settings.draws, seed=settings.seed)
        self._assumed: anytime.Assumed | None = None
        if settings.interval == "anytime":
            self._assumed = anytime.Assumed(settings.range_of(log), settings.max_weight)

    def value(self, name: str, method: str) -> float:
        return self._samples[name, method].value

    def interval(self, name: str, method: str) -> Interval:
        honest, level = METHODS[method].counterpart or method, self._settings.level
        if self._assumed is not None:
            return anytime.interval(self._terms[name], method, level, self._assumed)
        if self._bootstrap is not None:
            found = self._bootstrap.interval(self._places[name, honest], level)
        else:
            found = intervals.normal(self._samples[name, honest], level)
        return found if honest == method else found.stretched(self.value(name, method))

    def of_log(self) -> Interval:
        """The interval of the mean reward."""
        level, maker = self._settings.level, self._terms[LOGGED]
        if self._assumed is not None:
            return anytime.interval(maker, "ips", level, self._assumed)
        return intervals.normal(Sample(maker.reward), level)

    def difference(self, one: str, other: str, method: str) -> Interval:
        honest, level = METHODS[method].counterpart or method, self._settings.level
        if self._assumed is not None:
            return anytime.difference(self._terms[one], self._terms[other], method, level, self._assumed)
        pair = (one, honest), (other, honest)
        if self._bootstrap is not None:
            found = self._bootstrap.difference(self._places[pair[0]], self._places[pair[1]], level)
        else:
            found = intervals.normal_difference(self._samples[pair[0]], self._samples[pair[1]], level)
        return (
            found
            if honest == method
            else found.stretched(self.value(one, method) - self.value(other, method))
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
    if settings.needs_model:
        folded = (
            "the rows before"
            if settings.how_folded == PAST
            else f"all but its own of {settings.how_folded} parts"
        )
        notes.append(f"the model of the rewards predicts each row from {folded}")
    return notes
