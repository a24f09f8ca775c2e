"""Products with one vector, dense or sparse, in float64 whatever the dtype of the rows."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sketchbandit.arrays import AnyArray, Vector
from sketchbandit.linalg.inner import inner, product
from sketchbandit.linalg.panels import column_panels


class SparseVector(NamedTuple):
    """The non-zero entries of a vector: O(non-zeros) wherever a dense one would cost O(dim)."""

    indices: NDArray[np.integer[Any]]
    values: Vector


AnyVector = Vector | SparseVector


def as_dense(x: AnyVector, dim: int) -> Vector:
    """All of its ``dim`` entries."""
    if not isinstance(x, SparseVector):
        return x
    dense = np.zeros(dim)
    dense[x.indices] = x.values
    return dense


def dot(vector: Vector, x: AnyVector) -> float:
    """``vector' x``."""
    if isinstance(x, SparseVector):
        return inner(vector[x.indices], x.values)
    return inner(vector, x)


def add_multiple(vector: Vector, factor: float, x: AnyVector) -> None:
    """``vector += factor * x`` in place."""
    if isinstance(x, SparseVector):
        vector[x.indices] += factor * x.values  # indices are unique
    else:
        vector += factor * x


def same_vector(one: AnyVector, other: AnyVector) -> bool:
    """Whether two vectors are equal, entry by entry, in the same form."""
    if isinstance(one, SparseVector) and isinstance(other, SparseVector):
        return np.array_equal(one.indices, other.indices) and np.array_equal(one.values, other.values)
    if isinstance(one, SparseVector) or isinstance(other, SparseVector):
        return False
    return one is other or bool((one == other).all())


def rows_times(rows: AnyArray, x: Vector) -> Vector:
    """``rows @ x``."""
    if rows.dtype == np.float64:
        return product(rows, x)
    made = np.zeros(len(rows))
    for columns, panel in column_panels(rows):
        made += product(panel, x[columns])
    return made


def times_rows(weights: Vector, rows: AnyArray) -> Vector:
    """``weights' rows``."""
    if rows.dtype == np.float64:
        return product(weights, rows)
    made = np.empty(rows.shape[1])
    for columns, panel in column_panels(rows):
        made[columns] = product(weights, panel)
    return made
