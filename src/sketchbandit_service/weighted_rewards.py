"""Rewards with their importance weights, in constant memory."""

import math
from array import array
from collections.abc import Iterable, Iterator
from typing import Self

import numpy as np

from sketchbandit.arrays import AnyArray, Matrix, Vector
from sketchbandit.evaluation.mean_bounds import counted
from sketchbandit.evaluation.terms import Terms

MOST = 512
"""Different pairs of weight and reward that are kept apart; of more, half as many cells are made."""
_FEW = 16  # pairs that may wait to be counted, or a quarter of the different ones
_FINEST = 1.0 / 16.0  # step of the grid, relative to deviations and weights
_COARSER = 1.1  # from one step to the next, at least
_COMMON = 16  # a reward of one decision in so many has cells of its own
_HEAVY = MOST // 8  # of the heaviest pairs are never pooled
_APART = 1e9  # beyond all steps: where those cells lie


class WeightedRewards:
    """Pairs of weight w and reward r, each with how often it occurred.

    Clicks, and rules with few propensities, have few different pairs: these are exact. Otherwise neighbours
    are pooled in cells of a grid. A cell has the mean of w as weight and sum w r / sum w as reward, so it
    keeps sum w and sum w r. Its sides are at most h times the deviation of the weights from 1 (of the rewards
    from their mean, by w²) near the centre, and h times the distance from it further out. So pooling loses
    about h²/12 of the variances, and heavy weights stay apart. h is the finest of 1/16, 1/8, ... with which
    there are few enough cells. Common rewards, the least and the largest one are never pooled with others.

    >>> found = WeightedRewards()
    >>> for place in range(1000):
    ...     found.add(weight=0.5 + place % 2, reward=1.0)
    >>> terms = found.terms()
    >>> found.count, found.reward_sum, sorted(set(terms.weight.tolist()))
    (1000, 1000.0, [0.5, 1.5])
    """

    def __init__(self) -> None:
        self.reward_sum = 0.0
        self._counted = 0
        """Rows that were counted together already; the others wait for it."""
        self._rows = array("d")
        """Weight, reward and number of each."""

    @classmethod
    def undump(cls, saved: Iterable[float]) -> Self:
        """Back from a list."""
        made, (reward_sum, counted_rows, *rows) = cls(), saved
        made.reward_sum, made._counted, made._rows = reward_sum, int(counted_rows), array("d", rows)
        return made

    @property
    def count(self) -> int:
        """The number of rewards."""
        return round(sum(self._rows[2::3]))

    def add(self, weight: float, reward: float) -> None:
        """Add a reward."""
        self._rows.extend((weight, reward, 1.0))
        self.reward_sum += reward
        self._settle()

    def __iadd__(self, other: Self) -> Self:
        """Add those of another one."""
        self._rows.extend(other._rows)
        self.reward_sum += other.reward_sum
        self._settle()
        return self

    def __iter__(self) -> Iterator[float]:
        """The numbers from which ``undump`` makes the same one again."""
        yield from (self.reward_sum, self._counted, *self._rows)

    def terms(self) -> Terms:
        """The terms of the candidate that has these weights, without a reward model."""
        rows = np.array(self._rows).reshape(-1, 3)
        weight, reward, times = np.ascontiguousarray(rows.T)
        none = np.zeros(len(rows))
        return Terms(reward, weight, none, none, 0.0, times)

    def _settle(self) -> None:
        """Count equal pairs together, from time to time, and pool if there are too many."""
        waiting = len(self._rows) // 3 - self._counted
        if waiting <= max(_FEW, self._counted // 4):
            return
        rows = np.array(self._rows).reshape(-1, 3)
        found = _pooled(rows, rows[:, 0] + 1j * rows[:, 1])
        if len(found) > MOST:
            found = _in_cells(found)
        self._rows, self._counted = array("d", found.tobytes()), len(found)


def _in_cells(rows: Matrix) -> Matrix:
    """Cells of the finest grid that leaves at most ``MOST`` / 2."""
    step = _FINEST
    while len(found := _pooled(rows, _cells(rows, step))) > MOST // 2:
        step *= max(_COARSER, math.sqrt(2.0 * len(found) / MOST))
    return found


def _cells(rows: Matrix, step: float) -> AnyArray:
    """The cell of each row, as a complex number: its place among the weights, and among the rewards."""
    weight, reward, times = rows.T
    values, counts = counted(reward, times)
    mass, squares = times * weight, times * weight**2
    mean = float((mass * reward).sum() / mass.sum())
    of_weight = _steps(weight, 1.0, times, step) + np.floor(np.log(weight) / step)
    of_reward = _steps(reward, mean, squares, step)
    is_common = counts * _COMMON >= counts.sum()
    is_common[[0, -1]] = True
    common = values[is_common]
    place = np.minimum(np.searchsorted(common, reward), len(common) - 1)
    cells: AnyArray = of_weight + 1j * np.where(common[place] == reward, _APART + place, of_reward)
    heaviest = np.argsort(-weight)[:_HEAVY]
    cells[heaviest] = _APART + np.arange(len(heaviest))
    return cells


def _steps(values: Vector, centre: float, times: Vector, step: float) -> Vector:
    """asinh((x - centre) / deviation) / step, rounded down: equal steps near the centre, then relative ones.

    Deviation and centre are rounded, so that a grid stays the same while a few more numbers come in.
    """
    variance = float((times * (values - centre) ** 2).sum() / times.sum())
    deviation = 2.0 ** round(0.5 * math.log2(variance)) if variance > 0.0 else 1.0
    near = deviation * round(centre / deviation)
    return np.floor(np.arcsinh((values - near) / deviation) / step)


def _pooled(rows: Matrix, cells: AnyArray) -> Matrix:
    """The rows of each cell as one."""
    order = np.argsort(cells, kind="stable")
    found = cells[order]
    starts = np.flatnonzero(np.append(True, found[1:] != found[:-1]))
    weight, reward, times = rows[order].T
    mass, together = np.add.reduceat(times * weight, starts), np.add.reduceat(times, starts)
    earned = np.add.reduceat(times * weight * reward, starts)

    def within(means: Vector, of: Vector) -> Vector:
        """Equal numbers have exactly themselves as mean."""
        least, most = np.minimum.reduceat(of, starts), np.maximum.reduceat(of, starts)
        return np.clip(means, least, most)

    return np.column_stack([within(mass / together, weight), within(earned / mass, reward), together])
