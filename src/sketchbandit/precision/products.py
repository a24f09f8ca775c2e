"""Products with the rows S of a sketch, given in parts that are not concatenated."""

import numpy as np

from sketchbandit.arms import SparseArms, sum_runs
from sketchbandit.arrays import AnyArray, Matrix, Parts, Vector
from sketchbandit.linalg import AnyVector, SparseVector, product, rows_times, times_rows
from sketchbandit.linalg.panels import column_panels, gram


def project(parts: Parts, x: AnyVector) -> Vector:
    """S x."""
    if isinstance(x, SparseVector):
        bounds = np.array([0, len(x.indices)])
        return _project_entries(parts, x.indices, x.values, bounds)[:, 0]
    if len(parts) == 1:
        return rows_times(parts[0], x)
    return np.concatenate([rows_times(part, x) for part in parts])


def project_sparse(parts: Parts, arms: SparseArms) -> Matrix:
    """S X' for sparse arms, (r, K), reading only the columns where they are not zero."""
    matrix = arms.matrix
    values = matrix.data.astype(np.float64, copy=False)
    return _project_entries(parts, matrix.indices, values, matrix.indptr)


def combine(weights: Vector, parts: Parts) -> Vector:
    """S'w, for the first ``len(weights)`` rows of S."""
    if len(parts) == 1:
        return times_rows(weights, parts[0][: len(weights)])
    total = np.zeros(parts[0].shape[1])
    taken = 0
    for part in parts:
        some = weights[taken : taken + len(part)]
        total += times_rows(some, part[: len(some)])
        taken += len(some)
    return total


def gram_of_parts(parts: Parts) -> Matrix:
    """SS', (r, r)."""
    count = sum(len(part) for part in parts)
    products = np.empty((count, count))
    above = 0
    for i, part in enumerate(parts):
        rows = slice(above, above + len(part))
        products[rows, rows] = gram(part)
        left = 0
        for other in parts[:i]:
            columns = slice(left, left + len(other))
            products[rows, columns] = _cross(part, other)
            products[columns, rows] = products[rows, columns].T
            left += len(other)
        above += len(part)
    return products


def _cross(one: AnyArray, other: AnyArray) -> Matrix:
    if one.dtype == other.dtype == np.float64:
        return product(one, other.T)
    products = np.zeros((len(one), len(other)))
    for columns, panel in column_panels(one):
        products += product(panel, other[:, columns].astype(np.float64, copy=False).T)
    return products


def _project_entries(parts: Parts, indices: AnyArray, values: Vector, bounds: AnyArray) -> Matrix:
    """One column per run of entries. It does not depend on the other runs."""
    return np.concatenate([sum_runs(part.take(indices, axis=1) * values, bounds) for part in parts])
