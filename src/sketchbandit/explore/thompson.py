"""Thompson sampling: the best arm of a theta that is drawn anew for every choice."""

import math
import zlib

import numpy as np
from scipy.special import ndtr

from sketchbandit.arms import Batch, View
from sketchbandit.arrays import AnyArray, Matrix, Vector
from sketchbandit.errors import InputError
from sketchbandit.explore.base import Auto, Explore, check_strength, one_hot
from sketchbandit.explore.candidates import Candidates
from sketchbandit.explore.largest import largest
from sketchbandit.explore.screening import Aim
from sketchbandit.kernels import kernels, loops
from sketchbandit.precision import Precision
from sketchbandit.sketch.checks import check_count
from sketchbandit.theory import Confidence

_TOGETHER = 1_000_000  # numbers drawn at once
_MOST_ARMS = 2_000  # whose joint distribution is worked out: some seconds


class Thompson(Explore):
    """The arm of the largest x'theta~, theta~ drawn from N(theta, scale²·A^-1): exactly, in O(r·d).

    Mean rewards that are no x'theta (``Logistic``, ``Poisson``) grow with it: the arm is the same.

    Probabilities are sampled from the Gaussian of the K scores when somebody asks for them, with a standard
    error of sqrt(p(1 - p) / samples); those of two arms are exact.

    Parameters
    ----------
    scale : float, Confidence or "auto"
        By how much theta~ scatters. "auto": 0.15 times the deviation of the rewards so far, so
        that their unit does not matter. A Confidence: the theorem's, the realised radius beta_t (Abeille and
        Lazaric 2017: the draw is then longer than the ellipsoid's radius by about sqrt(d)).
    per : "request" or "batch"
        ``select_many`` draws a theta for every request, or one for all of them, which costs less.
    samples : int
        From how many draws probabilities are estimated.
    floor, seed
        As for every rule.

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
        """The scale."""
        return self.scale

    def choose(self, candidates: Candidates, count: int, random: np.random.Generator) -> list[int]:
        """The arms of the largest scores of one draw."""
        return largest(candidates.drawn(random), count)

    def probabilities(self, candidates: Candidates) -> Vector:
        """Sampled, but for one or two arms; the estimate depends on the scores alone."""
        check_few(candidates)
        return win_chances(candidates.means, candidates.covariance(), candidates.first_copies(), self.samples)

    def search(
        self, arms: View, theta: Vector, precision: Precision, radius: float, random: np.random.Generator
    ) -> int | None:
        """Two passes over the sketch, two over the arms."""
        compiled = loops(arms.array.size)
        if compiled is None or type(self) is not Thompson:
            return None
        means = np.empty(len(arms.array))
        if not compiled.finite_means(*arms, theta, precision.inverse.shift, radius, means):
            return -1
        index: int = compiled.best_along(*arms, means, precision.half(random), radius)
        return index

    def settled(self, precision: Precision, random: np.random.Generator) -> Explore:
        """One draw."""
        return _Drawn(precision.half(random)) if self.aims else self

    @property
    def aims(self) -> bool:
        """Unless a subclass chooses otherwise."""
        return type(self).choose is Thompson.choose

    def for_batch(self, precision: Precision, random: np.random.Generator) -> Explore:
        """One draw, where a batch shares it."""
        shares = self.per == "batch" and self.aims
        return _Drawn(precision.half(random)) if shares else self


class _Drawn(Explore):
    """One draw: the arm of the largest mean + radius·x'direction."""

    draws = False

    def __init__(self, direction: Vector) -> None:
        self._direction = direction

    def choose(self, candidates: Candidates, count: int, random: np.random.Generator) -> list[int]:
        del random
        return largest(candidates.along(self._direction), count)

    def aim(self, theta: Vector, radius: float) -> Aim | None:
        """The mean of the theta that was drawn."""
        return Aim(theta + radius * self._direction, 0.0)

    def search_many(
        self, batch: Batch, theta: Vector, precision: Precision, radius: float, random: np.random.Generator
    ) -> AnyArray | None:
        """One pass over all arms."""
        del random
        compiled = kernels()
        arms, bounds = batch
        means = np.empty(len(arms.array))
        if compiled is None or not compiled.finite_means(
            *arms, theta, precision.inverse.shift, radius, means
        ):
            return None
        found = np.empty(len(bounds) - 1, dtype=np.intp)
        compiled.best_of_each(*arms, means, bounds, self._direction, radius, found)
        return found


def check_few(candidates: Candidates) -> None:
    """Refuse a set of arms whose probabilities would take minutes and gigabytes."""
    if len(candidates) > _MOST_ARMS:
        raise InputError(
            f"Thompson sampling tells the probabilities of at most {_MOST_ARMS:,} arms, and there are "
            f"{len(candidates):,}; use select, which needs none, or InverseGap, whose are exact"
        )


def win_chances(means: Vector, covariance: Matrix, first: AnyArray, samples: int) -> Vector:
    """The probability that each of K Gaussian scores is the largest, equal ones to the first.

    ``first[i]`` is the first arm with the score of arm i, whatever is drawn. For more than two arms sampled;
    an arm that never won has 1/K of a win, so that no probability is 0, and all sum to one.
    """
    count = len(means)
    alive = np.flatnonzero(first == np.arange(count))
    if len(alive) == 1:
        return one_hot(0, count)
    chances = np.zeros(count)
    some = np.ix_(alive, alive)
    chances[alive] = _of_different(means[alive], covariance[some], samples)
    return chances


def _of_different(means: Vector, covariance: Matrix, samples: int) -> Vector:
    count = len(means)
    if count == 2:
        spread_sq = float(covariance[0, 0] + covariance[1, 1] - 2.0 * covariance[0, 1])
        ahead = float(means[0] - means[1])
        if spread_sq <= 0.0:
            return one_hot(0 if ahead >= 0.0 else 1, 2)
        won = float(ndtr(ahead / math.sqrt(spread_sq)))
        return np.array([won, float(ndtr(-ahead / math.sqrt(spread_sq)))])
    values, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    random = np.random.default_rng(zlib.crc32(means.tobytes() + covariance.tobytes()))
    wins = np.zeros(count)
    for start in range(0, samples, max(1, _TOGETHER // count)):
        some = min(samples - start, max(1, _TOGETHER // count))
        scores = random.standard_normal((some, count)) @ root.T + means
        wins += np.bincount(scores.argmax(axis=1), minlength=count)
    return (wins + 1.0 / count) / (samples + 1.0)
