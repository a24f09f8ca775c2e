"""The closed-form radii of the paper's theorems, for tables and plots.

Policies use ``Confidence.radius``, which uses the realised determinant and is never larger. The functions
here take the number of rows r of the sketch where the paper writes 2·l, because with the buffer S has a rank
of up to the number of rows held.
"""

import math
from collections.abc import Sequence

from sketchbandit.sketch.checks import check_compensation, check_real
from sketchbandit.theory.confidence import Confidence


def oful_radius(confidence: Confidence, *, rounds: int, dim: int, ridge: float) -> float:
    """R sqrt(2 ln(1/delta) + d ln(1 + t L²/(d lambda))) + H sqrt(lambda) (Abbasi-Yadkori et al. 2011).

    Examples
    --------
    >>> beta = Confidence(noise=0.1, theta_norm=1.0, arm_norm=1.0, delta=0.01)
    >>> round(oful_radius(beta, rounds=1000, dim=10, ridge=1.0), 4)
    1.7441

    """
    information = dim * math.log1p(rounds * confidence.arm_norm**2 / (dim * ridge))
    return confidence.noise * _spread(confidence, information) + confidence.theta_norm * math.sqrt(ridge)


def fd_radius(
    confidence: Confidence, *, rounds: int, dim: int, ridge: float, rank: int, error: float
) -> float:
    """Thm. (confidence ellipsoid): SOFUL and DBSLinUCB-FD. ``error`` is the sum of all shrinkage.

    R sqrt(1 + e/lambda) sqrt(2 ln(1/delta) + d ln(1 + e/lambda) + r ln(1 + t L²/(r lambda)))
    + H (lambda + e)/sqrt(lambda).
    """
    inflation = 1.0 + error / ridge
    information = dim * math.log(inflation)
    information += _log_trace(rounds * confidence.arm_norm**2, ridge, min(rank, dim))
    variance = confidence.noise * math.sqrt(inflation) * _spread(confidence, information)
    return variance + confidence.theta_norm * math.sqrt(ridge) * inflation


def rfd_radius(
    confidence: Confidence,
    *,
    rounds: int,
    dim: int,
    ridge: float,
    rank: int,
    sizes: Sequence[int],
    errors: Sequence[float],
) -> float:
    """Thm. (confidence ellipsoid of RFD): CBSCFD (one block) and DBSLinUCB-RFD, with h_t.

    R sqrt(2 ln(1/delta) + d ln(1 + e/lambda) + r ln(1 + t L²/(r lambda) + h_t/lambda)) + H sqrt(lambda + e),
    where e is the sum of ``errors``, and h_t = e - (sum of l_i e_i) / r over the ``sizes`` l_i of the blocks.
    """
    error, rank = math.fsum(errors), min(rank, dim)
    lost = math.fsum(size * e for size, e in zip(sizes, errors, strict=True))  # at least the lost trace
    trace = rounds * confidence.arm_norm**2 + rank * error - lost  # t L² + r h_t
    information = dim * math.log1p(error / ridge) + _log_trace(trace, ridge, rank)
    variance = confidence.noise * _spread(confidence, information)
    return variance + confidence.theta_norm * math.sqrt(ridge + error)


def sketched_radius(
    confidence: Confidence, *, rounds: int, dim: int, ridge: float, error: float, compensation: float
) -> float:
    """Theorem 2 of docs/adaptive.md with L = d ln(1 + t L²/(d lambda)). With ``error`` 0 it is OFUL's radius.

    For every sketch with an error bound. The theorems above bound ln det(lambda I + X'X) through the sketch,
    which costs a term d ln(1 + e/lambda). Here the trace bounds it by d ln(1 + mass/(d lambda)), as for exact
    OFUL.

    Examples
    --------
    >>> beta = Confidence(noise=0.1, theta_norm=1.0, arm_norm=1.0, delta=0.01)
    >>> round(sketched_radius(beta, rounds=1000, dim=10, ridge=1.0, error=0.0, compensation=1.0), 4)
    1.7441

    """
    error = check_real("error", error, at_least=0.0)
    return confidence.radius(
        dim=dim,
        ridge=ridge,
        alpha=check_compensation(compensation) * error,
        error_bound=error,
        log_det=math.inf,
        mass=rounds * confidence.arm_norm**2,
    )


def _log_trace(trace: float, ridge: float, rank: int) -> float:
    """r ln(1 + trace/(r lambda)): no matrix of rank r and this trace has a larger log det(I + S'S/lambda)."""
    return rank * math.log1p(trace / (rank * ridge)) if rank else 0.0


def _spread(confidence: Confidence, information: float) -> float:
    return math.sqrt(2.0 * math.log(1.0 / confidence.delta) + information)
