"""Optimism: the largest upper confidence bound, without the width of every arm."""

import math
from typing import Any

import numpy as np

from sketchbandit.arrays import AnyArray, Vector
from sketchbandit.explore.base import Candidates, Explore
from sketchbandit.explore.compiled_search import search_dense, search_many, search_rows
from sketchbandit.explore.scores import upper_bound
from sketchbandit.precision import DenseInverse, LowRankInverse, Precision


class UCB(Explore):
    """The arm of the largest mean + radius·width, ties to the lowest index."""

    kind = "ucb"
    _is_plain = True  # no subclass chooses otherwise

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls._is_plain = cls.choose is UCB.choose

    def choose(self, candidates: Candidates, count: int) -> list[int]:
        """The ``count`` arms of the largest scores, best first (design: cost model).

        The arms with the largest optimistic bounds are scored first; an arm whose bound is below the
        ``count``-th best score found so far cannot be among the best, and its width is never computed.
        """
        bounds = upper_bound(candidates.means, candidates.radius, candidates.most_widths())
        found: list[tuple[float, int]] = []  # (-score, index), the best first
        best = (math.inf, -1)

        def consider(index: int) -> None:
            nonlocal best
            score = upper_bound(float(candidates.means[index]), candidates.radius, candidates.width(index))
            found.append((-score, index))
            if found[-1] < best:
                best = found[-1]
                candidates.keep()

        first = _largest(bounds, count)
        for index in first:
            consider(index)
        found.sort()
        rivals = np.flatnonzero(bounds >= -found[-1][0])
        if len(rivals) > count:
            done = set(first)
            for index in rivals[np.argsort(-bounds[rivals], kind="stable")].tolist():
                if bounds[index] < -found[-1][0]:
                    break
                if index not in done:
                    consider(index)
                    found.sort()
                    del found[count:]
        return [index for _, index in found]

    def search(self, arms: AnyArray, theta: Vector, precision: Precision, radius: float) -> int | None:
        """The best of dense arms in one compiled call."""
        inverse = precision.inverse
        if not self._is_plain:
            return None
        if isinstance(inverse, LowRankInverse):
            return search_rows(arms, theta, precision, inverse, radius)
        if isinstance(inverse, DenseInverse):
            return search_dense(arms, theta, precision, inverse, radius)
        return None

    def search_many(
        self, arms: AnyArray, bounds: AnyArray, theta: Vector, precision: Precision, radius: float
    ) -> AnyArray | None:
        """The best of every set in one compiled call."""
        if not self._is_plain:
            return None
        return search_many(arms, bounds, theta, precision.inverse, radius)


def _largest(bounds: Vector, count: int) -> list[int]:
    """The indices of the largest bounds, in order, ties to the lowest."""
    if count == 1:
        return [int(bounds.argmax())]
    if count < len(bounds):
        least = np.partition(bounds, -count)[-count]
        above = np.flatnonzero(bounds >= least)
    else:
        above = np.arange(len(bounds))
    indices: list[int] = above[np.argsort(-bounds[above], kind="stable")][:count].tolist()
    return indices
