"""Linear rewards whose noise has heavy tails: outliers move theta no further than their threshold."""

import math

from sketchbandit.arrays import Scalars
from sketchbandit.errors import InputError
from sketchbandit.estimate.one_pass import Move, OnePass
from sketchbandit.sketch.checks import check_real
from sketchbandit.theory import Confidence


class Robust(OnePass):
    """The mean reward is x'theta, and of the noise only a moment E|noise|^moment is known to be finite.

    One pass of adaptive Huber regression (Wang, Zhang, Zhao, Zhou 2025, arXiv 2503.00419). With w the width
    of the arm in units of its noise, and t rewards so far,

        sigma = max(scale, caution·|x|_{A^-1}),   w = |x|_{A^-1} / sigma,
        tau = threshold·sqrt(1 + w²)/w·t^((2 - moment) / (2·moment)),
        theta' = theta + A'^-1 x·clip((reward - x'theta) / sigma, ±tau) / sigma,   A' = A + x x'/sigma².

    An arm that is well known bears a large tau, because its rewards are many; one that is not is clipped
    early. Where nothing is clipped and sigma is 1, this is ``Linear``. Widths, and with them beta, are in
    units of the noise; the ridge is in units of a squared arm norm over scale².

    Parameters
    ----------
    moment : float
        1 + eps, in (1, 2]: 2 is a finite variance, t-distributed noise of n degrees has all moments below n.
    scale : float
        The size of the noise: (E|noise|^moment)^(1/moment), or a guess.
    threshold : float
        tau_0: the smaller, the more is clipped. What 0.25 gains and costs is in docs/beyond-linear.md.
    caution : float
        Arms whose width exceeds scale/caution count less, as if their noise were larger.

    Examples
    --------
    >>> import sketchbandit as sb
    >>> policy = sb.oful(1, rewards=sb.Robust(scale=0.1))
    >>> policy.update([[1.0]] * 20, [1.0] * 19 + [1e6])
    >>> round(policy.mean([1.0]), 1)
    0.8

    """

    kind = "robust"

    def __init__(
        self, *, moment: float = 1.5, scale: float = 1.0, threshold: float = 0.25, caution: float = 1.0
    ) -> None:
        self.moment = check_real("moment", moment, above=1.0, at_most=2.0)
        self.scale = check_real("scale", scale, at_least=1e-100, at_most=1e100)
        self.threshold = check_real("threshold", threshold, above=0.0)
        self.caution = check_real("caution", caution, at_least=0.0)
        self.most_weight = 1.0 / (self.scale * self.scale)

    def decide(self, margin: float, quadratic: float, norm_sq: float, reward: float) -> Move:
        """The clipped residual, along A'^-1 x = A^-1 x / (1 + w²)."""
        del norm_sq
        width = math.sqrt(quadratic)
        sigma = max(self.scale, self.caution * width)
        w = width / sigma
        residual = (reward - margin) / sigma
        if w > 0.0:
            grown = math.pow(self.count + 1, (2.0 - self.moment) / (2.0 * self.moment))
            tau = self.threshold * math.sqrt(1.0 + w * w) / w * grown
            residual = min(max(residual, -tau), tau)
        return Move(residual / (sigma * (1.0 + w * w)), 1.0 / (sigma * sigma))

    def check_confidence(self, confidence: Confidence) -> None:
        """The paper's constants are too large to be of use, and none are proved for a sketch."""
        del confidence
        raise InputError(
            "no theorem gives the radius of Robust rewards on a sketch; give a constant beta, in units of "
            'the noise, or "auto"'
        )

    def settings(self) -> Scalars:
        """The constructor's keyword arguments."""
        return {
            "moment": self.moment,
            "scale": self.scale,
            "threshold": self.threshold,
            "caution": self.caution,
        }
