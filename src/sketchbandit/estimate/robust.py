"""Linear rewards with heavy-tailed noise: outliers move theta no further than a threshold."""

import math

from sketchbandit.arrays import Scalars
from sketchbandit.errors import InputError
from sketchbandit.estimate.one_pass import Move, OnePass
from sketchbandit.estimate.reward_scale import RewardScale
from sketchbandit.sketch.checks import check_real
from sketchbandit.theory import Confidence

_KNOWN = 3  # rewards whose median one outlier does not move far


class Robust(OnePass):
    """Linear rewards with outliers: only the moment E|noise|^moment of the noise must be finite.

    The mean reward is x'theta. This is one-pass adaptive Huber regression (Wang, Zhang, Zhao, Zhou 2025,
    arXiv 2503.00419). With w the width of the arm in units of its noise, and t rewards so far,

        sigma = max(scale, caution·|x|_{A^-1}),   w = |x|_{A^-1} / sigma,
        tau = threshold·sqrt(1 + w²)/w·t^((2 - moment) / (2·moment)),
        theta' = theta + A'^-1 x·clip((reward - x'theta) / sigma, ±tau) / sigma,   A' = A + x x'/sigma².

    A well-known arm has a large tau, because it has many rewards. The residual of a little-known arm is
    clipped early. If nothing is clipped and sigma is 1, this is ``Linear``. Widths, and so beta, are in units
    of the noise. The ridge is in units of a squared arm norm over scale².

    Parameters
    ----------
    moment : float
        1 + eps, in (1, 2]. 2 means a finite variance. t-distributed noise with n degrees of freedom has all
        moments below n.
    scale : float
        The size of the noise, (E|noise|^moment)^(1/moment), or a guess of it.
    threshold : float
        tau_0. With a smaller value more is clipped. docs/beyond-linear.md has the gain and the cost of 0.25.
    caution : float
        Arms with a width above scale/caution count less, as if their noise were larger.

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
        if self.reward_scale.baseline and self.reward_scale.count < _KNOWN:
            return Move(0.0, 0.0)  # an outlier may be all that is known of the level
        width = math.sqrt(quadratic)
        sigma = max(self.scale, self.caution * width)
        w = width / sigma
        residual = (reward - margin) / sigma
        free = residual
        if w > 0.0:
            grown = math.pow(self.count + 1, (2.0 - self.moment) / (2.0 * self.moment))
            tau = self.threshold * math.sqrt(1.0 + w * w) / w * grown
            residual = min(max(residual, -tau), tau)
        by = 1.0 / (sigma * (1.0 + w * w))
        return Move(residual * by, 1.0 / (sigma * sigma), slope=by / sigma if residual == free else 0.0)

    def make_scale(self, *, baseline: bool) -> RewardScale:
        """A scale whose location outliers do not move."""
        return RewardScale(baseline=baseline, robust=(self.scale, self.moment))

    @property
    def level(self) -> float:
        """The robust location of the rewards less their origin; 0 without a baseline."""
        return self.reward_scale.location if self.reward_scale.baseline else 0.0

    @property
    def baseline(self) -> float:
        """The robust location of the rewards; 0 without a baseline."""
        return self.reward_scale.origin + self.level if self.reward_scale.baseline else 0.0

    def check_confidence(self, confidence: Confidence) -> None:
        """Raise: the constants of the paper are too large to be useful, and none are proved for a sketch."""
        del confidence
        raise InputError(
            "no theorem gives the radius of Robust rewards on a sketch; give a constant beta, in units of "
            'the noise, or "auto"'
        )

    def settings(self) -> Scalars:
        """The keyword arguments of the constructor."""
        return {
            "moment": self.moment,
            "scale": self.scale,
            "threshold": self.threshold,
            "caution": self.caution,
        }
