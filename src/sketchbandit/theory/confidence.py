"""The radius of the confidence ellipsoid: from what actually happened, and in the paper's closed forms.

Policies use ``Confidence.radius``, which uses the realised determinant and is never larger than the closed
forms, which are for tables and plots. Those take the number of rows r of the sketch where the paper writes
2·l, because with the buffer S has a rank of up to the number of rows held.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from sketchbandit.sketch.checks import check_compensation, check_real

_LEAST_DELTA = 1e-300
_WIDEST = 1.0  # the largest variance to try; the bound holds for any
_MOST_REACH = 1e300  # keeps reach times curvature finite
_SERIES_UP_TO = 1e-4  # below it, 2·exp(v/2)·Phi(sqrt v) - 1 - sqrt(2v/pi) would cancel


@dataclass(frozen=True, kw_only=True)
class Confidence:
    """The confidence radius of the theorem, as a ``beta``, for every sketch that certifies its error.

    With the realised error bound e, alpha and rho = lambda + alpha,

        beta_t = R sqrt(1 + (e - alpha)/rho) sqrt(2 ln(1/delta) + L)
                 + H max(rho, e - alpha - lambda) / sqrt(rho),

        L = min(ln det((lambda + ẽ) I + S'S) - d ln lambda,  d ln(1 + mass/(d lambda))).

    Then theta* lies in the ellipsoid in all rounds with probability at least 1 - delta. alpha = e is Thm.
    (confidence ellipsoid of RFD), alpha = 0 is Thm. (confidence ellipsoid), e = 0 is OFUL. We use
    ẽ = min(e, (mass - |S|_F²)/(d - r)), with r the number of rows of S; the paper has e instead.
    docs/mathematics.md has the proof.

    Parameters
    ----------
    noise : float
        R: the noise of the rewards is R-subgaussian.
    theta_norm : float
        H, an upper bound on |theta*|.
    arm_norm : float
        L, an upper bound on |x|. The realised determinant does not need it; the closed forms of
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

    def radius(
        self,
        *,
        dim: int,
        ridge: float,
        alpha: float,
        error_bound: float,
        log_det: float,
        mass: float = math.inf,
        rounding: float = 0.0,
    ) -> float:
        """The confidence radius beta_t.

        ``log_det`` is ln det((ridge + ẽ) I + S'S), or another upper bound on ln det(ridge I + X'X).
        ``rounding`` is an upper bound on what S'S exceeds X'X by.
        """
        rho = ridge + alpha
        uncompensated = max(error_bound - alpha, 0.0)
        by_trace = dim * math.log1p(mass / (dim * ridge)) if dim * ridge > 0.0 else math.inf
        information = min(max(log_det - dim * math.log(ridge), 0.0), by_trace)
        spread = math.sqrt(2.0 * math.log(1.0 / self.delta) + information)
        variance = self.noise * math.sqrt(1.0 + uncompensated / rho) * spread
        bias = self.theta_norm * max(rho + rounding, uncompensated - ridge) / math.sqrt(rho)
        return variance + bias

    def after_forgetting(self, rounds: int, *, merges: float = 1.0) -> "Confidence":
        """The Confidence for a policy that forgets, where the last forgetting was after so many rounds.

        delta becomes delta / ((rounds + 1)·(rounds + 2)). The sum of these over all rounds is delta: Theorem
        4 of docs/beyond-linear.md. ``merges`` has the factors of merged policies.

        Examples
        --------
        >>> Confidence(delta=0.1).after_forgetting(3).delta
        0.005

        """
        share = (rounds + 1.0) * (rounds + 2.0) * merges
        return replace(self, delta=max(self.delta / share, _LEAST_DELTA))

    def one_pass_radius(self, *, ridge: float, step: float, information: float, moved: float = 0.0) -> float:
        """sqrt(lambda·H² + moved + 2·eta·(ln(1/delta) + information)): Theorem 2 of docs/beyond-linear.md.

        This is the radius of ``Logistic`` and ``Poisson``, whose noise follows from the model.
        ``information`` is the sum of ``theory.mix_cost``. ``moved`` is what compensations have added to the
        potential: at most 4·H²·alpha while |theta| stays below H.

        Examples
        --------
        >>> beta = Confidence(theta_norm=1.0, delta=0.01)
        >>> round(beta.one_pass_radius(ridge=1.0, step=2.0, information=0.0), 4)
        4.4069

        """
        spent = 2.0 * step * (math.log(1.0 / self.delta) + information)
        return math.sqrt(ridge * self.theta_norm * self.theta_norm + moved + spent)


def mix_cost(reach: float, curvature: float, *, most_curvature: float = math.inf) -> float:
    """The excess of the mix loss of a round over the loss at the new parameter, apart from the step itself.

    ``reach`` is eta·x'A^-1 x. ``curvature`` is that of the loss along x at the new parameter, and
    ``most_curvature`` an upper bound on it everywhere. With v = min(reach / (1 + reach·curvature), 1) it is

        (v/reach - 1 - ln(v/reach)) / 2 + min(curvature·E[exp|z| - 1 - |z|], most_curvature·v/2),

    where z is from N(0, v). If the reach is small, this is about ln(1 + reach·curvature) / 2.

    Examples
    --------
    >>> mix_cost(0.0, 0.25)
    0.0
    >>> round(mix_cost(0.01, 0.25), 5), round(0.5 * math.log1p(0.0025), 5)
    (0.00132, 0.00125)

    """
    if not reach > 0.0:
        return 0.0
    y = min(reach * curvature, _MOST_REACH)
    variance = min(reach / (1.0 + y), _WIDEST)
    excess = min(curvature * _beyond_linear(variance), 0.5 * most_curvature * variance)
    if variance < _WIDEST:  # the ratio is 1/(1 + y), so its logarithm can be computed to all digits
        return 0.5 * (math.log1p(y) - y / (1.0 + y)) + excess
    ratio = variance / reach
    return 0.5 * (ratio - 1.0 - math.log(ratio)) + excess


def _beyond_linear(variance: float) -> float:
    """E[exp|z| - 1 - |z|], z from N(0, variance)."""
    root = math.sqrt(variance)
    if variance < _SERIES_UP_TO:  # E|z|^k / k! for k = 2 to 5
        odd = math.sqrt(2.0 / math.pi) * root * variance
        return variance / 2.0 + odd / 3.0 + variance * variance / 8.0 + odd * variance / 15.0
    return 2.0 * math.exp(variance / 2.0) * _normal(root) - 1.0 - root * math.sqrt(2.0 / math.pi)


def _normal(z: float) -> float:
    return 0.5 * math.erfc(-z / math.sqrt(2.0))


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
