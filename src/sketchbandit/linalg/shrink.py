"""The shrink of Frequent Directions."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from sketchbandit.linalg.panels import gram, multiply_in_place, residual_norm_sq

Matrix = NDArray[np.float64]

_CLEARLY = 1e-8  # of the largest: a Cholesky pivot of a Gram matrix is accurate to far less
_GRAM_IS_ACCURATE = 1e-10  # above this fraction of the largest, an eigenvalue of the Gram matrix has 5 digits


class Shrinkage(NamedTuple):
    """What a shrink did: how many rows are left, and the amount taken from every squared singular value.

    ``rotated``: the rows left are orthogonal. Otherwise all of them were left as they were.
    """

    kept: int
    amount: float
    rotated: bool = True


def shrink(
    rows: NDArray[Any], size: int, *, head: int = 0, most: float = np.inf, worth: int | None = None
) -> Shrinkage:
    """Shrink ``rows`` in place to at most ``size - 1`` rows (Alg. FD of the paper, buffered).

    With ``most`` the size is the smallest, from ``size`` on, for which s <= ``most``; the rows stay as they
    are if that keeps all of them, or more than ``worth``.

    With the singular values sigma_1 >= sigma_2 >= ... of ``rows`` and s = sigma_size², the rows kept are
    sqrt(sigma_i² - s) v_i' for i < size, so that for the old rows Q and the new rows S

        S'S  ⪯  Q'Q  ⪯  S'S + s I,        trace(Q'Q - S'S) >= (size - head) s.

    The first ``head`` directions keep their sigma_i unreduced (incremental SVD; 0 for Frequent
    Directions). Rows of numerical rank below ``size`` lose redundancy only: s = 0 and S'S = Q'Q.

    The eigenvectors come from the Gram matrix QQ'; where sigma_size² falls under 1e-10 of the largest,
    where that is inaccurate, from a QR factorisation and an SVD.

    >>> rows = np.array([[2.0, 0.0], [0.0, 1.0]])
    >>> shrink(rows, size=2, most=0.5)
    Shrinkage(kept=2, amount=0.0, rotated=False)
    >>> shrink(rows, size=2)
    Shrinkage(kept=1, amount=1.0, rotated=True)
    >>> abs(rows[:1]).round(6)
    array([[1.732051, 0.      ]])
    """
    count, dim = rows.shape
    if count > dim:  # R'R = Q'Q with at most dim rows
        rows[:dim] = np.linalg.qr(rows.astype(np.float64, copy=False), mode="r")
        rows = rows[:dim]
    if not len(rows):
        return Shrinkage(0, 0.0)
    may_stay = most < np.inf and count <= dim
    limits = _Limits(most, len(rows) if worth is None else worth, may_stay)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        products = gram(rows)
    exponent = _exponent_out_of_range(products)
    if exponent is None:
        return _shrink_scaled(rows, products, size, head, limits)
    np.ldexp(rows, -exponent, out=rows)  # a power of two: exact
    with np.errstate(over="ignore", under="ignore"):
        scaled = limits._replace(most=float(np.ldexp(most, -2 * exponent)))
    kept, amount, rotated = _shrink_scaled(rows, gram(rows), size, head, scaled)
    np.ldexp(rows[:kept], exponent, out=rows[:kept])
    return Shrinkage(kept, float(np.ldexp(amount, 2 * exponent)), rotated)


def _exponent_out_of_range(products: Matrix) -> int | None:
    """The binary exponent of the longest row, if its square is too near overflow or underflow."""
    largest = float(products.diagonal().max())
    if 1e-200 < largest < 1e200:
        return None
    return 512 if not largest < np.inf else int(np.frexp(largest)[1]) // 2


class _Limits(NamedTuple):
    """What a shrink may take, how many rows it may leave, and whether it may leave them as they are."""

    most: float
    worth: int
    may_stay: bool


def _shrink_scaled(rows: NDArray[Any], products: Matrix, size: int, head: int, limits: _Limits) -> Shrinkage:
    if limits.may_stay and _all_exceed(products, limits.most):
        return Shrinkage(len(rows), 0.0, rotated=False)
    return _shrink_by_gram(rows, products, size, head, limits)


def _shrink_by_gram(rows: NDArray[Any], products: Matrix, size: int, head: int, limits: _Limits) -> Shrinkage:
    count = len(rows)
    try:
        sigma_sq, left = gram_spectrum(products)
    except np.linalg.LinAlgError:  # no convergence, which an SVD may still reach
        return _shrink_by_svd(rows, size, head, limits)
    largest = sigma_sq[0]
    if largest == 0.0:
        return Shrinkage(0, 0.0)
    size = _size_for(sigma_sq, size, limits.most)
    wanted = min(size - 1, count)
    resolvable = int(np.count_nonzero(sigma_sq[:wanted] > count * np.finfo(np.float64).eps * largest))
    if limits.may_stay and resolvable > limits.worth:
        return Shrinkage(count, 0.0, rotated=False)
    amount = float(sigma_sq[size - 1]) if count >= size else 0.0
    if amount > _GRAM_IS_ACCURATE * largest:
        return _keep(rows, sigma_sq[:wanted], left[:wanted], amount, head)
    if residual_norm_sq(left[:resolvable], rows) <= _negligible_sq(rows) * largest:
        # Rank below size: an orthogonal projection, whose loss was just measured, suffices.
        return _keep(rows, sigma_sq[:resolvable], left[:resolvable], 0.0, head)
    return _shrink_by_svd(rows, size, head, limits)


def _all_exceed(products: Matrix, most: float) -> bool:
    """Whether every squared singular value clearly exceeds ``most``; False also means "not sure".

    One Cholesky factorisation of QQ' - most I: far cheaper than the spectrum.
    """
    diagonal = products.diagonal()
    if diagonal.min() <= most:  # the least eigenvalue is at most the least diagonal entry
        return False
    shifted = products.copy()
    shifted[np.diag_indices_from(shifted)] -= most
    try:
        factor = np.linalg.cholesky(shifted)
    except np.linalg.LinAlgError:
        return False
    return bool(np.square(factor.diagonal()).min() > _CLEARLY * diagonal.max())


def _size_for(sigma_sq: Matrix, size: int, most: float) -> int:
    """The smallest size, from ``size`` on, for which a shrink takes at most ``most``."""
    if most == np.inf:
        return size
    return max(size, 1 + int(np.count_nonzero(sigma_sq > most)))


def gram_spectrum(products: Matrix) -> tuple[Matrix, Matrix]:
    """Eigenvalues of a Gram matrix, largest first and clipped at zero, and its eigenvectors as rows."""
    values, vectors = np.linalg.eigh(products)
    return np.maximum(values[::-1], 0.0), vectors.T[::-1]


def _shrink_by_svd(rows: NDArray[Any], size: int, head: int, limits: _Limits) -> Shrinkage:
    """The same by QR, then SVD of the triangle: accurate to rounding of the largest sigma, not its square."""
    triangle = np.asarray(np.linalg.qr(rows.T.astype(np.float64, copy=False), mode="r"))
    try:
        left, sigma, _ = np.linalg.svd(triangle.T)
    except np.linalg.LinAlgError:  # divide and conquer failed: the slower QR iteration does not
        left, sigma, _ = linalg.svd(triangle.T, lapack_driver="gesvd", check_finite=False)
    sigma_sq = sigma**2
    size = _size_for(sigma_sq, size, limits.most)
    wanted = min(size - 1, len(rows))
    present = np.count_nonzero(sigma_sq[:wanted] > _negligible_sq(rows) * sigma_sq[0])
    if limits.may_stay and present > limits.worth:
        return Shrinkage(len(rows), 0.0, rotated=False)
    amount = float(sigma_sq[size - 1]) if len(rows) >= size else 0.0
    if amount <= _negligible_sq(rows) * sigma_sq[0]:
        amount = 0.0
    return _keep(rows, sigma_sq[:wanted], left.T[:wanted], amount, head)


def _keep(rows: NDArray[Any], sigma_sq: Matrix, left: Matrix, amount: float, head: int) -> Shrinkage:
    """Write sqrt(sigma_i² - amount) v_i' over the rows, using sigma_i v_i' = u_i' rows; u_i' = left[i]."""
    present = int(np.count_nonzero(sigma_sq > _negligible_sq(rows) * sigma_sq[0]))
    alive = min(present, max(head, int(np.count_nonzero(sigma_sq > amount))))
    factors = np.sqrt(1.0 - amount / sigma_sq[:alive])
    factors[:head] = 1.0
    multiply_in_place(factors[:, np.newaxis] * left[:alive], rows)
    return Shrinkage(alive, amount)


def _negligible_sq(rows: NDArray[Any]) -> float:
    """The fraction of sigma_1² that one shrink may drop without a certificate: eps^1.6.

    A million such shrinks lose under 1e-19 (float64) or 1e-5 (float32) of the mass: rounding.
    """
    return float(np.finfo(rows.dtype).eps ** 1.6)
