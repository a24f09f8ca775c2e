"""The upper confidence bound."""

from typing import TypeVar

from sketchbandit.arrays import Vector

Numbers = TypeVar("Numbers", float, Vector)


def upper_bound(means: Numbers, radius: float, widths: Numbers) -> Numbers:
    """The mean plus the radius times the width (Alg. 2); ``kernels.scores`` has it for compiled loops."""
    return means + radius * widths
