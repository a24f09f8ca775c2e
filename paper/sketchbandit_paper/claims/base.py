"""A claim of the paper, and what our results say to it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from sketchbandit.arrays import Vector
from sketchbandit.simulation.specs import Spec
from sketchbandit_paper.results import Results, estimate

REPRODUCED, PARTLY, NOT, OPEN = "reproduced", "partly", "not", "open"


class Finding(NamedTuple):
    """A verdict, and our number beside the paper's."""

    verdict: str
    ours: str


@dataclass(frozen=True, kw_only=True)
class Claim:
    """One sentence of the paper that an experiment can bear out or not.

    Attributes
    ----------
    id, where : str
        Its name here, and where the paper says it; "ours" if it does not.
    statement : str
        What it says, in our words.
    paper : str
        The paper's number; "-" where it gives none.
    rule : str
        When we call it reproduced, and when partly.
    needs : tuple of str
        The experiments it is judged by.
    judge : function
        From results to a finding.
    whole : bool
        Whether it means something at the full number of rounds only.

    """

    id: str
    statement: str
    paper: str
    rule: str
    needs: tuple[str, ...]
    judge: Callable[[Results], Finding]
    where: str = "ours"
    whole: bool = False

    def finding(self, results: Results) -> Finding:
        """The verdict; "open" where the experiments it needs are not there, or not whole."""
        absent = [name for name in self.needs if not results.has(name)]
        if absent:
            return Finding(OPEN, f"not run: {', '.join(absent)}")
        if self.whole and results.profile.rounds < 1.0:
            return Finding(OPEN, "needs the full number of rounds")
        missing = sum(results.missing(name) for name in self.needs)
        if missing:
            return Finding(OPEN, f"{missing} runs are missing")
        return self.judge(results)


def members(results: Results, name: str, label: str) -> list[Spec]:
    """Every setting of one method in an experiment."""
    (found,) = [settings for series, settings in results.series(name) if series == label]
    return found


def verdict(reproduced: bool, partly: bool) -> str:
    """The verdict from two tests."""
    return REPRODUCED if reproduced else PARTLY if partly else NOT


def graded(value: float, reproduced: bool, partly: bool) -> str:
    """The same, and open where the value that the tests are about is not a number."""
    return verdict(reproduced, partly) if np.isfinite(value) else OPEN


def ratio(results: Results, name: str, one: Spec, other: Spec, column: str = "regret") -> float:
    """Mean of one over mean of the other, at the end."""
    return float(results.finals(name, one, column).mean() / results.finals(name, other, column).mean())


def is_surely_less(one: Vector, other: Vector) -> bool:
    """Whether the paired difference is negative with 95 % confidence."""
    found = estimate(one - other)
    return bool(found.mean + found.half < 0.0)
