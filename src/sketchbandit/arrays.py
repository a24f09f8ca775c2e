"""The array types that the whole library speaks of."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

AnyArray = NDArray[Any]
"""Of float64 or float32, mostly: rows and arms as they came."""
Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Labels = NDArray[np.int64]
Parts = tuple[AnyArray, ...]
"""Rows in the pieces in which they are kept: one below the other they are S."""
Scalars = dict[str, Any]
"""JSON values of a file."""
Arrays = dict[str, AnyArray]
"""Arrays of a file."""
