"""Which arms are copies of an earlier one, up to rounding."""

import numpy as np

from sketchbandit.arms.offered import OfferedArms
from sketchbandit.arms.sets import Arms, DenseArms, Images, SparseArms
from sketchbandit.arrays import AnyArray, Matrix, Vector

_SAME = 2.0**-42
"""Entries that differ by less, relative to the larger, differ by rounding: of a length in its sum, mostly."""
_GOLDEN = 0.6180339887498949


def first_copies(arms: Arms) -> AnyArray:
    """For every arm, the index of the first arm that equals it in every feature up to rounding, (K,).

    Multiples of one another are copies once they have length one. Each entry counts for itself: what is
    large and common to all arms hides no difference.
    """
    read: DenseArms | SparseArms = arms.some(slice(None)) if isinstance(arms, OfferedArms) else arms
    first = np.arange(len(read))
    keys = _keys(read)
    order = np.argsort(keys, kind="stable")
    starts = np.flatnonzero(np.diff(keys[order]) > 2.0 * _SAME * keys[order[1:]]) + 1
    for run in np.split(order, starts):
        if len(run) > 1:
            left = np.sort(run)
            rows = _rows(read, left)
            # Sums of a projection cancel, so its entries are compared with the largest of them.
            least = float(np.abs(rows).max(initial=0.0)) if isinstance(read, Images) else 0.0
            while len(left) > 1:
                alike = _are_alike(rows, rows[0], least)
                alike[0] = True
                first[left[alike]] = left[0]
                left, rows = left[~alike], rows[~alike]
    return first


def _keys(arms: DenseArms | SparseArms) -> Vector:
    """Sums of |x_j|·w_j with 1 <= w_j < 2. Nothing cancels, so those of copies are equal up to rounding."""
    if isinstance(arms, SparseArms):
        return arms.sums(np.abs(arms.matrix.data) * _weights(arms.matrix.indices))
    array = np.abs(arms.array.astype(np.float64, copy=False))
    keys: Vector = array @ _weights(np.arange(array.shape[1]))
    return keys


def _weights(columns: AnyArray) -> Vector:
    weights: Vector = 1.0 + columns * _GOLDEN % 1.0
    return weights


def _rows(arms: DenseArms | SparseArms, which: AnyArray) -> Matrix:
    """Some arms, in the columns where any of them has an entry."""
    if isinstance(arms, SparseArms):
        some = arms.matrix[which]
        rows: Matrix = some[:, np.unique(some.indices)].toarray()
        return rows.astype(np.float64, copy=False)
    return arms.array[which].astype(np.float64, copy=False)


def _are_alike(rows: Matrix, row: Vector, least: float) -> AnyArray:
    sizes = np.maximum(np.maximum(np.abs(rows), np.abs(row)), least)
    return np.asarray((np.abs(rows - row) <= _SAME * sizes).all(axis=1))
