"""The radius of the confidence ellipsoid, from what actually happened."""

import math
from dataclasses import dataclass

from sketchbandit.sketch.checks import check_real


@dataclass(frozen=True, kw_only=True)
class Confidence:
    """The theorem's radius for whichever sketch the policy stands on, as a ``beta``.

    With the realised certificate e, alpha and rho = lambda + alpha,

        beta_t = R sqrt(1 + (e - alpha)/rho) sqrt(2 ln(1/delta) + ln det((lambda + e) I + S'S) - d ln lambda)
                 + H max(rho, e - alpha - lambda) / sqrt(rho),

    with which theta* lies in the ellipsoid at every round with probability at least 1 - delta. alpha = e
    is Thm. (confidence ellipsoid of RFD), alpha = 0 Thm. (confidence ellipsoid), e = 0 is OFUL.

    Parameters
    ----------
    noise : float
        R: the rewards' noise is R-subgaussian.
    theta_norm : float
        H, a bound on |theta*|.
    arm_norm : float
        L, a bound on |x|. The realised determinant does not need it; the closed forms of
        ``sketchbandit.theory`` do.
    delta : float
        The probability with which the ellipsoid may fail.

    Examples
    --------
    >>> beta = Confidence(noise=0.1, theta_norm=1.0, arm_norm=1.0, delta=0.01)
    >>> round(beta.radius(dim=5, ridge=1.0, alpha=0.0, error_bound=0.0, log_det=0.0), 4)
    1.3035

    """

    noise: float = 0.1
    theta_norm: float = 1.0
    arm_norm: float = 1.0
    delta: float = 0.01

    def __post_init__(self) -> None:
        for name in ("noise", "theta_norm", "arm_norm"):
            object.__setattr__(self, name, check_real(name, getattr(self, name), at_least=0.0))
        delta = check_real("delta", self.delta, above=0.0, below=1.0)
        object.__setattr__(self, "delta", delta)

    def radius(self, *, dim: int, ridge: float, alpha: float, error_bound: float, log_det: float) -> float:
        """beta_t; ``log_det`` is ln det((ridge + error_bound) I + S'S)."""
        rho = ridge + alpha
        uncompensated = max(error_bound - alpha, 0.0)
        information = max(log_det - dim * math.log(ridge), 0.0)
        spread = math.sqrt(2.0 * math.log(1.0 / self.delta) + information)
        variance = self.noise * math.sqrt(1.0 + uncompensated / rho) * spread
        bias = self.theta_norm * max(rho, uncompensated - ridge) / math.sqrt(rho)
        return variance + bias
