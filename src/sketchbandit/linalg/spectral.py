"""Covariances of rows, and how far a sketch is from its data (for tests, plots and reports)."""

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, eigsh

from sketchbandit.arrays import AnyArray, Matrix, Rows
from sketchbandit.linalg.inner import product

_DENSE_UP_TO = 600  # columns; beyond, Lanczos is faster and needs no dim x dim matrix


def covariance_of(rows: AnyArray) -> Matrix:
    """S'S for S = ``rows``, (dim, dim), in float64 whatever the dtype of rows."""
    wide = rows.astype(np.float64, copy=False)
    return product(wide.T, wide)


def covariance_error(covariance: Matrix, rows: AnyArray, alpha: float = 0.0) -> float:
    """Spectral norm of ``covariance - (S'S + alpha I)`` for a symmetric ``covariance`` and S = ``rows``."""
    difference = covariance - covariance_of(rows)
    difference[np.diag_indices_from(difference)] -= alpha
    return float(np.abs(np.linalg.eigvalsh(difference)).max())


def spectral_error(data: Rows, rows: AnyArray, alpha: float = 0.0) -> float:
    """Spectral norm of ``X'X - (S'S + alpha I)`` for X = ``data`` (dense or sparse) and S = ``rows``.

    Dense up to 600 columns; beyond, the largest eigenvalue in magnitude by Lanczos, without forming a
    dim x dim matrix.

    Examples
    --------
    >>> spectral_error(np.diag([3.0, 1.0]), np.array([[3.0, 0.0]]))
    1.0

    """
    data = data.tocsr() if sparse.issparse(data) else np.asarray(data, dtype=np.float64)
    dim = data.shape[1]
    if dim <= _DENSE_UP_TO:
        covariance = data.T @ data
        dense = covariance.toarray() if sparse.issparse(covariance) else covariance
        return covariance_error(dense, rows, alpha)
    sketch = rows.astype(np.float64, copy=False)

    def apply(vector: Matrix) -> Matrix:
        vector = vector.ravel()
        result: Matrix = data.T @ (data @ vector) - sketch.T @ (sketch @ vector) - alpha * vector
        return result

    operator = LinearOperator((dim, dim), matvec=apply, dtype=np.float64)
    start = np.random.default_rng(0).standard_normal(dim)
    if not apply(start).any():
        return 0.0
    (extreme,) = eigsh(operator, k=1, which="LM", return_eigenvectors=False, v0=start, tol=1e-10)
    return float(abs(extreme))


def singular_values_sq(data: Rows) -> Matrix:
    """Squared singular values of ``data`` (dense or sparse), largest first.

    Those beyond the smaller side of the matrix are zero and left out.
    """
    if sparse.issparse(data):
        return gram_spectrum(data)
    return np.asarray(np.linalg.svd(np.asarray(data, dtype=np.float64), compute_uv=False) ** 2)


def gram_spectrum(data: Rows) -> Matrix:
    """``singular_values_sq`` by the smaller Gram matrix: several times faster, to sqrt(eps) of the largest.

    Examples
    --------
    >>> gram_spectrum(np.array([[3.0, 0.0], [0.0, 1.0]]))
    array([9., 1.])

    """
    small = data.T @ data if data.shape[0] > data.shape[1] else data @ data.T
    dense = small.toarray() if sparse.issparse(small) else small
    return np.maximum(np.linalg.eigvalsh(dense.astype(np.float64))[::-1], 0.0)


def symmetric_root(matrix: Matrix) -> Matrix:
    """The positive semidefinite root of a symmetric matrix, whose negative eigenvalues count as zero.

    There is only one, whatever signs or rotations its eigenvectors have: draws with it are the same to
    rounding on every machine.

    Examples
    --------
    >>> symmetric_root(np.diag([9.0, 4.0]))
    array([[3., 0.],
           [0., 2.]])

    """
    values, vectors = np.linalg.eigh(matrix)
    root: Matrix = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    return root


def fd_bound(sigma_sq: Matrix, size: int) -> float:
    """The bound Delta of the paper's eq. (spectral error) on Frequent Directions of ``size`` rows.

        Delta = min over 0 <= k < size of (sum of sigma_i² over i > k) / (size - k)

    ``sigma_sq`` are the squared singular values of the stream, in any order.

    Examples
    --------
    >>> fd_bound(np.array([5.0, 1.0]), size=2)
    1.0

    """
    descending = np.sort(sigma_sq)[::-1]
    tails = np.append(np.cumsum(descending[::-1])[::-1], 0.0)[:size]  # tails[k]: the mass outside rank k
    return float((tails / (size - np.arange(len(tails)))).min())
