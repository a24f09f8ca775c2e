"""How well a log covers a candidate: effective sample size, tail of the weights, and a verdict."""

import math
from typing import NamedTuple

import numpy as np

from sketchbandit.arrays import Vector
from sketchbandit.evaluation.log import Log
from sketchbandit.evaluation.mean_bounds import counted
from sketchbandit.evaluation.terms import Terms

LEAST_SIZE = 30.0
"""Below this effective sample size intervals by the central limit theorem are withheld."""
LEAST_UNCOMMON = 5.0
"""With fewer rewards that differ from the most common one, nothing is said."""
FAR = 4.0
"""The number of standard errors by which the mean weight may differ from 1."""
OFF = 0.05
"""The difference from 1 that is always allowed, because of rounding and sampled probabilities."""
_MOST_TIMES = 10  # an interval so many times the difference is a sign that there may be none


class Weights(NamedTuple):
    """Diagnostics of the importance weights w = pi(a|x)/p of a candidate on a log."""

    decisions: int
    effective_size: float
    """(sum w)² / sum w²: so many decisions of the candidate itself would say as much."""
    mean: float
    """The mean weight: near 1 if the log covers the candidate and the propensities are true."""
    mean_error: float
    """The standard error of the mean weight."""
    largest: float
    p99: float
    """The 99th percentile of the weights."""
    top_share: float
    """The share of the total weight on the heaviest 1 % of the decisions."""
    overlap: float
    """The share of decisions with a weight above zero."""
    unlogged: float
    """The probability given to actions that were never chosen; nan if arms are new each time."""
    uncommon: float
    """The decisions whose reward is not the most common one, each counted min(w, 1) times."""
    is_covered: bool
    """Whether the mean weight may be 1. If not, no interval holds."""
    verdict: str
    """Why nothing can be said; empty if something can."""


def effective_size(terms: Terms) -> float:
    """(sum w)² / sum w² (Kish); zero if there is no weight."""
    squares = terms.total(terms.weight**2)
    return terms.total(terms.weight) ** 2 / squares if squares > 0.0 else 0.0


def mean_weight(terms: Terms) -> tuple[float, float]:
    """The mean weight and its standard error."""
    more = len(terms) - 1
    error = math.sqrt(terms.variance(terms.weight) / more) if more else math.inf
    return terms.mean(terms.weight), error


def uncommon_decisions(terms: Terms, common: float) -> float:
    """The decisions whose reward is not the most common one, each counted min(w, 1) times."""
    return terms.total(np.minimum(terms.weight, 1.0) * (terms.reward != common))


def common_reward(reward: Vector, times: Vector | None = None) -> float:
    """The reward of half of the decisions or more; nan if there is none, as with continuous rewards.

    ``times`` says how often each was seen; None: once.
    """
    values, counts = counted(reward, times)
    most = int(counts.argmax())
    return float(values[most]) if 2 * counts[most] >= counts.sum() else float("nan")


def weights_of(terms: Terms, log: Log, common: float, *, is_normal: bool) -> Weights:
    """Compute the diagnostics of a candidate.

    ``common`` is the ``common_reward`` of the log. ``is_normal`` says that intervals rely on the central
    limit theorem, so that a small effective sample size rules them out.
    """
    weight, count = terms.weight, len(terms)
    heaviest = max(1, count // 100)
    ordered = np.sort(weight)
    top = ordered[count - heaviest :].sum()
    total = float(weight.sum())
    mean, mean_error = mean_weight(terms)
    size, uncommon = effective_size(terms), uncommon_decisions(terms, common)
    gap = _gap(terms, log.is_deterministic, mean, mean_error)
    return Weights(
        decisions=count,
        effective_size=size,
        mean=mean,
        mean_error=mean_error,
        largest=float(ordered[-1]),
        p99=float(np.quantile(ordered, 0.99)),
        top_share=float(top) / total if total else float("nan"),
        overlap=float((weight > 0.0).mean()),
        unlogged=terms.unlogged,
        uncommon=uncommon,
        is_covered=not gap,
        verdict=gap or too_few(uncommon, count, common) or (_too_small(size) if is_normal else ""),
    )


def _gap(terms: Terms, is_deterministic: bool, mean: float, error: float) -> str:
    """Why the log does not cover the candidate, as a sentence; empty if it does."""
    if is_deterministic and not np.allclose(terms.weight, 1.0, atol=1e-6):
        return "the log was made without chance: it says nothing about arms that were not chosen"
    if not mean > 0.0:
        return "no overlap: the candidate would never have done what was logged"
    if terms.unlogged > OFF:
        return f"{terms.unlogged:.0%} of its choices are actions that were never logged"
    return unbalanced(mean, error)


def unbalanced(mean: float, error: float) -> str:
    """Why no interval holds with this mean weight, which has a standard error; empty if it may be 1."""
    if abs(mean - 1.0) <= max(FAR * error, OFF):
        return ""
    return (
        f"the mean weight is {mean:.2f}, not 1: the candidate plays what was hardly ever logged, or the "
        "logged probabilities are wrong"
    )


def too_few(uncommon: float, decisions: int, common: float) -> str:
    """Why so few uncommon rewards decide nothing, and how many more decisions would; empty if they do."""
    if uncommon >= LEAST_UNCOMMON:
        return ""
    if np.isnan(common):
        return f"{decisions:,} decisions decide nothing"
    if uncommon < 0.5:
        return f"all rewards that count for it are {common:g}: the log is too short"
    more = rounded_up(decisions * (LEAST_UNCOMMON / uncommon - 1.0))
    return (
        f"{uncommon:.1f} rewards other than {common:g} count for it, and they decide nothing; about {more:,} "
        f"more decisions would bring {LEAST_UNCOMMON:.0f}"
    )


def undecided(seen: str, decisions: int, value: float, half: float) -> str:
    """Why a difference is not clear, and how many more decisions would decide.

    ``half`` is the length of the interval on the side of zero. It shrinks at least with the root of the
    number of decisions.
    """
    if not abs(value) * _MOST_TIMES > half:
        return f"{seen} decide nothing; nor would {_MOST_TIMES**2} times as many, as it looks"
    more = rounded_up(decisions * ((half / value) ** 2 - 1.0))
    return f"{seen} decide nothing; about {more:,} more decisions would, if the difference is what it seems"


def rounded_up(count: float) -> int:
    """A count, rounded up to two digits: it is no better known."""
    unit = 10.0 ** max(np.floor(np.log10(max(count, 1.0))) - 1.0, 0.0)
    return int(np.ceil(count / unit) * unit)


def _too_small(size: float) -> str:
    return f"the effective sample size is {size:.0f}, below {LEAST_SIZE:.0f}" if size < LEAST_SIZE else ""
