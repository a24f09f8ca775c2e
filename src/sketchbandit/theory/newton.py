"""The regret of sketched online Newton (docs/beyond-linear.md, Theorem N2)."""

import math

from sketchbandit.sketch.checks import check_compensation, check_count, check_real


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
