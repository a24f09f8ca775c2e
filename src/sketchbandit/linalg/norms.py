"""Squared row norms."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def row_norms_sq(rows: NDArray[Any]) -> NDArray[np.float64]:
    """Squared Euclidean norm of every row, in float64 whatever the dtype of ``rows``.

    A row's value does not depend on how many rows stand beside it, so that a stream read row by row
    and the same stream read in blocks have the same mass to the last bit.

    >>> row_norms_sq(np.array([[3.0, 4.0], [0.0, 0.0]]))
    array([25.,  0.])
    """
    with np.errstate(over="ignore", invalid="ignore"):  # inf and NaN are the caller's to judge
        norms_sq: NDArray[np.float64] = np.vecdot(rows, rows, dtype=np.float64)
    return norms_sq
