"""Thompson sampling: draw a theta for every choice, and take the arm that is best for it."""

import math
import zlib
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.special import ndtr

from sketchbandit.arrays import AnyArray, Matrix, Vector
from sketchbandit.errors import InputError
from sketchbandit.explore.base import Auto, Explore, check_strength, one_hot
from sketchbandit.explore.candidates import Candidates, copies_among
from sketchbandit.explore.scores import close_to_best, largest
from sketchbandit.linalg import product
from sketchbandit.sketch.checks import check_count
from sketchbandit.theory import Confidence

_TOGETHER = 1_000_000  # numbers drawn at once
_SEED_STEPS = 2.0**24  # in the unit of the scores: far more than rounding
_MOST_ARMS = 2_000  # for which the joint distribution is computed: this takes some seconds


class Thompson(Explore):
    """Thompson sampling: draw theta~ from N(theta, scale²·A^-1) and choose the arm with the largest x'theta~.

    The draw is exact, and takes O(r·d) time for a sketch of r rows. With ``Logistic`` or ``Poisson`` rewards,
    the mean increases with x'theta~, so the same arm is chosen.

    Arms that are equal up to rounding are copies: the first of them is played, and has their probability.

    Probabilities are estimated when they are asked for, by sampling from the Gaussian of the K scores. Their
    standard error is sqrt(p(1 - p) / samples). With two arms they are exact. That of the arm chosen is
    (wins + 1) / (samples + 1): the choice is a sample, too. So E[1{a} / p] is at most 1, however rare a is.

    Parameters
    ----------
    scale : float, Confidence or "auto"
        The scale of the draws. "auto" is 0.15 times the standard deviation of the rewards so far, so the unit
        of the rewards does not matter. A ``Confidence`` gives the theorem's radius beta_t (Abeille and
        Lazaric 2017); a draw is then longer than the radius of the ellipsoid, by about sqrt(d).
    per : {"request", "batch"}
        Whether ``select_many`` draws a theta for every request, or one for the whole batch, which is faster.
    samples : int
        The number of samples from which probabilities are estimated.
    floor : float
        The share of choices that are drawn uniformly.
    seed : int, optional
        Seed of the generator.

    Examples
    --------
    >>> import sketchbandit as sb
    >>> policy = sb.oful(2, explore=sb.Thompson(0.5, seed=0))
    >>> policy.update([0.0, 1.0], 1.0)
    >>> policy.probabilities([[1.0, 0.0], [0.0, 1.0]]).round(3)
    array([0.207, 0.793])

    """

    kind = "thompson"
    exact_probabilities = False
    chooses_by = "draw"

    def __init__(
        self,
        scale: float | Confidence | Auto = 0.1,
        *,
        per: str = "request",
        samples: int = 10_000,
        floor: float = 0.0,
        seed: int | None = None,
    ) -> None:
        super().__init__(floor=floor, seed=seed)
        self.scale = check_strength("scale", scale)
        if per not in ("request", "batch"):
            raise InputError(f'per must be "request" or "batch", got {per!r}')
        self.per = per
        self.samples = check_count("samples", samples, at_least=1)

    @property
    def beta(self) -> float | Confidence | Auto:  # type: ignore[override]
        """The scale, which is the factor on widths."""
        return self.scale

    def choose(self, candidates: Candidates, count: int, random: np.random.Generator) -> list[int]:
        """Return the arms with the largest scores of one draw."""
        return _best_of_draw(candidates, candidates.drawn(random), count)

    def probabilities(self, candidates: Candidates) -> Vector:
        """Probabilities by sampling; exact for one or two arms. Equal scores give equal estimates."""
        check_few(candidates)
        return GaussianScores.of(candidates, self.samples).chances()


def check_few(candidates: Candidates) -> None:
    """Raise if there are so many arms that their probabilities would take minutes and gigabytes."""
    if len(candidates) > _MOST_ARMS:
        raise InputError(
            f"Thompson sampling computes the probabilities of at most {_MOST_ARMS:,} arms, and there are "
            f"{len(candidates):,}; use select, which needs no probabilities, or InverseGap, which is exact"
        )


def _best_of_draw(candidates: Candidates, scores: Vector, count: int) -> list[int]:
    """The arms with the largest scores of a draw. Of copies the first is best, whatever rounding says."""
    if count > 1:
        return largest(scores[candidates.first_copies()], count)
    best = int(scores.argmax())
    rivals = close_to_best(scores, best)
    return [best if len(rivals) <= 1 else int(rivals[candidates.first_copies_of(rivals)[-1]])]


@dataclass(frozen=True)
class GaussianScores:
    """Gaussian scores of K arms: means + F z. The largest wins; ties go to the first."""

    means: Vector
    factor: Matrix
    first: AnyArray
    """``first[i]`` is the first arm whose score always equals that of arm i."""
    samples: int

    @classmethod
    def of(cls, candidates: Candidates, samples: int) -> "GaussianScores":
        """The draws of Thompson sampling."""
        return cls(candidates.means, candidates.factor(), candidates.first_copies(), samples)

    @cached_property
    def alone(self) -> AnyArray:
        """The arms that are no copies of earlier ones. Only these can win."""
        return np.flatnonzero(self.first == np.arange(len(self.first)))

    @property
    def are_exact(self) -> bool:
        """Whether chances are computed rather than sampled."""
        return len(self.alone) <= 2

    def chances(self) -> Vector:
        """The chance of every arm to win; their sum is one.

        Sampled, it is (wins + 1/K) / (samples + 1), so that no arm but a copy has 0.
        """
        chances = np.zeros(len(self.means))
        if self.are_exact:
            chances[self.alone] = self._exactly()
        else:
            chances[self.alone] = (self._wins() + 1.0 / len(self.alone)) / (self.samples + 1.0)
        return chances

    def chance_of_chosen(self, chosen: int) -> float:
        """The chance of an arm that has won: exact, or (wins + 1) / (samples + 1)."""
        place = int(np.searchsorted(self.alone, chosen))
        if place == len(self.alone) or self.alone[place] != chosen:
            return 0.0  # a copy, which only a uniform draw chooses
        if self.are_exact:
            return float(self._exactly()[place])
        return float(self._wins()[place] + 1.0) / (self.samples + 1.0)

    def among(self, indices: AnyArray) -> "GaussianScores":
        """The draws of some of the arms."""
        first = copies_among(self.first, indices)
        return replace(self, means=self.means[indices], factor=self.factor[indices], first=first)

    def _exactly(self) -> Vector:
        """The chances of one or two arms that are alone."""
        if len(self.alone) == 1:
            return np.ones(1)
        (one, other), apart = self.means[self.alone], np.subtract(*self.factor[self.alone])
        ahead, spread = float(one - other), float(np.sqrt(apart @ apart))
        if spread == 0.0:
            return one_hot(0 if ahead >= 0.0 else 1, 2)
        return np.array([float(ndtr(ahead / spread)), float(ndtr(-ahead / spread))])

    def _wins(self) -> Vector:
        means, factor = self.means[self.alone], self.factor[self.alone]
        random = np.random.default_rng(_seed_of(means, product(factor, factor.T)))
        wins, step = np.zeros(len(means)), max(1, _TOGETHER // factor.shape[1])
        for start in range(0, self.samples, step):
            some = min(self.samples - start, step)
            scores = random.standard_normal((some, factor.shape[1])) @ factor.T + means
            wins += np.bincount(scores.argmax(axis=1), minlength=len(means))
        return wins


def _seed_of(means: Vector, covariance: Matrix) -> int:
    """A seed that belongs to these scores, whatever their location and scale. Rounding does not change it."""
    ahead = means - means[0]
    unit = max(float(np.abs(ahead).max()), math.sqrt(float(np.abs(covariance).max()))) or 1.0
    whole = np.rint(_SEED_STEPS * np.append(ahead / unit, covariance / unit / unit))
    return zlib.crc32(whole.astype(np.int64).tobytes())
