"""Confidence intervals for a log of fixed length: normal, and by bootstrap."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from sketchbandit.arrays import Matrix, Vector
from sketchbandit.evaluation.estimators import Sample

_BLOCKS = 10_000  # units to resample: decisions, or, if there are more, sums of some of them
_TOGETHER = 1 << 22  # counts drawn at once


class Interval(NamedTuple):
    """An interval from low to high."""

    low: float
    high: float

    def stretched(self, value: float) -> "Interval":
        """The interval, extended to include this value."""
        return Interval(min(self.low, value), max(self.high, value))


NOTHING = Interval(np.nan, np.nan)
"""The interval if nothing can be said."""


def normal(sample: Sample, level: float) -> Interval:
    """The estimate ± z·deviation/√n, by the central limit theorem; for a ratio, by the delta method."""
    if not np.isfinite(sample.value):
        return NOTHING
    return _normal_of(sample.value, sample.influence, level)


def normal_difference(one: Sample, other: Sample, level: float) -> Interval:
    """The interval of a difference, paired: what is good for both cancels."""
    value = one.value - other.value
    if not np.isfinite(value):
        return NOTHING
    return _normal_of(value, one.influence - other.influence, level)


def _normal_of(value: float, influence: Vector, level: float) -> Interval:
    count = len(influence)
    if count < 2:
        return NOTHING
    half = float(ndtri(0.5 + level / 2.0)) * float(influence.std(ddof=1)) / math.sqrt(count)
    return Interval(value - half, value + half)


class Bootstrap:
    """Resamples of the decisions, the same for all estimates of a log, so that differences are paired.

    Percentile intervals. Above 10,000 decisions, sums of neighbours are resampled instead of decisions:
    the same variance and skewness, at a cost that does not grow with the log.
    """

    def __init__(self, samples: Sequence[Sample], *, draws: int, seed: int) -> None:
        columns = [column for s in samples for column in (s.numerator, s.denominator) if column is not None]
        sums = _blocks([*columns, np.ones(len(columns[0]))])
        drawn = _resampled(sums, draws, np.random.default_rng(np.random.SeedSequence(seed).spawn(1)[0]))
        decisions = drawn[:, -1]  # blocks differ in size, so resamples do too
        self._values: list[Vector] = []
        at = 0
        for sample in samples:
            above = drawn[:, at]
            at += 1
            if sample.denominator is None:
                self._values.append(above / decisions)
                continue
            below = drawn[:, at]
            at += 1
            with np.errstate(invalid="ignore", divide="ignore"):
                self._values.append(np.where(below > 0.0, above / below, np.nan))

    def interval(self, index: int, level: float) -> Interval:
        """The interval of one estimate."""
        return _percentiles(self._values[index], level)

    def difference(self, one: int, other: int, level: float) -> Interval:
        """The interval of one estimate minus another."""
        return _percentiles(self._values[one] - self._values[other], level)


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
