"""The terms of all estimators: four numbers per decision, from one pass over the log."""

import importlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

import numpy as np

from sketchbandit.arrays import AnyArray, Vector
from sketchbandit.evaluation.log import Log
from sketchbandit.evaluation.models import Fitted, predict
from sketchbandit.evaluation.target_policies import Chances
from sketchbandit.linalg import inner


def one_blas_thread() -> AbstractContextManager[Any]:
    """Use one thread for BLAS inside the block, if threadpoolctl is installed (extra "evaluation")."""
    try:
        threadpoolctl = importlib.import_module("threadpoolctl")
    except ModuleNotFoundError:
        return nullcontext()
    limits: AbstractContextManager[Any] = threadpoolctl.threadpool_limits(1, user_api="blas")
    return limits


Tell = Callable[[int], None]
"""Called with the number of further decisions done."""


class Terms(NamedTuple):
    """The terms of a candidate, per decision. q is the reward model; it is zero if there is none."""

    reward: Vector
    """r."""
    weight: Vector
    """w = pi(a|x) / p, where a is the arm that was chosen."""
    predicted: Vector
    """q(x, a) of the arm that was chosen."""
    value: Vector
    """sum over all arms a of pi(a|x) q(x, a)."""
    unlogged: float
    """The probability given to actions that were never chosen; nan if arms are new each time."""
    times: Vector | None = None
    """How often each of these decisions was made, for bounded intervals; None: once."""

    def __len__(self) -> int:
        """The number of decisions."""
        return len(self.reward) if self.times is None else round(float(self.times.sum()))

    def total(self, values: Vector) -> float:
        """The sum of these numbers over all decisions."""
        return float(values.sum()) if self.times is None else inner(self.times, values)

    def mean(self, values: Vector) -> float:
        """Their mean."""
        return mean(values, self.times)

    def variance(self, values: Vector) -> float:
        """Their variance."""
        return float(values.var()) if self.times is None else self.mean((values - self.mean(values)) ** 2)


def mean(values: Vector, times: Vector | None = None) -> float:
    """The mean of numbers, each counted so many times; None: once."""
    return float(values.mean()) if times is None else inner(times, values) / float(times.sum())


def terms_of(
    log: Log,
    candidates: Mapping[str, Chances],
    models: Sequence[Fitted] | None,
    *,
    limits: tuple[float, float] | None = None,
    tell: Tell = lambda _: None,
) -> dict[str, Terms]:
    """The terms of every candidate.

    ``models`` is None if no method needs one. Predictions are kept within ``limits``.
    """
    count = len(log)
    weights = {name: np.empty(count) for name in candidates}
    values = {name: np.zeros(count) for name in candidates}
    predicted = np.zeros(count)
    masses: dict[str, AnyArray] = {name: np.zeros(0) for name in candidates}
    for chunk in log.chunks():
        at, rows = chunk.bounds[:-1] + chunk.chosen, slice(chunk.start, chunk.start + len(chunk))
        model: Vector | None = None
        if models is not None:
            numbers = np.repeat(np.arange(rows.start, rows.stop), chunk.counts)
            model = predict(list(models), chunk.rows, numbers)
            model = model if limits is None else np.clip(model, *limits)
            predicted[rows] = model[at]
        for name, chances in candidates.items():
            flat = chances(chunk)
            weights[name][rows] = flat[at] / chunk.probability
            if model is not None:
                values[name][rows] = chunk.sums(flat * model)
            if log.is_fixed:
                masses[name] = _added(masses[name], flat, chunk.counts)
        tell(len(chunk))
    return {
        name: Terms(log.reward, weights[name], predicted, values[name], _unlogged(masses[name], log))
        for name in candidates
    }


def logged_terms(log: Log, predicted: Vector) -> Terms:
    """The terms of the policy that made the log. All methods except "dm" return its mean reward."""
    return Terms(log.reward, np.ones(len(log)), predicted, predicted, 0.0)


def _added(sums: AnyArray, flat: Vector, counts: AnyArray) -> AnyArray:
    """The probability given to each action so far."""
    numbers = np.arange(len(flat)) - np.repeat(np.cumsum(counts) - counts, counts)
    found = np.bincount(numbers, weights=flat, minlength=len(sums))
    found[: len(sums)] += sums
    return found


def _unlogged(masses: AnyArray, log: Log) -> float:
    if not log.is_fixed:
        return float("nan")
    is_logged = np.zeros(len(masses), dtype=bool)
    is_logged[np.unique(log.chosen)] = True
    return float(masses[~is_logged].sum() / len(log))
