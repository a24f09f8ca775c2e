"""Thompson sampling: draw a theta for every choice, and take the arm that is best for it."""

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
from sketchbandit.linalg import symmetric_root
from sketchbandit.precision import Precision
from sketchbandit.sketch.checks import check_count
from sketchbandit.theory import Confidence

_TOGETHER = 1_000_000  # numbers drawn at once
_SEED_STEPS = 2.0**24  # in the unit of the scores: far more than rounding
_MOST_ARMS = 2_000  # for which the joint distribution is computed: this takes some seconds


class Thompson(Explore):
    """Thompson sampling: draw theta~ from N(theta, scale²·A^-1) and choose the arm with the largest x'theta~.

    The draw is exact, and takes O(r·d) time for a sketch of r rows. With ``Logistic`` or ``Poisson`` rewards,
    the mean increases with x'theta~, so the same arm is chosen.

    Probabilities are estimated when they are asked for, by sampling from the Gaussian of the K scores. Their
    standard error is sqrt(p(1 - p) / samples). With two arms they are exact.

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
        return largest(candidates.drawn(random), count)

    def probabilities(self, candidates: Candidates) -> Vector:
        """Probabilities by sampling; exact for one or two arms. Equal scores give equal estimates."""
        check_few(candidates)
        return win_chances(candidates.means, candidates.covariance(), candidates.first_copies(), self.samples)

    def search(
        self, arms: View, theta: Vector, precision: Precision, radius: float, random: np.random.Generator
    ) -> int | None:
        """Choose with two passes over the sketch and two over the arms."""
        compiled = loops(arms.array.size)
        if compiled is None or type(self) is not Thompson:
            return None
        means = np.empty(len(arms.array))
        if not compiled.finite_means(*arms, theta, precision.inverse.shift, radius, means):
            return -1
        index: int = compiled.best_along(*arms, means, precision.sample_direction(random), radius)
        return index

    def settled(self, precision: Precision, random: np.random.Generator) -> Explore:
        """One draw."""
        return _Drawn(precision.sample_direction(random)) if self.aims else self

    @property
    def aims(self) -> bool:
        """Unless a subclass chooses otherwise."""
        return type(self).choose is Thompson.choose

    def for_batch(self, precision: Precision, random: np.random.Generator) -> Explore:
        """One draw, where a batch shares it."""
        shares = self.per == "batch" and self.aims
        return _Drawn(precision.sample_direction(random)) if shares else self


class _Drawn(Explore):
    """One draw: choose the arm with the largest mean + radius·x'direction."""

    draws = False

    def __init__(self, direction: Vector) -> None:
        self._direction = direction

    def choose(self, candidates: Candidates, count: int, random: np.random.Generator) -> list[int]:
        del random
        return largest(candidates.along(self._direction), count)

    def aim(self, theta: Vector, radius: float) -> Aim | None:
        """The mean under the theta that was drawn."""
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
    """Raise if there are so many arms that their probabilities would take minutes and gigabytes."""
    if len(candidates) > _MOST_ARMS:
        raise InputError(
            f"Thompson sampling computes the probabilities of at most {_MOST_ARMS:,} arms, and there are "
            f"{len(candidates):,}; use select, which needs no probabilities, or InverseGap, which is exact"
        )


def win_chances(means: Vector, covariance: Matrix, first: AnyArray, samples: int) -> Vector:
    """The probability that each of K Gaussian scores is the largest. Ties go to the first.

    ``first[i]`` is the first arm whose score always equals that of arm i. With more than two different arms
    the probabilities are sampled. An arm that never won counts 1/K of a win, so that none has probability 0.
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
    root, random = symmetric_root(covariance), np.random.default_rng(_seed_of(means, covariance))
    wins = np.zeros(count)
    for start in range(0, samples, max(1, _TOGETHER // count)):
        some = min(samples - start, max(1, _TOGETHER // count))
        scores = random.standard_normal((some, count)) @ root + means
        wins += np.bincount(scores.argmax(axis=1), minlength=count)
    return (wins + 1.0 / count) / (samples + 1.0)


def _seed_of(means: Vector, covariance: Matrix) -> int:
    """A seed that belongs to these scores, whatever their location and scale. Rounding does not change it."""
    ahead = means - means[0]
    unit = max(float(np.abs(ahead).max()), math.sqrt(float(np.abs(covariance).max()))) or 1.0
    whole = np.rint(_SEED_STEPS * np.append(ahead / unit, covariance / unit / unit))
    return zlib.crc32(whole.astype(np.int64).tobytes())
