"""A bound on all prediction errors together, for inverse gap weighting."""

import math


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
