"""The upper confidence bound."""

from typing import TypeVar

from sketchbandit.arrays import Vector

Numbers = TypeVar("Numbers", float, Vector)


def upper_bound(means: Numbers, radius: float, widths: Numbers) -> Numbers:
    """mean + radius·width (Alg. 2). ``kernels.sums`` has the compiled version."""
    return means + radius * widths
