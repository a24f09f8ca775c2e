"""The array types used everywhere, and the names of arrays in files."""

from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

AnyArray = NDArray[Any]
"""Mostly float64 or float32: rows and arms as they came."""
Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Labels = NDArray[np.int64]
Dtype = np.dtype[Any]
Rows = Any
"""Rows as numpy array or scipy.sparse matrix in CSR format; scipy has no types."""
Parts = tuple[AnyArray, ...]
"""Rows in the pieces in which they are kept. Concatenated, they are S."""
Scalars = dict[str, Any]
"""The JSON values of a file."""
Arrays = dict[str, AnyArray]
"""The arrays of a file."""


class SparseMatrix(Protocol):
    """A matrix or array of scipy.sparse."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Rows and columns."""

    def tocsr(self) -> Rows:
        """The same by rows."""


class DeviceArray(Protocol):
    """An array of another library, maybe on a GPU: torch, JAX, CuPy."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Length, or rows and columns."""

    def __dlpack_device__(self) -> tuple[int, int]:
        """Where it is."""


RowsLike = ArrayLike | SparseMatrix | DeviceArray
"""Rows of features as users have them: arrays, lists, data frames, sparse matrices, tensors; or one row."""


def under(name: str, arrays: Arrays) -> Arrays:
    """The same arrays, with names that start with this prefix and a dot.

    Examples
    --------
    >>> list(under("sketch", {"rows": np.eye(2)}))
    ['sketch.rows']

    """
    return {f"{name}.{key}": array for key, array in arrays.items()}


def taken_from(name: str, arrays: Arrays) -> Arrays:
    """The arrays that ``under`` has prefixed, with their own names.

    Examples
    --------
    >>> list(taken_from("sketch", {"sketch.rows": np.eye(2), "b": np.ones(2)}))
    ['rows']

    """
    prefix = f"{name}."
    return {key.removeprefix(prefix): array for key, array in arrays.items() if key.startswith(prefix)}
