"""Pareto fronts: what no other setting beats in cost and regret alike."""

import numpy as np
from numpy.typing import ArrayLike


def pareto_optimal(costs: ArrayLike, losses: ArrayLike) -> list[int]:
    """The indices that no other beats in both, cheapest first.

    >>> pareto_optimal([1.0, 2.0, 3.0], [5.0, 6.0, 1.0])
    [0, 2]
    """
    paid, lost = np.asarray(costs, dtype=np.float64), np.asarray(losses, dtype=np.float64)
    best, front = np.inf, []
    for index in np.lexsort((lost, paid)):
        if lost[index] < best:
            best = lost[index]
            front.append(int(index))
    return front
