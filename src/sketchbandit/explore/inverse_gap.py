"""Inverse gap weighting (SquareCB, Foster and Rakhlin 2020): arms that look worse are played less."""

import math
import sys

import numpy as np

from sketchbandit.arrays import AnyArray, Vector
from sketchbandit.errors import InputError
from sketchbandit.explore.base import Explore, check_factor
from sketchbandit.explore.candidates import Candidates
from sketchbandit.sketch.checks import check_real
from sketchbandit.theory import Confidence


class InverseGap(Explore):
    """Inverse gap weighting: p(a) = 1 / (K + gamma·gap(a)), and the best arm gets the rest.

    gap(a) is the difference between the best mean and that of a. Means are expected rewards, whatever the
    reward model. The rule needs no widths, so one pass over the arms is enough. Its probabilities are exact.

    Parameters
    ----------
    gamma : float or Confidence
        How fast the probability falls with the gap, in units of 1/reward. 0 is uniform, infinity is greedy. A
        ``Confidence`` gives the theorem's gamma, sqrt(8·K·t / bound), with the ``theory.regression_bound`` of
        the estimate, including the error bound of the sketch.
    growth : float
        gamma is multiplied by rounds^growth. 0 keeps it constant, 0.5 is the rate of the theorem.
    eliminate : float or Confidence, optional
        If given, only arms that UCB with this radius cannot rule out are played. This needs widths.
    floor : float
        The share of choices that are drawn uniformly.
    seed : int, optional
        Seed of the generator.

    Examples
    --------
    >>> import sketchbandit as sb
    >>> policy = sb.oful(2, explore=sb.InverseGap(10.0, seed=0))
    >>> policy.update([0.0, 1.0], 1.0)
    >>> policy.probabilities([[1.0, 0.0], [0.0, 1.0]]).round(3)
    array([0.143, 0.857])

    """

    kind = "inverse-gap"
    by_rewards = True
    chooses_by = "gap"

    def __init__(
        self,
        gamma: float | Confidence = 1000.0,
        *,
        growth: float = 0.0,
        eliminate: float | Confidence | None = None,
        floor: float = 0.0,
        seed: int | None = None,
    ) -> None:
        super().__init__(floor=floor, seed=seed)
        self.gamma = check_factor("gamma", gamma)
        self.growth = check_real("growth", growth, at_least=0.0, at_most=1.0)
        self.eliminate = None if eliminate is None else check_factor("eliminate", eliminate)
        if isinstance(self.gamma, Confidence):
            if self.growth:
                raise InputError("gamma is a Confidence, which determines its growth; leave out growth")
            if self.eliminate not in (None, self.gamma):
                raise InputError("gamma is a Confidence; give eliminate the same one, or leave it out")

    @property
    def beta(self) -> float | Confidence:  # type: ignore[override]
        """The confidence radius: that of the elimination, or of the theorem for gamma."""
        if self.eliminate is not None:
            return self.eliminate
        return self.gamma if isinstance(self.gamma, Confidence) else 0.0

    def choose(self, candidates: Candidates, count: int, random: np.random.Generator) -> list[int]:
        """Draw one arm from ``probabilities``."""
        del count
        return [pick(self.probabilities(candidates), random.random())]

    def probabilities(self, candidates: Candidates) -> Vector:
        """1 / (K + gamma·gap), where K counts the arms that were not eliminated."""
        means, rewards, count = candidates.means, candidates.relative_rewards, len(candidates)
        if self.eliminate is None:
            return inverse_gaps(rewards, self.gamma_now(candidates))
        bonuses = candidates.bonuses()
        left = np.flatnonzero(means + bonuses >= (means - bonuses).max())
        chances = np.zeros(count)
        chances[left] = inverse_gaps(rewards[left], self.gamma_now(candidates))
        return chances

    def gamma_now(self, candidates: Candidates) -> float:
        """gamma in this round."""
        if isinstance(self.gamma, Confidence):
            bound = candidates.regression_bound(self.gamma)
            return math.sqrt(8.0 * len(candidates) * candidates.rounds / bound) if bound else 0.0
        return self._grown(self.gamma, candidates.rounds)

    def gap_factor(self, rounds: int) -> float | None:
        """gamma, unless a subclass has its own, it needs the certificate, or widths eliminate arms."""
        kind = type(self)
        is_own = kind.gamma_now is InverseGap.gamma_now and kind.probabilities is InverseGap.probabilities
        if not is_own or isinstance(self.gamma, Confidence) or self.eliminate is not None:
            return None
        return self._grown(self.gamma, rounds)

    def _grown(self, gamma: float, rounds: int) -> float:
        return min(gamma * math.pow(rounds, self.growth), sys.float_info.max) if self.growth else gamma


def inverse_gaps_of_many(means: Vector, bounds: AnyArray, gamma: float) -> Vector:
    """``inverse_gaps`` of several sets. Set i has the means from bounds[i] to bounds[i + 1]."""
    starts, counts = bounds[:-1], np.diff(bounds)
    best = np.repeat(np.maximum.reduceat(means, starts), counts)
    with np.errstate(over="ignore"):
        chances: Vector = 1.0 / (np.repeat(counts, counts) + gamma * (best - means))
    ties = np.flatnonzero(means == best)
    firsts = ties[np.searchsorted(ties, starts)]  # the first of equal means
    chances[firsts] = 0.0
    chances[firsts] = np.maximum(0.0, 1.0 - np.add.reduceat(chances, starts))
    return chances


def inverse_gaps(means: Vector, gamma: float) -> Vector:
    """1 / (K + gamma·gap), the rest to the best arm. ``kernels.choices`` has the compiled version."""
    best = int(means.argmax())
    with np.errstate(over="ignore"):
        chances: Vector = 1.0 / (len(means) + gamma * (means[best] - means))
    chances[best] = 0.0
    chances[best] = max(0.0, 1.0 - float(np.cumsum(chances)[-1]))
    return chances


def pick(chances: Vector, drawn: float) -> int:
    """The arm on which a uniform draw from [0, 1) falls."""
    sums = np.cumsum(chances)
    return min(int(np.searchsorted(sums, drawn, side="right")), int(np.flatnonzero(chances)[-1]))
