"""Which directions of some rows stay, and what is taken from them: by the Gram matrix, or by an SVD."""

from typing import Any, NamedTuple

import numpy as np
from scipy import linalg

from sketchbandit.arrays import AnyArray, Matrix
from sketchbandit.linalg.norms import oriented
from sketchbandit.linalg.panels import multiply_in_place, residual_norm_sq

_CLEARLY = 1e-8  # of the largest: a Cholesky pivot of a Gram matrix is accurate to far less
_GRAM_IS_ACCURATE = 1e-10  # above this fraction of the largest, an eigenvalue of the Gram matrix has 5 digits
_EPS = float(np.finfo(np.float64).eps)
# The fraction of sigma_1² below which a squared singular value is noise: the singular values of an SVD are
# known to a few eps of the largest. Only such directions are dropped without being certified.
_NOISE = (32.0 * _EPS) ** 2


class Reduction(NamedTuple):
    """How many rows are left, and the amount taken from every squared singular value.

    ``rotated``: the rows left are orthogonal. Otherwise all of them were left as they were.
    """

    kept: int
    amount: float
    rotated: bool = True


class Limits(NamedTuple):
    """What a shrink may take, how many rows it may leave, whether it may leave them as they are."""

    most: float
    worth: int
    may_stay: bool
    stored: np.dtype[Any]
    """What the rows are stored as afterwards."""

    def after(self, rounding: float) -> "Limits":
        """What may be taken besides."""
        return self._replace(most=self.most - rounding)

    @property
    def negligible(self) -> float:
        """The fraction of sigma_1² that is not worth an SVD: it is dropped, and certified."""
        return float(np.finfo(self.stored).eps ** 1.6)


def reduce_spectrum(rows: AnyArray, products: Matrix, size: int, head: int, limits: Limits) -> Reduction:
    """Reduce ``rows`` in place as ``shrink`` says, given ``products``, their Gram matrix."""
    count = len(rows)
    try:
        sigma_sq, left = spectrum_of_products(products)
    except np.linalg.LinAlgError:  # no convergence, which an SVD may still reach
        return _reduce_by_svd(rows, size, head, limits)
    largest = sigma_sq[0]
    if largest == 0.0:
        return Reduction(0, 0.0)
    size = _size_for(sigma_sq, size, limits.most)
    wanted = min(size - 1, count)
    resolvable = int(np.count_nonzero(sigma_sq[:wanted] > count * _EPS * largest))
    if limits.may_stay and resolvable > limits.worth:
        return Reduction(count, 0.0, rotated=False)
    amount = float(sigma_sq[size - 1]) if count >= size else 0.0
    if amount > _GRAM_IS_ACCURATE * largest:
        return _keep(rows, sigma_sq[:wanted], left[:wanted], amount, head)
    lost = residual_norm_sq(left[:resolvable], rows)
    if lost <= _NOISE * largest or lost <= min(limits.negligible * largest, limits.most):
        # Rank below size: an orthogonal projection, whose loss was just measured, suffices.
        kept = _keep(rows, sigma_sq[:resolvable], left[:resolvable], 0.0, head).kept
        return Reduction(kept, 0.0 if lost <= _NOISE * largest else lost)
    return _reduce_by_svd(rows, size, head, limits)


def all_exceed(products: Matrix, most: float) -> bool:
    """Whether every squared singular value clearly exceeds ``most``; False also means "not sure".

    One Cholesky factorisation of QQ' - most I: far cheaper than the spectrum.
    """
    diagonal = products.diagonal()
    most = max(most, 0.0)
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
    return max(size, 1 + int(np.count_nonzero(sigma_sq > max(most, 0.0))))


def spectrum_of_products(products: Matrix) -> tuple[Matrix, Matrix]:
    """Eigenvalues of a Gram matrix, largest first and clipped at zero, and its eigenvectors as rows."""
    values, vectors = np.linalg.eigh(products)
    return np.maximum(values[::-1], 0.0), vectors.T[::-1]


def _reduce_by_svd(rows: AnyArray, size: int, head: int, limits: Limits) -> Reduction:
    """The same by QR, then SVD of the triangle: accurate to rounding of the largest sigma, not its square."""
    triangle = np.asarray(np.linalg.qr(rows.T.astype(np.float64, copy=False), mode="r"))
    try:
        left, sigma, _ = np.linalg.svd(triangle.T)
    except np.linalg.LinAlgError:  # divide and conquer failed: the slower QR iteration does not
        left, sigma, _ = linalg.svd(triangle.T, lapack_driver="gesvd", check_finite=False)
    sigma_sq = sigma**2
    size = _size_for(sigma_sq, size, limits.most)
    wanted = min(size - 1, len(rows))
    present = np.count_nonzero(sigma_sq[:wanted] > _NOISE * sigma_sq[0])
    if limits.may_stay and present > limits.worth:
        return Reduction(len(rows), 0.0, rotated=False)
    amount = float(sigma_sq[size - 1]) if len(rows) >= size else 0.0
    if amount <= _NOISE * sigma_sq[0]:
        amount = 0.0
    return _keep(rows, sigma_sq[:wanted], left.T[:wanted], amount, head)


def _keep(rows: AnyArray, sigma_sq: Matrix, left: Matrix, amount: float, head: int) -> Reduction:
    """Write sqrt(sigma_i² - amount) v_i' over the rows, using sigma_i v_i' = u_i' rows; u_i' = left[i]."""
    present = int(np.count_nonzero(sigma_sq > _NOISE * sigma_sq[0]))
    alive = min(present, max(head, int(np.count_nonzero(sigma_sq > amount))))
    factors = np.sqrt(1.0 - amount / sigma_sq[:alive])
    factors[:head] = 1.0
    multiply_in_place(factors[:, np.newaxis] * oriented(left[:alive]), rows)
    return Reduction(alive, amount)
