"""Scores of arms: upper confidence bounds, the largest of many, and those that rounding may have swapped."""

from typing import TypeVar

import numpy as np

from sketchbandit.arrays import AnyArray, Vector
from sketchbandit.kernels import CLOSE

Numbers = TypeVar("Numbers", float, Vector)


def upper_bound(means: Numbers, radius: float, widths: Numbers) -> Numbers:
    """mean + radius·width (Alg. 2). ``kernels.search`` has the compiled version."""
    return means + radius * widths


def largest(values: Vector, count: int) -> list[int]:
    """The indices of the largest values, largest first. Ties go to the lowest index."""
    if count == 1:
        return [int(values.argmax())]
    if count < len(values):
        least = np.partition(values, -count)[-count]
        above = np.flatnonzero(values >= least)
    else:
        above = np.arange(len(values))
    indices: list[int] = above[np.argsort(-values[above], kind="stable")][:count].tolist()
    return indices


def close_to_best(scores: Vector, best: int) -> AnyArray:
    """The arms up to the best one that may be copies of it. The loops only say whether there are any."""
    return np.flatnonzero(scores[: best + 1] >= scores[best] - CLOSE * np.abs(scores).max())
