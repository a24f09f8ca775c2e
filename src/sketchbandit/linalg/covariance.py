"""X'X as one full matrix, for rows that come by the thousand: sums of it, and rows that stand for it."""

from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack

from sketchbandit.arrays import AnyArray, Matrix
from sketchbandit.linalg.inner import product


def add_rows_to_covariance(covariance: Matrix, rows: AnyArray, scratch: Matrix) -> None:
    """Add ``rows' rows`` in place, dim² flop a row; ``scratch`` is as large as the covariance.

    One symmetric product in numpy, not in scipy's BLAS, which keeps other threads waiting.

    Examples
    --------
    >>> covariance = np.zeros((2, 2))
    >>> add_rows_to_covariance(covariance, np.array([[1.0, 2.0]]), np.empty((2, 2)))
    >>> covariance
    array([[1., 2.],
           [2., 4.]])

    """
    wide = np.ascontiguousarray(rows, dtype=np.float64)
    covariance += product(wide.T, wide) if len(covariance) == 1 else np.matmul(wide.T, wide, out=scratch)


class Factor(NamedTuple):
    """Rows S with S'S = C up to ``remainder``: S'S ⪯ C ⪯ S'S + remainder·I, to rounding."""

    rows: Matrix
    remainder: float


def factor_of_covariance(covariance: Matrix) -> Factor:
    """At most dim rows S that stand for a covariance C: a pivoted Cholesky factor of its correlations.

    Columns are brought to one scale first (by powers of two, which is exact), so that small columns beside
    large ones keep all their digits; eigenvectors of C would lose those below eps times the largest
    eigenvalue. What correlations leave no digits for is the ``remainder``.

    Examples
    --------
    >>> factor_of_covariance(np.array([[4.0, 2.0], [2.0, 1.0]]))
    Factor(rows=array([[2., 1.]]), remainder=4.440892098500626e-16)

    """
    dim = len(covariance)
    diagonal = covariance.diagonal()
    scale = np.ones(dim)
    alive = diagonal > 0.0
    scale[alive] = np.ldexp(1.0, np.frexp(np.sqrt(diagonal[alive]))[1] - 1)
    tolerance = dim * float(np.finfo(np.float64).eps)
    factored, pivots, rank, _ = lapack.dpstrf(covariance / scale / scale[:, np.newaxis], tol=tolerance)
    order = pivots - 1
    rows = np.zeros((rank, dim))
    rows[:, order] = np.triu(factored)[:rank]
    rows *= scale
    left = order[rank:]
    return Factor(rows, float(tolerance * np.square(scale[left[alive[left]]]).sum()))
