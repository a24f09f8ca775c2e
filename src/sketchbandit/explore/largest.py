"""The largest of many numbers, in order."""

import numpy as np

from sketchbandit.arrays import Vector


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
