"""How well a log covers a candidate: effective sample size, tail of the weights, and what cannot be said."""

from typing import NamedTuple

import numpy as np

from sketchbandit.arrays import Vector
from sketchbandit.evaluation.log import Log
from sketchbandit.evaluation.terms import Terms

LEAST_SIZE = 30.0
"""Below this effective sample size an estimate is an anecdote."""
_FAR = 4.0  # standard errors of the mean weight from 1
_OFF = 0.05  # what may be rounding, or sampled probabilities


class Weights(NamedTuple):
    """The importance weights w = pi(a|x)/p of a candidate on a log."""

    decisions: int
    effective_size: float
    """(sum w)² / sum w²: so many decisions of the candidate's own would be worth as much."""
    mean: float
    """Near 1, where the log covers the candidate and its probabilities are true."""
    mean_error: float
    """The standard error of that."""
    largest: float
    p99: float
    """99 of 100 weights are at most this."""
    top_share: float
    """The share of all weight that lies on the heaviest hundredth of the decisions."""
    overlap: float
    """The share of decisions with a weight above zero."""
    unlogged: float
    """The probability given to actions that were never chosen; nan where arms are new each time."""
    is_covered: bool
    """Whether weights may be 1 on average: if not, no interval holds."""
    verdict: str
    """Why nothing can be said; empty where something can."""


def effective_size(weight: Vector) -> float:
    """(sum w)² / sum w² (Kish); zero where there is no weight."""
    squares = float(weight @ weight)
    return float(weight.sum()) ** 2 / squares if squares > 0.0 else 0.0


def weights_of(terms: Terms, log: Log) -> Weights:
    """The diagnostics of a candidate."""
    weight, count = terms.weight, len(terms)
    heaviest = max(1, count // 100)
    top = np.partition(weight, count - heaviest)[count - heaviest :].sum()
    total = float(weight.sum())
    mean = total / count
    mean_error = float(weight.std(ddof=1)) / np.sqrt(count) if count > 1 else float("inf")
    size = effective_size(weight)
    gap = _gap(terms, log.is_deterministic, mean, mean_error)
    return Weights(
        decisions=count,
        effective_size=size,
        mean=mean,
        mean_error=mean_error,
        largest=float(weight.max()),
        p99=float(np.quantile(weight, 0.99)),
        top_share=float(top) / total if total else float("nan"),
        overlap=float((weight > 0.0).mean()),
        unlogged=terms.unlogged,
        is_covered=not gap,
        verdict=gap or _too_few(size),
    )


def _gap(terms: Terms, is_deterministic: bool, mean: float, error: float) -> str:
    """Why the log does not cover the candidate, in a sentence."""
    if is_deterministic and not np.allclose(terms.weight, 1.0, atol=1e-6):
        return "the log was made without chance: it tells nothing of what was not chosen"
    if not mean > 0.0:
        return "no overlap: the candidate would never have done what was logged"
    if terms.unlogged > _OFF:
        return f"{terms.unlogged:.0%} of its choices are actions that were never logged"
    if abs(mean - 1.0) > max(_FAR * error, _OFF):
        return (
            f"weights are {mean:.2f} on average, not 1: it plays what was hardly ever logged, or the logged "
            "probabilities are wrong"
        )
    return ""


def _too_few(size: float) -> str:
    return f"the effective sample size is {size:.0f}, below {LEAST_SIZE:.0f}" if size < LEAST_SIZE else ""
