"""Kinds of confidence intervals: what they have in common, and those by the central limit theorem."""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

import numpy as np
from scipy.special import ndtri

from sketchbandit.arrays import Matrix, Vector
from sketchbandit.errors import InputError
from sketchbandit.evaluation.estimators import Sample
from sketchbandit.evaluation.results import LOGGED
from sketchbandit.evaluation.terms import Terms

_BLOCKS = 10_000  # units to resample: decisions, or, if there are more, sums of some of them
_TOGETHER = 1 << 22  # counts drawn at once
_ROUNDING = 1e-9  # relative tolerance for weights above max_weight


class Interval(NamedTuple):
    """An interval from low to high."""

    low: float
    high: float

    def stretched(self, value: float) -> "Interval":
        """The interval, extended to include this value."""
        return Interval(min(self.low, value), max(self.high, value))


NOTHING = Interval(np.nan, np.nan)
"""The interval if nothing can be said."""


class Assumed(NamedTuple):
    """The assumptions of intervals for bounded rewards."""

    reward_range: tuple[float, float]
    max_weight: float | None
    """An upper bound on all weights; None if it is not known."""


def check_weights(terms: Mapping[str, Terms], max_weight: float | None) -> None:
    """Raise if a weight is above its bound."""
    most = max(float(one.weight.max()) for name, one in terms.items() if name != LOGGED)
    if max_weight is not None and most > max_weight * (1.0 + _ROUNDING):
        raise InputError(
            f"a weight is {most:g}, but max_weight is {max_weight:g}; give a bound on all weights"
        )


class Intervals(Protocol):
    """A kind of interval, for the candidates of one evaluation. Methods are unbiased ones."""

    def interval(self, name: str, method: str) -> Interval:
        """The interval of the value of a candidate."""

    def difference(self, one: str, other: str, method: str) -> Interval:
        """The interval of the value of one candidate minus that of another, paired."""

    def of_log(self) -> Interval:
        """The interval of the mean reward of the log."""


class Normal:
    """The estimate ± z·deviation/√n, by the central limit theorem; for a ratio, by the delta method."""

    def __init__(self, samples: Mapping[tuple[str, str], Sample], reward: Vector, level: float) -> None:
        self._samples, self._reward, self._level = samples, reward, level

    def interval(self, name: str, method: str) -> Interval:
        """The interval of the value of a candidate."""
        return normal(self._samples[name, method], self._level)

    def difference(self, one: str, other: str, method: str) -> Interval:
        """The interval of a difference: what is good for both cancels."""
        first, second = self._samples[one, method], self._samples[other, method]
        value = first.value - second.value
        if not np.isfinite(value):
            return NOTHING
        return _normal_of(value, first.influence - second.influence, self._level)

    def of_log(self) -> Interval:
        """The interval of the mean reward of the log."""
        return normal(Sample(self._reward), self._level)


def normal(sample: Sample, level: float) -> Interval:
    """The estimate ± z·deviation/√n."""
    return _normal_of(sample.value, sample.influence, level) if np.isfinite(sample.value) else NOTHING


def _normal_of(value: float, influence: Vector, level: float) -> Interval:
    count = len(influence)
    if count < 2:
        return NOTHING
    half = float(ndtri(0.5 + level / 2.0)) * float(influence.std(ddof=1)) / math.sqrt(count)
    return Interval(value - half, value + half)


class Bootstrap(Normal):
    """Percentile intervals from resamples of the decisions, the same for all estimates of a log.

    Above 10,000 decisions, sums of neighbours are resampled instead of decisions, at a cost that does not
    grow with the log. The interval of the log itself is normal.
    """

    def __init__(
        self,
        samples: Mapping[tuple[str, str], Sample],
        reward: Vector,
        level: float,
        *,
        draws: int,
        seed: int,
    ) -> None:
        super().__init__(samples, reward, level)
        columns = [
            column
            for sample in samples.values()
            for column in (sample.numerator, sample.denominator)
            if column is not None
        ]
        sums = _blocks([*columns, np.ones(len(columns[0]))])
        drawn = _resampled(sums, draws, np.random.default_rng(np.random.SeedSequence(seed).spawn(1)[0]))
        decisions = drawn[:, -1]  # blocks differ in size, so resamples do too
        self._values: dict[tuple[str, str], Vector] = {}
        at = 0
        for key, sample in samples.items():
            above = drawn[:, at]
            at += 1
            if sample.denominator is None:
                self._values[key] = above / decisions
                continue
            below = drawn[:, at]
            at += 1
            with np.errstate(invalid="ignore", divide="ignore"):
                self._values[key] = np.where(below > 0.0, above / below, np.nan)

    def interval(self, name: str, method: str) -> Interval:
        """The interval of the value of a candidate."""
        return _percentiles(self._values[name, method], self._level)

    def difference(self, one: str, other: str, method: str) -> Interval:
        """The interval of a difference."""
        return _percentiles(self._values[one, method] - self._values[other, method], self._level)


def _percentiles(values: Vector, level: float) -> Interval:
    if not np.isfinite(values).all():
        return NOTHING
    low, high = np.quantile(values, [0.5 - level / 2.0, 0.5 + level / 2.0])
    return Interval(float(low), float(high))


def _blocks(columns: Sequence[Vector]) -> Matrix:
    """The columns side by side, in at most ``_BLOCKS`` rows, each the sum of about as many neighbours."""
    count = len(columns[0])
    if count <= _BLOCKS:
        return np.column_stack(columns)
    starts = np.arange(_BLOCKS) * count // _BLOCKS
    return np.column_stack([np.add.reduceat(column, starts) for column in columns])


def _resampled(sums: Matrix, draws: int, random: np.random.Generator) -> Matrix:
    """The sums over resamples of the rows, shape (draws, columns)."""
    count = len(sums)
    found = np.empty((draws, sums.shape[1]))
    step = max(1, _TOGETHER // count)
    for start in range(0, draws, step):
        some = min(step, draws - start)
        picked = random.integers(count, size=(some, count)) + count * np.arange(some)[:, np.newaxis]
        times = np.bincount(picked.ravel(), minlength=some * count).reshape(some, count)
        found[start : start + some] = times @ sums
    return found
