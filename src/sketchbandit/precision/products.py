"""Products with the rows S of a sketch, given in parts that are not concatenated."""

import numpy as np

from sketchbandit.arms import SparseArms, sum_runs
from sketchbandit.arrays import AnyArray, Matrix, Parts, Vector
from sketchbandit.linalg import AnyVector, SparseVector, rows_times, times_rows


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


def _project_entries(parts: Parts, indices: AnyArray, values: Vector, bounds: AnyArray) -> Matrix:
    """One column per run of entries. It does not depend on the other runs."""
    return np.concatenate([sum_runs(part.take(indices, axis=1) * values, bounds) for part in parts])
