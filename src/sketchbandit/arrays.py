"""The array types that the whole library speaks of, and the names of arrays in files."""

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


def under(name: str, arrays: Arrays) -> Arrays:
    """The same arrays, by names that begin with this one and a dot.

    >>> list(under("sketch", {"rows": np.eye(2)}))
    ['sketch.rows']
    """
    return {f"{name}.{key}": array for key, array in arrays.items()}


def taken_from(name: str, arrays: Arrays) -> Arrays:
    """Those that ``under`` has named so, by their own names.

    >>> list(taken_from("sketch", {"sketch.rows": np.eye(2), "b": np.ones(2)}))
    ['rows']
    """
    prefix = f"{name}."
    return {key.removeprefix(prefix): array for key, array in arrays.items() if key.startswith(prefix)}
