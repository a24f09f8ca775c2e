"""Regret by stretches of rounds: how fast it grows, before and after the world has changed."""

import numpy as np

from sketchbandit.arrays import Vector
from sketchbandit.simulation.specs import Spec
from sketchbandit_paper.results import Results

BACK_WITHIN = 1.1
"""Who has at most so many times the regret a round of before the change is back."""
_AVERAGED = 4  # stretches whose regret is compared


def regret_rates(results: Results, name: str, member: Spec) -> tuple[Vector, Vector]:
    """Where each stretch ends, and the regret a round in it: the mean over permutations."""
    curve = results.curve(name, member)
    lengths, gained = np.diff(curve.rounds, prepend=0.0), np.diff(curve.mean, prepend=0.0)
    return curve.rounds, gained / lengths


def before_and_after(results: Results, name: str, member: Spec, switch: int) -> tuple[float, float]:
    """Regret a round in the last stretches before the change, and in the last of all."""
    ends, rates = regret_rates(results, name, member)
    before = rates[ends <= switch][-_AVERAGED:]
    return float(before.mean()), float(rates[-_AVERAGED:].mean())


def rounds_until_back(results: Results, name: str, member: Spec, switch: int) -> int | None:
    """From the change to the end of the first stretches that are as good as those before; None: never."""
    before, _ = before_and_after(results, name, member, switch)
    ends, rates = regret_rates(results, name, member)
    ends, rates = ends[ends > switch], rates[ends > switch]
    for i in range(_AVERAGED, len(rates) + 1):
        if rates[i - _AVERAGED : i].mean() <= BACK_WITHIN * before:
            return int(ends[i - 1] - switch)
    return None
