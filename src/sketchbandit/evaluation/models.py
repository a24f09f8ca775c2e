"""Reward models for the direct method and the doubly robust methods, cross-fitted."""

import copy
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import NamedTuple, Protocol, TypeGuard

import numpy as np
from scipy import sparse

from sketchbandit.arrays import AnyArray, Rows, Vector
from sketchbandit.errors import InputError, InputTypeError
from sketchbandit.evaluation.log import Log
from sketchbandit.precision import Precision
from sketchbandit.sketch import BulkReader, FrequentDirections
from sketchbandit.sketch.checks import check_count, check_real

FOLDS = 3
PAST = "past"
_FIRST = 32  # rows in the first block of "past"


Predictor = Callable[[Rows], Vector]
"""The predicted rewards of rows (n, dim)."""


class Regression(Protocol):
    """A regression or a classifier, as scikit-learn has them."""

    def fit(self, X: Rows, y: Vector) -> "Regression":
        """Learn."""

    def predict(self, X: Rows) -> AnyArray:
        """One number per row."""


class Classifier(Regression, Protocol):
    """A classifier that tells probabilities."""

    classes_: AnyArray

    def predict_proba(self, X: Rows) -> AnyArray:
        """One number per row and class."""


def _is_regression(model: object) -> TypeGuard[Regression]:
    """Whether it is a scikit-learn estimator. Asked of the object: pipelines decide what they have."""
    return hasattr(model, "fit") and hasattr(model, "predict")


def _tells_probabilities(model: Regression) -> TypeGuard[Classifier]:
    """Whether it is a classifier that tells probabilities."""
    return hasattr(model, "predict_proba")


class RewardModel(Protocol):
    """A reward model that learns from rows in pieces, and then predicts."""

    def learn(self, rows: Rows, rewards: Vector) -> None:
        """Learn from some rows."""

    def finish(self) -> Predictor:
        """A function that predicts the rewards of rows, from what was learned so far."""


class Ridge:
    """Ridge regression on a sketch, with an intercept: one pass, O(size·dim) memory.

    It predicts the mean of the rewards plus what ridge regression finds for rewards less their mean, so a
    constant added to all rewards is added to all predictions. Up to ``size`` features it is exact. Up to
    16·size features there is only one cut, to ``size`` directions.

    Parameters
    ----------
    ridge : float
        The ridge penalty.
    size : int
        The sketch size: the number of directions kept.

    Examples
    --------
    >>> model = Ridge(1.0, size=50)
    >>> model.learn(np.eye(3), np.array([1.0, 2.0, 3.0]))
    >>> model.finish()(np.eye(3)).round(2)
    array([1.5, 2. , 2.5])

    """

    def __init__(self, ridge: float = 1.0, *, size: int = 100) -> None:
        self.ridge = check_real("ridge", ridge, above=0.0)
        self.size = check_count("size", size, at_least=2)
        self._bulk: BulkReader | None = None
        self._b: Vector = np.zeros(0)  # the sum of (reward - origin)·x, ...
        self._sum: Vector = np.zeros(0)  # ... of x, ...
        self._total, self._count, self._origin = 0.0, 0, 0.0  # ... and of reward - origin

    def learn(self, rows: Rows, rewards: Vector) -> None:
        """Add the rows to the sketch, and their rewards to the sums."""
        if not len(rewards):
            return
        one = np.ones((rows.shape[0], 1))
        wide = sparse.hstack([rows, one], format="csr") if sparse.issparse(rows) else np.hstack([rows, one])
        if self._bulk is None:
            self._bulk = BulkReader(FrequentDirections(wide.shape[1], size=self.size, compensation=1.0))
            self._b, self._sum = np.zeros(wide.shape[1]), np.zeros(wide.shape[1])
            self._origin = float(rewards[0])
        self._bulk.update(wide)
        values = rewards - self._origin
        self._b += wide.T @ values
        self._sum += wide.T @ np.ones(len(values))
        self._total, self._count = self._total + float(values.sum()), self._count + len(values)

    def finish(self) -> Predictor:
        """A function that predicts mean + x'theta + intercept; zero if nothing was learned."""
        if self._bulk is None:
            return lambda rows: np.zeros(rows.shape[0])
        shift = self._total / self._count
        theta = Precision(self._bulk.finish(), self.ridge).apply(self._b - shift * self._sum)
        mean = self._origin + shift
        return lambda rows: np.asarray(rows @ theta[:-1]) + theta[-1] + mean


class Regressor:
    """Any scikit-learn estimator: rows are collected, then it is fitted. Classifiers predict their mean."""

    def __init__(self, estimator: Regression) -> None:
        self._estimator = estimator
        self._rows: list[Rows] = []
        self._rewards: list[Vector] = []

    def learn(self, rows: Rows, rewards: Vector) -> None:
        """Keep the rows and rewards."""
        self._rows.append(rows)
        self._rewards.append(rewards)

    def finish(self) -> Predictor:
        """Fit a copy. If all rewards are equal, or there are none, the prediction is constant."""
        rewards = np.concatenate(self._rewards) if self._rewards else np.zeros(1)
        if len(np.unique(rewards)) == 1:
            return lambda rows: np.full(rows.shape[0], rewards[0])
        is_sparse = sparse.issparse(self._rows[0])
        rows = sparse.vstack(self._rows, format="csr") if is_sparse else np.concatenate(self._rows)
        fitted = copy.deepcopy(self._estimator).fit(rows, rewards)
        if _tells_probabilities(fitted):
            return lambda some: np.asarray(fitted.predict_proba(some) @ fitted.classes_, dtype=np.float64)
        return lambda some: np.asarray(fitted.predict(some), dtype=np.float64)


class Fitted(NamedTuple):
    """A prediction function, and the rows it is for: start to stop."""

    start: int
    stop: int
    predict: Predictor


class _Plan(NamedTuple):
    """Rows start to stop are predicted by a model of the rows in ``learns_from``."""

    start: int
    stop: int
    model: RewardModel
    before_only: bool

    def learns_from(self, first: int, last: int) -> list[tuple[int, int]]:
        """The parts of the rows from first to last that the model may see."""
        parts = [(first, min(last, self.start))]
        if not self.before_only:
            parts.append((max(first, self.stop), last))
        return [(start, stop) for start, stop in parts if start < stop]


def fit(log: Log, model: object, folds: int | str) -> list[Fitted]:
    """Fit the reward model in one pass, cross-fitted: no row is predicted by a model that has seen it.

    Parameters
    ----------
    log : Log
        The log to learn from.
    model : "ridge", Ridge, scikit-learn estimator, or function
        A function of rows (n, dim) is a model that was fitted elsewhere.
    folds : int or "past"
        An int: the number of parts, each predicted by a model of the others. "past": each block is predicted
        by a model of the rows before it. Blocks double in size from 32 rows on, wherever the log ends. So a
        prediction stays the same when more rows come. The first block is predicted as zero.

    """
    if isinstance(model, type):
        raise InputTypeError(f"model is the class {model.__name__}; give an instance, made by calling it")
    fresh: Callable[[], RewardModel]
    if isinstance(model, Ridge):
        fresh = partial(Ridge, model.ridge, size=model.size)
    elif _is_regression(model):
        fresh = partial(Regressor, model)
    elif callable(model):
        return [Fitted(0, len(log), lambda rows: np.asarray(model(rows), dtype=np.float64))]
    elif model == "ridge":
        fresh = Ridge
    else:
        raise InputTypeError(
            "model must be 'ridge', Ridge(...), a scikit-learn estimator or a function of rows, "
            f"got {model!r:.60}"
        )
    plans = [_Plan(start, stop, fresh(), folds == PAST) for start, stop in _parts(len(log), folds)]
    for chunk in log.chunks():
        for plan in plans:
            for start, stop in plan.learns_from(chunk.start, chunk.start + len(chunk)):
                some = slice(start - chunk.start, stop - chunk.start)
                plan.model.learn(chunk.chosen_rows[some], chunk.reward[some])
    return [Fitted(plan.start, plan.stop, plan.model.finish()) for plan in plans]


def predict(models: list[Fitted], rows: Rows, numbers: AnyArray) -> Vector:
    """The predictions for rows that belong to the decisions ``numbers``, in order."""
    found = np.empty(rows.shape[0])
    for model in models:
        start, stop = np.searchsorted(numbers, [model.start, model.stop])
        if start < stop:
            answer = model.predict(rows[start:stop])
            if answer.shape != (stop - start,):
                raise InputError(
                    "the reward model must predict one number per row, got an array of shape "
                    f"{answer.shape} for {stop - start} rows"
                )
            found[start:stop] = answer
    if not np.isfinite(found).all():
        raise InputError("the reward model predicts numbers that are not finite; use another model")
    return found


def _parts(count: int, folds: int | str) -> list[tuple[int, int]]:
    if folds == PAST:
        doubled = (_FIRST << shift for shift in range(count.bit_length()))
        ends = [0, *(end for end in doubled if end < count), count]
    else:
        wanted = min(check_count("folds", folds, at_least=2), count)
        ends = [count * part // wanted for part in range(wanted + 1)]
    return list(pairwise(ends))
