"""Products with a tall-and-wide row buffer, a panel of columns at a time.

A buffer of m rows of length d is multiplied from the left by small matrices only, so each panel of
columns can be read, used and overwritten before the next: the work space is one panel instead of a
second buffer. Panels are float64 whatever the buffer's dtype: float32 is a way to store rows, not to
compute with them, so that the small directions of a float32 sketch are as accurate as its rows.
"""

from collections.abc import Iterator

import numpy as np

from sketchbandit.arrays import AnyArray, Matrix, Parts
from sketchbandit.linalg.inner import product, row_norms_sq

_PANEL_ELEMENTS = 1 << 18  # 2 MiB of float64: stays in the cache, wide enough for full BLAS speed


def column_panels(rows: AnyArray) -> Iterator[tuple[slice, Matrix]]:
    """The columns of ``rows`` as (slice, float64 panel) pairs, at most 2 MiB each."""
    count, dim = rows.shape
    width = max(64, _PANEL_ELEMENTS // max(count, 1))
    for start in range(0, dim, width):
        columns = slice(start, min(start + width, dim))
        yield columns, rows[:, columns].astype(np.float64, copy=False)


def gram(rows: AnyArray) -> Matrix:
    """``rows @ rows.T`` in float64."""
    if rows.dtype == np.float64:
        return product(rows, rows.T)
    total = np.zeros((len(rows), len(rows)))
    for _, panel in column_panels(rows):
        total += product(panel, panel.T)
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


def multiply_in_place(weights: Matrix, rows: AnyArray) -> None:
    """Overwrite the first ``len(weights)`` rows with ``weights @ rows``."""
    kept = len(weights)
    for columns, panel in column_panels(rows):
        rows[:kept, columns] = product(weights, panel)


def residual_norm_sq(vectors: Matrix, rows: AnyArray) -> float:
    """Squared Frobenius norm of ``rows - V'V rows`` for orthonormal rows V, without cancellation."""
    total = 0.0
    for _, panel in column_panels(rows):
        residual = panel - vectors.T @ product(vectors, panel)
        total += float(row_norms_sq(residual).sum())
    return total
