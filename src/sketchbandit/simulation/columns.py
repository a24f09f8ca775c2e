"""Columns of a data set: brought to one scale, and a word where their scales are far apart."""

import numpy as np
from scipy import sparse

from sketchbandit.arrays import AnyArray, Rows, Vector
from sketchbandit.data import DataSet
from sketchbandit.data.dataset import column_name

_FAR = 30.0  # times: pixels, word counts and moments stay below it
_OFTEN = 0.01  # a column that is nearly always zero says little about its scale


def standardised(features: Rows) -> Rows:
    """Every column with mean 0 and deviation 1; a constant column becomes zero.

    Sparse columns are divided by their deviation and not centred, which would fill them.

    >>> standardised(np.array([[1.0, 5.0], [3.0, 5.0]]))
    array([[-1.,  0.],
           [ 1.,  0.]])
    """
    if not sparse.issparse(features):
        centred = features - features.mean(axis=0, dtype=np.float64)
        largest = np.abs(features).max(axis=0).astype(np.float64)
        return centred * _inverse(np.sqrt(np.mean(centred**2, axis=0)), largest)
    rows, count = features.tocsr().astype(np.float64), features.shape[0]
    means, present = _column_sums(rows, rows.data) / count, _column_sums(rows, np.ones(rows.nnz))
    squares = _column_sums(rows, (rows.data - means[rows.indices]) ** 2) + (count - present) * means**2
    inverse = _inverse(np.sqrt(squares / count), np.abs(means))
    return sparse.csr_array((rows.data * inverse[rows.indices], rows.indices, rows.indptr), shape=rows.shape)


def said_of_scales(data: DataSet) -> str:
    """A sentence where columns are far apart in scale, naming two of them and the remedy; else nothing.

    The scale of a column is the root mean square of its entries that are not zero.
    """
    scales = _scales(data.features)
    known = np.flatnonzero(scales > 0.0)
    if not len(known):
        return ""
    small, large = (int(known[choose(scales[known])]) for choose in (np.argmin, np.argmax))
    times = scales[large] / scales[small]
    if times < _FAR:
        return ""
    one, other = (column_name(data.columns, column) for column in (large, small))
    other = other.removesuffix(" (counted from 0)")  # said once
    return (
        f"the columns of {data.name} are far apart in scale: entries of {one} are "
        f"about {scales[large]:.3g}, of {other} about {scales[small]:.3g}. The large ones decide nearly "
        "everything; --standardize (standardize=True) brings all columns to one scale"
    )


def _scales(features: Rows) -> Vector:
    """Zero for a column that is nearly always zero."""
    count = features.shape[0]
    if sparse.issparse(features):
        rows = features.tocsr().astype(np.float64)
        present, squares = _column_sums(rows, rows.data != 0.0), _column_sums(rows, rows.data**2)
    else:
        present, squares = np.zeros(features.shape[1]), np.zeros(features.shape[1])
        for start in range(0, count, 4096):  # byte images are not turned to float whole
            part = features[start : start + 4096].astype(np.float64)
            present += (part != 0.0).sum(axis=0)
            squares += (part**2).sum(axis=0)
    often = present >= max(1.0, _OFTEN * count)
    found: Vector = np.sqrt(np.divide(squares, present, out=np.zeros_like(squares), where=often))
    return found


def _column_sums(rows: Rows, values: AnyArray) -> Vector:
    """Of what is stored of a CSR matrix, or of something else in the same places."""
    return np.bincount(rows.indices, weights=values, minlength=rows.shape[1]).astype(np.float64)


def _inverse(deviations: Vector, sizes: Vector) -> Vector:
    """Zero where the deviation is rounding beside the entries: a constant column tells nothing."""
    varies = deviations > 1e-12 * sizes
    found: Vector = np.divide(1.0, deviations, out=np.zeros_like(deviations), where=varies)
    return found
