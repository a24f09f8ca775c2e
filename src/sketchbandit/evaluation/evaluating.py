"""What fixed policies would have earned: the terms of a log become estimates with intervals."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sketchbandit.errors import InputError
from sketchbandit.evaluation import anytime, intervals
from sketchbandit.evaluation.candidates import candidates_of
from sketchbandit.evaluation.estimators import METHODS, Method, Sample, methods_of
from sketchbandit.evaluation.intervals import Bootstrap, Interval
from sketchbandit.evaluation.log import Log
from sketchbandit.evaluation.models import FOLDS, PAST, fit
from sketchbandit.evaluation.results import LOGGED, Difference, Estimate, Evaluation
from sketchbandit.evaluation.terms import Tell, Terms, logged_terms, terms_of
from sketchbandit.evaluation.weights import weights_of
from sketchbandit.sketch.checks import check_count, check_real

INTERVALS = ("normal", "bootstrap", "anytime")
NOTHING = Interval(np.nan, np.nan)


@dataclass(frozen=True)
class Settings:
    """How values are estimated, apart from log and candidates."""

    methods: tuple[str, ...] = ("ips", "snips", "dr")
    model: Any = "ridge"
    folds: int | str | None = None
    interval: str = "normal"
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
        if self.interval != "anytime":
            return
        without = [name for name in methods if name not in anytime.METHODS]
        if without:
            raise InputError(
                f"there is no any-time interval of {', '.join(without)}: take methods=('ips',), or 'dr' with "
                "max_weight"
            )
        if self.folds not in (None, PAST):
            raise InputError(
                f"an any-time interval needs models of the past alone, folds='past', got {self.folds!r}"
            )

    @property
    def needs_model(self) -> bool:
        """Whether some method stands on a model of the rewards."""
        return any(METHODS[name].needs_model for name in self.methods)

    @property
    def how_folded(self) -> int | str:
        """Folds, or the past alone, which is what an any-time interval needs."""
        if self.folds is not None:
            return self.folds
        return PAST if self.interval == "anytime" else FOLDS

    def range_of(self, log: Log) -> tuple[float, float]:
        """The least and the most reward there can be: as given, or 0 to 1, where rewards lie in there."""
        if self.reward_range is not None:
            return self.reward_range
        low, high = float(log.reward.min()), float(log.reward.max())
        if not 0.0 <= low <= high <= 1.0:
            raise InputError(
                f"rewards lie from {low:g} to {high:g}; an any-time interval needs reward_range="
                "(least, most), the range that no reward can leave"
            )
        return 0.0, 1.0


def evaluate(
    log: Log,
    policies: Mapping[str, Any],
    methods: Sequence[str] = ("ips", "snips", "dr"),
    *,
    tell: Tell = lambda _: None,
    **settings: Any,
) -> Evaluation:
    """What policies that learn nothing more would have earned a decision, had they made the log.

    A policy that has learned from rows of this log is refused: ``train_and_judge`` learns from some rows and
    judges by others. What a policy earns *while it learns* is another question: ``replay``.

    Parameters
    ----------
    log : Log
        What was logged.
    policies : dict
        By name: a policy of ours, its whole rule counted; a function from arms (arms, dim) to probabilities
        (``Batched``: from many sets at once); an array of probabilities, (decisions, arms) or (arms,);
        "uniform".
    methods : sequence of str
        "dm", "ips", "clipped", "snips", "dr", "switch-dr", "drs", "drs-pessimistic".
    tell : callable, optional
        Hears how many decisions more are done.
    model : "ridge", Ridge, scikit-learn estimator, or function
        Of the rewards, for "dm" and the doubly robust. A function of rows (n, dim) is taken as it is; all
        else is cross-fitted.
    folds : int or "past"
        For the model: parts of the log, each predicted by a model of the others (3); or of the rows before.
    interval : "normal", "bootstrap" or "anytime"
        The first two hold for a log whose length was fixed beforehand. "anytime" holds however often one
        looks and whenever one stops; for "ips", and for "dr" with ``max_weight``.
    level : float
        How sure, 0.95.
    reward_range : (float, float)
        For "anytime": the range that no reward leaves; (0, 1) where rewards lie there.
    max_weight : float
        For "anytime" with "dr": what no weight can exceed, K/floor for a log with a floor.
    draws, seed : int
        Of the bootstrap, 1,000 and 0.

    Returns
    -------
    Evaluation
        Rows Estimate(policy, method, value, low, high, effective_size).

    Examples
    --------
    >>> random = np.random.default_rng(0)
    >>> arms = random.standard_normal((4000, 5, 3))
    >>> chosen = random.integers(5, size=4000)
    >>> reward = 1.0 + arms[np.arange(4000), chosen] @ [0.3, -0.1, 0.2]
    >>> log = Log(arms=arms, chosen=chosen, reward=reward, probability=np.full(4000, 0.2))
    >>> evaluate(log, {"first": lambda arms: [1, 0, 0, 0, 0], "uniform": "uniform"}, methods=("snips", "dr"))
    policy   method  value   95% interval      effective size
    logged   mean    0.9958  0.9841 to 1.008   4,000
    first    snips   0.9767  0.9513 to 1.002   825
    first    dr      0.9874  0.9759 to 0.9989  825
    uniform  snips   0.9958  0.9841 to 1.008   4,000
    uniform  dr      1       0.9952 to 1.006   4,000

    """
    chosen = Settings(methods=tuple([methods] if isinstance(methods, str) else methods), **settings)
    candidates = candidates_of(log, policies)
    limits = chosen.range_of(log) if chosen.interval == "anytime" else None
    models = fit(log, chosen.model, chosen.how_folded) if chosen.needs_model else None
    return conclude(log, terms_of(log, candidates, models, limits=limits, tell=tell), chosen)


def conclude(log: Log, terms: Mapping[str, Terms], settings: Settings) -> Evaluation:
    """Estimates from the terms of the candidates, wherever those were found."""
    predicted = next(iter(terms.values())).predicted
    maker = logged_terms(log, predicted)
    methods = {name: METHODS[name] for name in settings.methods}
    judge = _Judge({LOGGED: maker, **terms}, methods, log, settings)
    weights = {name: weights_of(found, log) for name, found in terms.items()}
    rows = []
    for name, found in weights.items():
        for key, method in methods.items():
            interval = judge.interval(name, key)
            if found.verdict and method.uses_weights and settings.interval != "anytime":
                interval = NOTHING
            size = found.effective_size if method.uses_weights else float(len(log))
            rows.append(Estimate(name, key, judge.value(name, key), *interval, size))

    def compare(policy: str, other: str, method: str) -> Difference:
        for name in (policy, other):
            if name != LOGGED and name not in terms:
                raise InputError(f"unknown policy {name!r}; there are {LOGGED}, {', '.join(terms)}")
        if method not in methods:
            raise InputError(f"{method!r} was not asked for; there are {', '.join(methods)}")
        ends = judge.difference(policy, other, method)
        doubtful = any(weights[name].verdict for name in (policy, other) if name != LOGGED)
        if doubtful and methods[method].uses_weights and settings.interval != "anytime":
            ends = NOTHING
        value = judge.value(policy, method) - judge.value(other, method)
        return Difference(policy, other, method, value, *ends)

    mean = Sample(log.reward)
    logged = Estimate(LOGGED, "mean", mean.value, *intervals.normal(mean, settings.level), float(len(log)))
    return Evaluation(
        rows,
        logged=logged,
        weights=weights,
        interval=settings.interval,
        level=settings.level,
        compare=compare,
        notes=_notes(log, settings),
    )


class _Judge:
    """Values and intervals, by candidate and method."""

    def __init__(
        self, terms: Mapping[str, Terms], methods: Mapping[str, Method], log: Log, settings: Settings
    ) -> None:
        self._terms, self._settings = terms, settings
        self._samples = {
            (name, key): method.sample(found)
            for name, found in terms.items()
            for key, method in methods.items()
        }
        self._places = {key: place for place, key in enumerate(self._samples)}
        self._bootstrap: Bootstrap | None = None
        if settings.interval == "bootstrap":
            self._bootstrap = Bootstrap(
                list(self._samples.values()), draws=settings.draws, seed=settings.seed
            )
        self._assumed: anytime.Assumed | None = None
        if settings.interval == "anytime":
            self._assumed = anytime.Assumed(settings.range_of(log), settings.max_weight)

    def value(self, name: str, method: str) -> float:
        return self._samples[name, method].value

    def interval(self, name: str, method: str) -> Interval:
        level = self._settings.level
        if self._assumed is not None:
            return anytime.interval(self._terms[name], method, level, self._assumed)
        if self._bootstrap is not None:
            return self._bootstrap.interval(self._places[name, method], level)
        return intervals.normal(self._samples[name, method], level)

    def difference(self, one: str, other: str, method: str) -> Interval:
        level = self._settings.level
        if self._assumed is not None:
            return anytime.difference(self._terms[one], self._terms[other], method, level, self._assumed)
        if self._bootstrap is not None:
            return self._bootstrap.difference(self._places[one, method], self._places[other, method], level)
        return intervals.normal_difference(self._samples[one, method], self._samples[other, method], level)


def _notes(log: Log, settings: Settings) -> list[str]:
    notes = [f"{count:,} rows left out: {why}" for why, count in log.left_out.items()]
    if settings.interval == "anytime":
        low, high = settings.range_of(log)
        notes.append(
            f"any-time intervals: rewards lie within {low:g} and {high:g}, and logged probabilities are true"
        )
    else:
        notes.append(f"{settings.interval} intervals: for a log whose length was fixed beforehand")
    if settings.needs_model:
        folded = (
            "the rows before" if settings.how_folded == PAST else f"the other of {settings.how_folded} parts"
        )
        notes.append(f"the model of the rewards predicts each row from {folded}")
    return notes
