"""The leading eigenpairs of a small Gram matrix."""

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

Matrix = NDArray[np.float64]

_REDUCTION_BLOCK = 8  # columns LAPACK reduces at a time: its default of 32 is slower below n = 400
_TURNING_BLOCK = 64  # reflectors applied at a time


def leading_eigenpairs(gram: Matrix, count: int) -> tuple[Matrix, Matrix]:
    """All eigenvalues of ``gram``, largest first, and the eigenvectors (rows) of the ``count`` largest.

    ``gram`` is positive semi-definite: what rounding leaves below zero is clipped. Overwrites ``gram``, a
    C-ordered array of which only the upper triangle is read.

    The three stages of LAPACK's ``syevd`` called one by one, because the last one, the
    back-transformation, can then skip the eigenvectors that nobody asked for: 10 to 20 % of the whole
    when half of them are wanted, as in every shrink.
    """
    n = len(gram)
    scale = float(np.abs(gram.diagonal()).max()) or 1.0  # sytrd, unlike syevd, does not guard its range
    gram /= scale
    if n == 1:
        return gram[0] * scale, np.ones((min(count, 1), 1))
    # LAPACK counts by columns: the transpose of the C-ordered gram is the lower triangle it works on.
    reflectors, diagonal, off_diagonal, tau, _ = lapack.dsytrd(
        gram.T, lower=1, lwork=_REDUCTION_BLOCK * n, overwrite_a=1
    )
    values, vectors, failed = lapack.dstevd(diagonal, off_diagonal)
    if failed:
        raise np.linalg.LinAlgError("the eigenvalues of the Gram matrix did not converge")
    leading = vectors.T[::-1][:count]
    # Q = diag(1, H_1 ... H_(n-1)), and H_i is stored below the subdiagonal of column i: seen from one
    # element further on in memory, that is the layout of a QR factorisation.
    shifted = reflectors.ravel(order="K")[1 : 1 + n * (n - 1)].reshape((n, n - 1), order="F")
    scratch = _TURNING_BLOCK * (len(leading) + _TURNING_BLOCK + 1)
    turned, _, _ = lapack.dormqr(
        "L", "N", shifted, tau, leading[:, 1:].T.copy(order="F"), lwork=scratch, overwrite_c=1
    )
    eigenvectors = np.empty((len(leading), n))
    eigenvectors[:, 0] = leading[:, 0]
    eigenvectors[:, 1:] = turned.T
    return np.maximum(values[::-1], 0.0) * scale, eigenvectors
