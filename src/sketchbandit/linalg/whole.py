"""X'X as one full matrix, for rows that come by the thousand: sums of it, and what a sketch keeps of it."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]


def add_rows_to_covariance(covariance: Matrix, rows: NDArray[Any], scratch: Matrix) -> None:
    """Add ``rows' rows`` in place, dim² flop a row; ``scratch`` is as large as the covariance.

    One symmetric product in numpy, not in scipy's BLAS, which keeps other threads waiting.

    >>> covariance = np.zeros((2, 2))
    >>> add_rows_to_covariance(covariance, np.array([[1.0, 2.0]]), np.empty((2, 2)))
    >>> covariance
    array([[1., 2.],
           [2., 4.]])
    """
    wide = np.ascontiguousarray(rows, dtype=np.float64)
    covariance += np.matmul(wide.T, wide, out=scratch)


class Cut(NamedTuple):
    """What is kept of a covariance: rows, and the amount taken from every squared singular value."""

    rows: Matrix
    amount: float


def cut_covariance(covariance: Matrix, size: int, *, head: int = 0, most: float = np.inf) -> Cut:
    """At most ``size - 1`` rows S with S'S ⪯ C ⪯ S'S + s I, s = lambda_size: one shrink of everything.

    The same as ``shrink`` of all the rows that C = X'X sums up (``head``, ``most`` as there), to rounding of
    the largest eigenvalue. With ``size`` beyond its dimension nothing
    is taken: the rows are a factor of C.

    >>> cut_covariance(np.diag([4.0, 1.0]), size=2)
    Cut(rows=array([[1.73205081, 0.        ]]), amount=1.0)
    """
    values, vectors = np.linalg.eigh(covariance)
    sigma_sq, right = np.maximum(values[::-1], 0.0), vectors.T[::-1]
    rounding = len(sigma_sq) * float(np.finfo(np.float64).eps) * sigma_sq[0]
    if most < np.inf:
        size = max(size, 1 + int(np.count_nonzero(sigma_sq > most)))
    amount = float(sigma_sq[size - 1]) if size <= len(sigma_sq) else 0.0
    if amount <= rounding:
        amount = 0.0
    kept = sigma_sq[: size - 1].copy()
    kept[head:] -= amount
    alive = sigma_sq[: size - 1] > rounding
    alive[head:] &= kept[head:] > 0.0
    return Cut(np.sqrt(kept[alive])[:, np.newaxis] * right[: size - 1][alive], amount)
