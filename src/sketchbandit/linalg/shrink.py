"""The shrink of Frequent Directions: which directions of some rows stay, and what is taken from them."""

import math
from typing import NamedTuple

import numpy as np
from scipy import linalg

from sketchbandit.arrays import AnyArray, Dtype, Matrix
from sketchbandit.linalg.products import gram, multiply_in_place, oriented, residual_norm_sq, row_norms_sq

_EPS = float(np.finfo(np.float64).eps)
_MOST = float(np.finfo(np.float64).max)
# Of |QQ'|_F: what eigenvectors and products in float64 get wrong. Measured in more digits: up to 12 eps
# where something is lost; where nothing is, up to 0.6 eps a shrink, over many of them.
_LOSSY, _LOSSLESS = 16.0 * _EPS, _EPS
_CLEARLY = 1e-8  # of the largest: a Cholesky pivot of a Gram matrix is accurate to far less
_GRAM_IS_ACCURATE = 1e-10  # above this fraction of the largest, an eigenvalue of the Gram matrix has 5 digits
# The fraction of sigma_1² below which a squared singular value is noise: the singular values of an SVD are
# known to a few eps of the largest. Only such directions are dropped without being certified.
_NOISE = (32.0 * _EPS) ** 2


class Shrinkage(NamedTuple):
    """What a shrink did: how many rows are left, and the amount taken from every squared singular value.

    ``rotated``: the rows left are orthogonal. Otherwise all of them were left as they were.
    ``stored``: what storing the rows left in their dtype may have added to S'S, or taken from it, in any
    direction (or would have, had they been rotated). ``scale``: |QQ'|_F of the rows before.
    """

    kept: int
    amount: float
    rotated: bool = True
    stored: float = 0.0
    scale: float = 0.0

    @property
    def arithmetic(self) -> float:
        """What eigenvectors and products in float64 may have added to S'S, or taken from it, besides."""
        return (_LOSSY if self.amount else _LOSSLESS) * self.scale


class Reduction(NamedTuple):
    """How many rows are left, and the amount taken from every squared singular value.

    ``rotated``: the rows left are orthogonal. Otherwise all of them were left as they were.
    """

    kept: int
    amount: float
    rotated: bool = True


class ShrinkLimits(NamedTuple):
    """What a shrink may take, how many rows it may leave, whether it may leave them as they are."""

    most: float
    worth: int
    may_stay: bool
    stored: Dtype
    """What the rows are stored as afterwards."""

    def after(self, rounding: float) -> "ShrinkLimits":
        """What may be taken besides."""
        return self._replace(most=self.most - rounding)

    @property
    def negligible(self) -> float:
        """The fraction of sigma_1² that is not worth an SVD: it is dropped, and certified."""
        return float(np.finfo(self.stored).eps ** 1.6)


def shrink(
    rows: AnyArray,
    size: int,
    *,
    head: int = 0,
    most: float = np.inf,
    worth: int | None = None,
    products: Matrix | None = None,
) -> Shrinkage:
    """Shrink ``rows`` in place to at most ``size - 1`` rows (Alg. FD of the paper, buffered).

    With ``most`` the size is the smallest, from ``size`` on, for which s and rounding together are at most
    that much; the rows stay as they are if that keeps all of them, or more than ``worth``.

    With the singular values sigma_1 >= sigma_2 >= ... of ``rows`` and s = sigma_size², the rows kept are
    sqrt(sigma_i² - s) v_i' for i < size, so that for the old rows Q and the new rows S

        S'S  ⪯  Q'Q  ⪯  S'S + s I,        trace(Q'Q - S'S) >= (size - head) s.

    The first ``head`` directions keep their sigma_i unreduced (incremental SVD; 0 for Frequent
    Directions). Rows of numerical rank below ``size`` lose redundancy only: s = 0 and S'S = Q'Q.

    What is computed deviates from that by rounding. Storing a row in float32 changes it by at most 2^-24 of
    its length, and so S'S by at most 2·2^-24·|QQ'|_F (``stored``). Eigenvectors and products in float64
    change it by a few eps of |QQ'|_F (``arithmetic``).

    The eigenvectors come from the Gram matrix QQ'; where sigma_size² falls under 1e-10 of the largest,
    where that is inaccurate, from a QR factorisation and an SVD.

    Examples
    --------
    >>> rows = np.array([[2.0, 0.0], [0.0, 1.0]])
    >>> shrink(rows, size=2, most=0.5)
    Shrinkage(kept=2, amount=0.0, rotated=False, stored=0.0, scale=4.123105625617661)
    >>> shrink(rows, size=2)
    Shrinkage(kept=1, amount=1.0, rotated=True, stored=0.0, scale=4.123105625617661)
    >>> abs(rows[:1]).round(6)
    array([[1.732051, 0.      ]])

    """
    count, dim = rows.shape
    if not count:
        return Shrinkage(0, 0.0)
    limits = ShrinkLimits(most, count if worth is None else worth, most < np.inf and count <= dim, rows.dtype)
    if count <= dim:
        return _shrink_in_range(rows, size, head, limits, products)
    # R'R = Q'Q with dim rows
    triangle: Matrix = np.asarray(np.linalg.qr(rows.astype(np.float64, copy=False), mode="r"))
    done = _shrink_in_range(triangle, size, head, limits)
    rows[: done.kept] = triangle[: done.kept]
    return done


def storing_error(rows: AnyArray, dtype: Dtype) -> float:
    """At least what S'S changes by, in any direction, where rows S are stored as ``dtype``.

    Examples
    --------
    >>> storing_error(np.eye(2), np.dtype(np.float64)), storing_error(np.eye(2), np.dtype(np.float32)) < 3e-7
    (0.0, True)

    """
    if dtype == np.float64:
        return 0.0
    return 2.0 * _unit(dtype) * float(row_norms_sq(rows).sum())


def _unit(dtype: Dtype) -> float:
    """The unit roundoff, and a little for its square."""
    return 0.5001 * float(np.finfo(dtype).eps)


def _shrink_in_range(
    rows: AnyArray, size: int, head: int, limits: ShrinkLimits, products: Matrix | None = None
) -> Shrinkage:
    """The same with squares that neither overflow nor underflow."""
    if products is None:
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            products = gram(rows)
    exponent = _exponent_out_of_range(products)
    if exponent is None:
        return _shrink_scaled(rows, products, size, head, limits)
    np.ldexp(rows, -exponent, out=rows)  # a power of two: exact
    with np.errstate(over="ignore", under="ignore"):
        scaled = limits._replace(most=float(np.ldexp(limits.most, -2 * exponent)))
    kept, amount, rotated, *others = _shrink_scaled(rows, gram(rows), size, head, scaled)
    np.ldexp(rows[:kept], exponent, out=rows[:kept])
    with np.errstate(over="ignore"):  # |QQ'|_F may, up to the root of the count times the mass
        amount, stored, scale = (float(np.ldexp(part, 2 * exponent)) for part in (amount, *others))
    return Shrinkage(kept, amount, rotated, stored, min(scale, _MOST))


def _exponent_out_of_range(products: Matrix) -> int | None:
    """The binary exponent of the longest row, if its square is too near overflow or underflow."""
    largest = float(products.diagonal().max())
    if 1e-200 < largest < 1e200:
        return None
    return 512 if not largest < np.inf else int(np.frexp(largest)[1]) // 2


def _shrink_scaled(rows: AnyArray, products: Matrix, size: int, head: int, limits: ShrinkLimits) -> Shrinkage:
    scale = _frobenius(products)  # |QQ'|_F, the root of the sum of sigma^4
    stored = 0.0 if limits.stored == np.float64 else 2.0 * _unit(limits.stored) * scale
    limits = limits.after(stored)
    within = limits.after(_LOSSY * scale)
    if limits.may_stay and (limits.most < 0.0 or all_exceed(products, within.most)):
        return Shrinkage(len(rows), 0.0, False, stored, scale)
    return Shrinkage(*reduce_spectrum(rows, products, size, head, within), stored, scale)


def _frobenius(products: Matrix) -> float:
    """|QQ'|_F of a Gram matrix whose squares may overflow, or underflow."""
    largest = float(products.diagonal().max())
    if 1e-100 < largest < 1e100:
        return math.sqrt(float(row_norms_sq(products).sum()))
    return largest * math.sqrt(float(np.square(products / (largest or 1.0)).sum()))


def reduce_spectrum(
    rows: AnyArray, products: Matrix, size: int, head: int, limits: ShrinkLimits
) -> Reduction:
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


def _reduce_by_svd(rows: AnyArray, size: int, head: int, limits: ShrinkLimits) -> Reduction:
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
