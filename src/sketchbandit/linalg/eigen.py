"""The leading eigenpairs of a small symmetric matrix."""

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

Matrix = NDArray[np.float64]

_BLOCK = 64  # LAPACK's blocking factor, for the size of its scratch arrays


def leading_eigenpairs(gram: Matrix, count: int) -> tuple[Matrix, Matrix]:
    """All eigenvalues of ``gram``, largest first, and the eigenvectors (columns) of the ``count`` largest.

    The three stages of LAPACK's ``syevd`` called one by one, because the last one, the
    back-transformation, can then skip the eigenvectors that nobody asked for: 10 to 20 % of the whole
    when half of them are wanted, as in every shrink.
    """
    n = len(gram)
    if n == 1:
        return gram[0].copy(), np.ones((1, min(count, 1)))
    scale = float(np.abs(gram.diagonal()).max()) or 1.0  # sytrd, unlike syevd, does not guard its range
    reflectors, diagonal, off_diagonal, tau, failed = lapack.dsytrd(
        (gram / scale).T, lower=1, lwork=_BLOCK * n, overwrite_a=1
    )
    if not failed:
        values, vectors, failed = lapack.dstevd(diagonal, off_diagonal)
    if failed:  # divide and conquer did not converge: numpy's driver scales and retries on its own
        values, vectors = np.linalg.eigh(gram / scale)
        return values[::-1] * scale, vectors[:, ::-1][:, :count]
    chosen = np.asfortranarray(vectors[:, ::-1][:, :count])
    # Q = diag(1, H_1 ... H_(n-1)): the reflectors sit below the subdiagonal, as in a QR factorisation.
    turned, _, _ = lapack.dormqr(
        "L", "N", np.asfortranarray(reflectors[1:, :-1]), tau, np.asfortranarray(chosen[1:]), lwork=_BLOCK * n
    )
    chosen[1:] = turned
    return values[::-1] * scale, chosen
