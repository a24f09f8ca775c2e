"""What the results say of each contestant on each data set."""

import math
from collections.abc import Iterable
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy import stats

from benchmarks.bakeoff.contestants import CONTESTANTS, Contestant
from benchmarks.bakeoff.store import Result
from benchmarks.bakeoff.streams import SETS

Permutation = tuple[int, int]
"""A target and a seed."""


class Cell(NamedTuple):
    """A contestant on a data set under a condition."""

    regrets: dict[Permutation, float]
    errors: list[str]
    bytes: int

    @property
    def mean(self) -> float:
        """NaN where no run was finished."""
        return float(np.mean(list(self.regrets.values()))) if self.regrets else math.nan

    @property
    def half_width(self) -> float:
        """Of a 95 % interval of the mean, by Student's t over the runs."""
        values, count = list(self.regrets.values()), len(self.regrets)
        if count < 2:
            return math.nan
        return float(stats.t.ppf(0.975, count - 1) * np.std(values, ddof=1) / math.sqrt(count))

    @property
    def worst(self) -> float:
        """The largest regret of a run."""
        return max(self.regrets.values(), default=math.nan)


class Board:
    """Results by contestant, data set and condition; ``speeds`` are results of the speed pass."""

    def __init__(
        self, results: Iterable[Result], speeds: Iterable[Result] = (), *, rounds: int = 2000
    ) -> None:
        current = {(one.name, one.version, one.setting) for one in CONTESTANTS}
        self._results = [one for one in results if one.key[:3] in current and one.rounds == rounds]
        self._speeds = {(one.contestant, one.data): one for one in speeds if one.key[:3] in current}

    @cached_property
    def _cells(self) -> dict[tuple[str, str, str], list[Result]]:
        found: dict[tuple[str, str, str], list[Result]] = {}
        for one in self._results:
            found.setdefault((one.contestant, one.data, one.condition), []).append(one)
        return found

    def cell(self, contestant: str, data: str, condition: str = "plain") -> Cell:
        """What it did there."""
        runs = self._cells.get((contestant, data, condition), [])
        done = [one for one in runs if not one.error]
        return Cell(
            {(one.target, one.seed): one.regret for one in done},
            [one.error for one in runs if one.error],
            max((one.bytes for one in done), default=0),
        )

    def ratio(self, one: str, other: str, data: str, condition: str = "plain", beside: str = "") -> float:
        """Mean regret of ``one`` by that of ``other``, on the permutations that both played.

        ``beside`` is the condition of the other, where it is not the same.
        """
        mine = self.cell(one, data, condition).regrets
        theirs = self.cell(other, data, beside or condition).regrets
        both = mine.keys() & theirs.keys()
        if not both:
            return math.nan
        below = sum(theirs[key] for key in both)
        above = sum(mine[key] for key in both)
        return above / below if below else (1.0 if not above else math.inf)

    def rate(self, contestant: str, data: str) -> float:
        """Rounds a second; NaN where it was not measured."""
        found = self._speeds.get((contestant, data))
        if found is None or found.error or not found.seconds:
            return math.nan
        return found.rounds / found.seconds

    def sets(self) -> list[str]:
        """The data sets that have results."""
        found = {one.data for one in self._results}
        return [data for data in SETS if data in found]

    def best(self, contestants: Iterable[Contestant], data: str, condition: str = "plain") -> str:
        """Who of them has the least mean regret; empty where nobody finished a run."""
        means = {one.name: self.cell(one.name, data, condition).mean for one in contestants}
        finished = {name: mean for name, mean in means.items() if not math.isnan(mean)}
        return min(finished, key=finished.__getitem__, default="")
