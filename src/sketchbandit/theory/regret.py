"""Bounds on the regret and on prediction errors, with their constants; the spectral error of a stream."""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy import sparse

from sketchbandit.arrays import Rows
from sketchbandit.errors import InputError
from sketchbandit.linalg import fd_bound, singular_values_sq
from sketchbandit.sketch.adaptive import order_of_error
from sketchbandit.sketch.checks import check_compensation, check_count, check_real
from sketchbandit.theory.confidence import Confidence, fd_radius, oful_radius, rfd_radius, sketched_radius

Bound = Callable[..., float]


class Row(NamedTuple):
    """One row of the paper's table of algorithms."""

    algorithm: str
    regret: float
    """The regret bound, at most 2·H·L·T, which always holds."""
    order: str
    time: str
    space: str
    sketch: str


def trivial_regret(confidence: Confidence, horizon: int) -> float:
    """2·H·L·T: no policy can do worse."""
    return 2.0 * confidence.theta_norm * confidence.arm_norm * horizon


def oful_regret(confidence: Confidence, *, horizon: int, dim: int, ridge: float) -> float:
    """OFUL: Õ(d sqrt(T))."""
    radius = oful_radius(confidence, rounds=horizon, dim=dim, ridge=ridge)
    leverage = 2.0 * dim * math.log1p(horizon * confidence.arm_norm**2 / (dim * ridge))
    return _regret(confidence, horizon, ridge, radius, leverage)


def fd_regret(
    confidence: Confidence, *, horizon: int, dim: int, ridge: float, rank: int, error: float
) -> float:
    """SOFUL (error = Delta_T) and DBSLinUCB-FD (error = 2·epsilon): Õ((1 + e/lambda)^(3/2) (d + l) sqrt(T)).

    ``rank`` is an upper bound on the rows of the sketch: 2·l for a fixed size, 3·l_B for blocks. The sketched
    leverage scores add up to at most 2 (1 + e/lambda) ln(det A / det lambda I).
    """
    rank = min(rank, dim)
    radius = fd_radius(confidence, rounds=horizon, dim=dim, ridge=ridge, rank=rank, error=error)
    information = dim * math.log1p(error / ridge)
    information += rank * math.log1p(horizon * confidence.arm_norm**2 / (rank * ridge))
    leverage = 2.0 * (1.0 + error / ridge) * information
    return _regret(confidence, horizon, ridge, radius, leverage)


def rfd_regret(
    confidence: Confidence, *, horizon: int, dim: int, ridge: float, rank: int, error: float
) -> float:
    """CBSCFD (error = Delta_T) and DBSLinUCB-RFD (error = 2·epsilon), with h_T <= e.

    Õ(sqrt(1 + e/lambda) sqrt(l T) + sqrt(d l T)): Lemma (leverage scores by RFD) has no factor of e.
    ``rank`` as for ``fd_regret``.
    """
    rank = min(rank, dim)
    radius = rfd_radius(
        confidence, rounds=horizon, dim=dim, ridge=ridge, rank=rank, sizes=(0,), errors=(error,)
    )
    leverage = 2.0 * rank * math.log1p(horizon * confidence.arm_norm**2 / (rank * ridge) + error / ridge)
    return _regret(confidence, horizon, ridge, radius, leverage)


def sketched_regret(
    confidence: Confidence, *, horizon: int, dim: int, ridge: float, error: float, compensation: float
) -> float:
    """Theorem 4 of docs/adaptive.md: the bound of OFUL times at most ``inflation_of(error)``.

    2·max(beta_T, H L)·sqrt(2 T kappa L_T) with kappa = (lambda + e)/(lambda + c·e).
    """
    radius = sketched_radius(
        confidence, rounds=horizon, dim=dim, ridge=ridge, error=error, compensation=compensation
    )
    kappa = (ridge + error) / (ridge + compensation * error)
    information = dim * math.log1p(horizon * confidence.arm_norm**2 / (dim * ridge))
    per_round = max(radius, confidence.theta_norm * confidence.arm_norm)
    bound = 2.0 * per_round * math.sqrt(2.0 * horizon * kappa * information)
    return min(bound, trivial_regret(confidence, horizon))


def cbrap_regret(confidence: Confidence, *, horizon: int, size: int) -> float:
    """CBRAP: sqrt(l T) + T/sqrt(l). The paper has only the order; the constants here are 1."""
    bound = math.sqrt(size * horizon) + horizon / math.sqrt(size)
    return min(bound, trivial_regret(confidence, horizon))


def final_size(*, dim: int, size: int, epsilon: float, mass: float, rank: int) -> int:
    """l_B = min(k, l0·2^(mass/(epsilon l0))): the sketch size that DBSLinUCB ends with.

    ``mass`` is the sum of the squared norms of the arms, ``rank`` that of the stream. Block number
    floor(log2(dim/size + 1)) is exact, and holds the rank.

    Examples
    --------
    >>> final_size(dim=784, size=50, epsilon=8.0, mass=800.0, rank=784)
    200
    >>> final_size(dim=784, size=50, epsilon=8.0, mass=1200.0, rank=784)
    784

    """
    check_real("epsilon", epsilon, above=0.0)
    most_blocks = max(1, ((dim + size) // size).bit_length() - 1)
    full = int(mass / (epsilon * size))
    return rank if full >= most_blocks - 1 else min(rank, size * 2**full)


def epsilon_for(horizon: int, order: float, *, compensation: float = 0.0) -> float:
    """The epsilon for which the regret of DBSLinUCB is O(T^order), for an order in [1/2, 1).

    It is T^((2·order - 1)/3) for DBSLinUCB-FD (the paper's remark on choosing parameters). With compensation
    it is T^(2·order - 1), because that bound has epsilon^(1/2) instead of epsilon^(3/2).

    Parameters
    ----------
    horizon : int
        T, the number of rounds.
    order : float
        The exponent of the regret, at least 1/2 and below 1.
    compensation : float
        0, 0.5 or 1, as for ``dbslinucb``.

    Examples
    --------
    >>> epsilon_for(10_000, 0.5), round(epsilon_for(10_000, 0.8), 2)
    (1.0, 6.31)

    """
    horizon = check_count("horizon", horizon, at_least=1)
    order = check_real("order", order, at_least=0.5, below=1.0)
    return float(horizon ** order_of_error(order, check_compensation(compensation)))


def inflation_of(error: float, *, ridge: float, compensation: float) -> float:
    """The factor by which a spectral error widens the regret bound of exact OFUL, apart from logarithms.

    It is (1 + e/lambda)^(1/2) with a compensation of 1/2 or 1, and (1 + e/lambda)^(3/2) without.
    docs/adaptive.md has the derivation.

    Examples
    --------
    >>> inflation_of(3.0, ridge=1.0, compensation=1.0), inflation_of(3.0, ridge=1.0, compensation=0.0)
    (2.0, 8.0)

    """
    error, ridge = check_real("error", error, at_least=0.0), check_real("ridge", ridge, above=0.0)
    return float((1.0 + error / ridge) ** _inflation_exponent(compensation))


def epsilon_within(inflation: float, *, ridge: float, compensation: float) -> float:
    """The largest spectral error that widens the regret bound by at most ``inflation``.

    Parameters
    ----------
    inflation : float
        The factor allowed, above 1.
    ridge : float
        lambda.
    compensation : float
        0, 0.5 or 1.

    Examples
    --------
    >>> epsilon_within(1.5, ridge=1.0, compensation=1.0)
    1.25

    """
    inflation = check_real("inflation", inflation, above=1.0)
    ridge = check_real("ridge", ridge, above=0.0)
    return float(ridge * (inflation ** (1.0 / _inflation_exponent(compensation)) - 1.0))


def _inflation_exponent(compensation: float) -> float:
    return 0.5 if check_compensation(compensation) else 1.5


def table(
    confidence: Confidence,
    *,
    horizon: int,
    dim: int,
    size: int,
    ridge: float,
    delta_t: float,
    epsilon: float,
    last_size: int,
) -> list[Row]:
    """The paper's table of algorithms, with its bounds evaluated.

    ``delta_t`` is the spectral error Delta_T of a fixed ``size`` on the stream
    (``theory.spectral_error_of``). ``last_size`` is the size with which DBSLinUCB ends
    (``theory.final_size``).
    """

    def fixed(bound: Bound) -> float:
        return bound(confidence, horizon=horizon, dim=dim, ridge=ridge, rank=2 * size, error=delta_t)

    def blocks(bound: Bound) -> float:
        return bound(
            confidence, horizon=horizon, dim=dim, ridge=ridge, rank=3 * last_size, error=2.0 * epsilon
        )

    exact = oful_regret(confidence, horizon=horizon, dim=dim, ridge=ridge)
    projected = cbrap_regret(confidence, horizon=horizon, size=size)
    soful, cbscfd = "(1+Δ)^(3/2) (l + d log(1+Δ)) √T", "(√(l + d log(1+Δ)) + √Δ) √(lT)"
    dbs_fd, dbs_rfd = "(1+ε)^(3/2) (d + l_B) √T", "√(1+ε) √(l_B T) + √(d l_B T)"
    return [
        Row("OFUL", exact, "d√T", "d²", "d²", "-"),
        Row("CBRAP", projected, "√(lT) + T/√l", "dl + l³", "dl", "random projection"),
        Row("SOFUL", fixed(fd_regret), soful, "dl", "dl", "single-scale FD"),
        Row("CBSCFD", fixed(rfd_regret), cbscfd, "dl", "dl", "single-scale RFD"),
        Row("DBSLinUCB-FD", blocks(fd_regret), dbs_fd, "d l_B", "d l_B", "multi-scale FD"),
        Row("DBSLinUCB-RFD", blocks(rfd_regret), dbs_rfd, "d l_B", "d l_B", "multi-scale RFD"),
    ]


def _regret(confidence: Confidence, horizon: int, ridge: float, radius: float, leverage: float) -> float:
    """Eq. (regret): 2 max(1, L/sqrt(lambda)) beta_T sqrt(T · leverage scores), or the trivial bound."""
    scale = 2.0 * max(1.0, confidence.arm_norm / math.sqrt(ridge))
    return min(scale * radius * math.sqrt(horizon * leverage), trivial_regret(confidence, horizon))


def newton_regret(
    *,
    norm: float,
    ridge: float,
    curvature: float,
    dim: int,
    mass: float,
    error: float = 0.0,
    compensation: float = 0.0,
    diameter: float = 0.0,
) -> float:
    """An upper bound on the regret of sketched online Newton against the best fixed weights v.

    alpha/2·|v|² + kappa/(2·sigma) · d ln(1 + mass/(d·alpha)) + c·e/2·D², kappa = (alpha + e)/(alpha + c·e).

    Parameters
    ----------
    norm : float
        |v|. The margins of v must be within the bound, like those of the learner.
    ridge : float
        alpha.
    curvature : float
        sigma, the smallest one of all rounds. In each round it must be at most that of the loss.
    dim : int
        d, or the rank of the rows if it is known.
    mass : float
        The mass of the sketch: the sum of sigma·|g|².
    error, compensation : float
        The error bound e of the sketch, and its compensation c. Without a sketch e is 0.
    diameter : float
        D, the largest |w - v| after a lossy shrink. It has no effect if c is 0.

    Examples
    --------
    >>> exact = newton_regret(norm=1.0, ridge=1.0, curvature=0.25, dim=10, mass=500.0)
    >>> lossy = newton_regret(norm=1.0, ridge=1.0, curvature=0.25, dim=10, mass=500.0, error=1.0)
    >>> round(exact, 1), round(lossy, 1)
    (79.1, 157.8)

    """
    for name, value in (("norm", norm), ("mass", mass), ("error", error), ("diameter", diameter)):
        check_real(name, value, at_least=0.0)
    check_real("ridge", ridge, above=0.0)
    check_real("curvature", curvature, above=0.0)
    dim, c = check_count("dim", dim, at_least=1), check_compensation(compensation)
    kappa = (ridge + error) / (ridge + c * error)
    leverage = kappa * dim * math.log1p(mass / (dim * ridge))
    return 0.5 * (ridge * norm**2 + leverage / curvature + c * error * diameter**2)


def regression_bound(
    radius: float,
    *,
    dim: int,
    ridge: float,
    alpha: float,
    error_bound: float,
    log_det: float,
    mass: float = math.inf,
    arm_norm: float = 1.0,
) -> float:
    """A bound on the sum over all rounds of (x'theta_s - x'theta*)², where x is the arm played.

    If theta* lies in every ellipsoid, an error is at most radius·width. With the error bound e and
    rho = lambda + alpha, A^-1 <= (1 + (e - alpha)/rho)·(lambda I + X'X)^-1. So, by the elliptical potential,
    the squared widths add up to at most
    2·max(1, L²/lambda)·(1 + (e - alpha)/rho)·(ln det(lambda I + X'X) - d ln lambda).

    Examples
    --------
    >>> round(regression_bound(1.0, dim=2, ridge=1.0, alpha=0.0, error_bound=0.0, log_det=math.log(3.0)), 3)
    2.197

    """
    uncompensated = max(error_bound - alpha, 0.0)
    by_trace = dim * math.log1p(mass / (dim * ridge))
    information = min(max(log_det - dim * math.log(ridge), 0.0), by_trace)
    longest = max(1.0, arm_norm**2 / ridge)
    return radius**2 * (1.0 + uncompensated / (ridge + alpha)) * 2.0 * longest * information


def spectral_error_of(stream: Rows, size: int) -> float:
    """Delta_T of eq. (spectral error): min over k < size of |X - X_k|_F² / (size - k), for the rows X.

    Parameters
    ----------
    stream : array or sparse matrix of shape (n, dim)
        The rows X, for instance all arms played.
    size : int
        l, the sketch size.

    Examples
    --------
    >>> spectral_error_of(np.eye(4), size=2)
    2.0

    """
    size = check_count("size", size, at_least=1)
    rows = stream if sparse.issparse(stream) else np.asarray(stream)
    if rows.dtype.kind not in "fiub" or rows.ndim != 2:
        raise InputError(
            f"the stream must be a matrix of real numbers, got {rows.dtype} of shape {rows.shape}"
        )
    if not np.isfinite(rows.data if sparse.issparse(rows) else rows).all():
        raise InputError("the stream contains NaN or inf; rows must be finite")
    return fd_bound(singular_values_sq(rows), size)


def vacuous_exponent(compensation: float) -> float:
    """The growth exponent of Delta_T from which on the regret bound of a fixed sketch size is linear.

    (1 + Delta)^(3/2) sqrt(T) >= T from Delta = T^(1/3) on (Observation 1, FD). With compensation the bound
    has sqrt(Delta T), which is linear from Delta = T on (Observation 2, RFD).
    """
    return 1.0 if compensation > 0.0 else 1.0 / 3.0
