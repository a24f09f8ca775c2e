"""Closed forms for every sketch with an error bound, without a term for each dimension that was lost.

The paper's theorems bound ln det(lambda I + X'X) through the sketch, which costs a term d ln(1 + e/lambda).
The trace alone bounds it by d ln(1 + mass/(d lambda)), as for exact OFUL (docs/adaptive.md).
"""

import math

from sketchbandit.sketch.checks import check_compensation, check_real
from sketchbandit.theory.confidence import Confidence
from sketchbandit.theory.regret import trivial_regret


def sketched_radius(
    confidence: Confidence, *, rounds: int, dim: int, ridge: float, error: float, compensation: float
) -> float:
    """Theorem 2 of docs/adaptive.md with L = d ln(1 + t L²/(d lambda)). With ``error`` 0 it is OFUL's radius.

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
