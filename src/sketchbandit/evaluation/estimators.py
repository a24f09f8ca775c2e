"""The estimators: the value of a candidate as a mean, or a ratio of means, over the decisions."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from sketchbandit.arrays import Vector
from sketchbandit.errors import InputError
from sketchbandit.evaluation.terms import Terms, mean

_GRID = 20  # thresholds to try


class Sample(NamedTuple):
    """An estimate as a function of the decisions: mean(numerator), or mean(numerator) / mean(denominator)."""

    numerator: Vector
    denominator: Vector | None = None
    threshold: float = np.nan
    """The threshold at which weights are cut or shrunk, for methods that do so."""
    times: Vector | None = None
    """How often each decision was made; None: once."""

    @property
    def value(self) -> float:
        """The estimate; nan if the denominator is zero."""
        if self.denominator is None:
            return mean(self.numerator, self.times)
        below = mean(self.denominator, self.times)
        return mean(self.numerator, self.times) / below if below > 0.0 else np.nan

    @property
    def influence(self) -> Vector:
        """Numbers with the estimate as mean, and n times its variance as variance (the delta method)."""
        if self.denominator is None:
            return self.numerator
        value, below = self.value, float(self.denominator.mean())
        return value + (self.numerator - value * self.denominator) / below


class Method(NamedTuple):
    """An estimator."""

    sample: Callable[[Terms], Sample]
    needs_model: bool
    counterpart: str | None = None
    """The unbiased method that this one is a biased version of; None if it is unbiased itself."""


def dm(terms: Terms) -> Sample:
    """The direct method: the mean predicted reward, sum_a pi(a|x) q(x, a)."""
    return Sample(terms.value, times=terms.times)


def ips(terms: Terms) -> Sample:
    """Inverse propensity scores: w r. Unbiased if the propensities are true and every arm had a chance."""
    return Sample(terms.weight * terms.reward, times=terms.times)


def snips(terms: Terms) -> Sample:
    """Self-normalised (Swaminathan and Joachims 2015): sum w r / sum w. Invariant to a shift of rewards."""
    return Sample(terms.weight * terms.reward, terms.weight, times=terms.times)


def clipped(terms: Terms) -> Sample:
    """Inverse propensity scores with weights of at most lambda."""
    return _least_error(terms, np.minimum, with_model=False)


def dr(terms: Terms) -> Sample:
    """Doubly robust (Dudik et al. 2011): sum_a pi q + w (r - q). Unbiased, whatever the model."""
    return Sample(terms.value + terms.weight * (terms.reward - terms.predicted), times=terms.times)


def switch_dr(terms: Terms) -> Sample:
    """Switch (Wang et al. 2017): doubly robust if w is at most lambda, the reward model alone otherwise."""
    return _least_error(terms, lambda w, most: np.where(w <= most, w, 0.0))


def drs(terms: Terms) -> Sample:
    """Shrinkage (Su et al. 2020), optimistic: doubly robust with weights lambda w / (w² + lambda)."""
    return _least_error(terms, lambda w, most: most**2 * w / (w**2 + most**2))


def drs_pessimistic(terms: Terms) -> Sample:
    """Shrinkage (Su et al. 2020), pessimistic: doubly robust with weights of at most lambda."""
    return _least_error(terms, np.minimum)


METHODS: dict[str, Method] = {
    "dm": Method(dm, needs_model=True, counterpart="dr"),
    "ips": Method(ips, needs_model=False),
    "clipped": Method(clipped, needs_model=False, counterpart="ips"),
    "snips": Method(snips, needs_model=False),
    "dr": Method(dr, needs_model=True),
    "switch-dr": Method(switch_dr, needs_model=True, counterpart="dr"),
    "drs": Method(drs, needs_model=True, counterpart="dr"),
    "drs-pessimistic": Method(drs_pessimistic, needs_model=True, counterpart="dr"),
}


def methods_of(names: object) -> dict[str, Method]:
    """The methods with these names."""
    wanted = [names] if isinstance(names, str) else list(names)  # type: ignore[call-overload]
    if not wanted:
        raise InputError(f"there is no method; choose from {', '.join(METHODS)}")
    for name in wanted:
        if name not in METHODS:
            raise InputError(f"unknown method {name!r}; choose from {', '.join(METHODS)}")
    return {name: METHODS[name] for name in wanted}


def _least_error(
    terms: Terms, shrunk: Callable[[Vector, float], Vector], *, with_model: bool = True
) -> Sample:
    """The estimate with the threshold of the smallest estimated error, bias² + variance / n.

    The bias is estimated by the mean of what the threshold takes away, (shrunk w - w)(r - q) (Su et al.).
    Thresholds are tried on a logarithmic grid from the median of the positive weights to the largest one,
    and infinity.
    """
    weight, times, count = terms.weight, terms.times, len(terms)
    rest = terms.reward - terms.predicted if with_model else terms.reward
    base = terms.value if with_model else np.zeros(len(weight))
    positive = weight[weight > 0.0]
    if not len(positive):
        return Sample(base, threshold=np.inf, times=times)
    best = Sample(base + weight * rest, threshold=np.inf, times=times)
    least = terms.variance(best.numerator) / count
    for threshold in np.geomspace(np.median(positive), positive.max(), _GRID):
        taken = (shrunk(weight, float(threshold)) - weight) * rest
        found = base + weight * rest + taken
        error = terms.mean(taken) ** 2 + terms.variance(found) / count
        if error < least:
            best, least = Sample(found, threshold=float(threshold), times=times), error
    return best
