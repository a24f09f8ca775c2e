"""Models of the rewards, for the direct method and the doubly robust; none predicts what it has learned."""

import copy
from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy import sparse

from sketchbandit.arrays import AnyArray, Vector
from sketchbandit.errors import InputError, InputTypeError
from sketchbandit.evaluation.log import Log
from sketchbandit.precision import Precision
from sketchbandit.sketch import BulkReader, FrequentDirections
from sketchbandit.sketch.checks import check_count, check_real

FOLDS = 3
PAST = "past"
_DOUBLINGS = 10  # blocks of "past": the first is 1/1024 of the log


class RewardModel(Protocol):
    """Learns rows with their rewards, piece by piece, and predicts."""

    def learn(self, rows: Any, rewards: Vector) -> None:
        """Some rows more."""

    def finish(self) -> Callable[[Any], Vector]:
        """Predictions of rows, from what was learned so far."""


class Ridge:
    """Ridge regression on a sketch, with an intercept: one pass, memory O(size·dim).

    Up to ``size`` features it is exact, and up to 16·size exact but for one cut to ``size`` directions.

    Parameters
    ----------
    ridge : float
        The penalty.
    size : int
        Directions kept.

    """

    def __init__(self, ridge: float = 1.0, *, size: int = 100) -> None:
        self.ridge = check_real("ridge", ridge, above=0.0)
        self.size = check_count("size", size, at_least=2)
        self._bulk: BulkReader | None = None
        self._b: Vector = np.zeros(0)

    def learn(self, rows: Any, rewards: Vector) -> None:
        """Add the rows to the sketch, and r·x to b."""
        one = np.ones((rows.shape[0], 1))
        wide = sparse.hstack([rows, one], format="csr") if sparse.issparse(rows) else np.hstack([rows, one])
        if self._bulk is None:
            self._bulk = BulkReader(FrequentDirections(wide.shape[1], size=self.size, compensation=1.0))
            self._b = np.zeros(wide.shape[1])
        self._bulk.update(wide)
        self._b += wide.T @ rewards

    def finish(self) -> Callable[[Any], Vector]:
        """x'theta + intercept; zero where nothing was learned."""
        if self._bulk is None:
            return lambda rows: np.zeros(rows.shape[0])
        theta = Precision(self._bulk.finish(), self.ridge).apply(self._b)
        return lambda rows: np.asarray(rows @ theta[:-1]) + theta[-1]


class Regressor:
    """Any scikit-learn estimator: what was chosen is gathered, then fitted. Classifiers tell their mean."""

    def __init__(self, estimator: Any) -> None:
        self._estimator = estimator
        self._rows: list[Any] = []
        self._rewards: list[Vector] = []

    def learn(self, rows: Any, rewards: Vector) -> None:
        """Keep them."""
        self._rows.append(rows)
        self._rewards.append(rewards)

    def finish(self) -> Callable[[Any], Vector]:
        """Fit a copy; where nothing was learned, or one reward alone, that is the prediction."""
        rewards = np.concatenate(self._rewards) if self._rewards else np.zeros(1)
        if len(np.unique(rewards)) == 1:
            return lambda rows: np.full(rows.shape[0], rewards[0])
        is_sparse = sparse.issparse(self._rows[0])
        rows = sparse.vstack(self._rows, format="csr") if is_sparse else np.concatenate(self._rows)
        fitted = copy.deepcopy(self._estimator).fit(rows, rewards)
        if not hasattr(fitted, "predict_proba"):
            return lambda some: np.asarray(fitted.predict(some), dtype=np.float64)
        return lambda some: np.asarray(fitted.predict_proba(some) @ fitted.classes_, dtype=np.float64)


class Fitted(NamedTuple):
    """A prediction, and the rows that it is for: start to stop."""

    start: int
    stop: int
    predict: Callable[[Any], Vector]


class _Plan(NamedTuple):
    """Rows start to stop are predicted by a model of the rows that ``learns_from`` says."""

    start: int
    stop: int
    model: Any
    before_only: bool

    def learns_from(self, first: int, last: int) -> list[tuple[int, int]]:
        """The parts of the rows first to last that the model may see."""
        parts = [(first, min(last, self.start))]
        if not self.before_only:
            parts.append((max(first, self.stop), last))
        return [(start, stop) for start, stop in parts if start < stop]


def fit(log: Log, model: Any, folds: int | str) -> list[Fitted]:
    """Fit the model in one pass: cross-fitted, so that no row is predicted from itself.

    Parameters
    ----------
    log : Log
        What is learned from.
    model : "ridge", Ridge, scikit-learn estimator, or function
        A function of rows (n, dim) is a model that is fitted already, elsewhere.
    folds : int or "past"
        Parts of the log, each predicted by a model of the others; "past": of the rows before alone, in blocks
        that double. The first is predicted as zero.

    """
    if isinstance(model, type):
        raise InputTypeError(f"model is the class {model.__name__}; give one of it, made by calling it")
    if not (model == "ridge" or isinstance(model, Ridge) or hasattr(model, "fit")):
        if callable(model):
            return [Fitted(0, len(log), lambda rows: np.asarray(model(rows), dtype=np.float64))]
        raise InputTypeError(
            "model must be 'ridge', Ridge(...), a scikit-learn estimator or a function of rows, "
            f"got {model!r:.60}"
        )
    plans = [_Plan(start, stop, _fresh(model), folds == PAST) for start, stop in _parts(len(log), folds)]
    for chunk in log.chunks():
        for plan in plans:
            for start, stop in plan.learns_from(chunk.start, chunk.start + len(chunk)):
                some = slice(start - chunk.start, stop - chunk.start)
                plan.model.learn(chunk.chosen_rows[some], chunk.reward[some])
    return [Fitted(plan.start, plan.stop, plan.model.finish()) for plan in plans]


def predict(models: list[Fitted], rows: Any, numbers: AnyArray) -> Vector:
    """The predictions of rows that belong to the decisions ``numbers``, in their order."""
    found = np.empty(rows.shape[0])
    for model in models:
        start, stop = np.searchsorted(numbers, [model.start, model.stop])
        if start < stop:
            found[start:stop] = model.predict(rows[start:stop])
    if not np.isfinite(found).all():
        raise InputError("the model of the rewards predicts numbers that are not finite; give another one")
    return found


def _fresh(model: Any) -> RewardModel:
    if isinstance(model, str):
        return Ridge()
    return Ridge(model.ridge, size=model.size) if isinstance(model, Ridge) else Regressor(model)


def _parts(count: int, folds: int | str) -> list[tuple[int, int]]:
    if folds == PAST:
        ends = sorted({0, count, *(count >> shift for shift in range(1, _DOUBLINGS + 1))})
    else:
        wanted = min(check_count("folds", folds, at_least=2), count)
        ends = [count * part // wanted for part in range(wanted + 1)]
    return list(pairwise(ends))
