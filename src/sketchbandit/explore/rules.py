"""The exploration rules: UCB, Thompson sampling, inverse gap weighting, epsilon-greedy and greedy."""

import math
import sys
import zlib
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.special import ndtr

from sketchbandit.arrays import AnyArray, Matrix, Vector
from sketchbandit.errors import InputError
from sketchbandit.explore.base import Auto, Explore, check_factor, check_strength, one_hot
from sketchbandit.explore.candidates import Candidates, close_to_best, copies_among, largest
from sketchbandit.linalg import product
from sketchbandit.sketch.checks import check_count, check_real
from sketchbandit.theory import Confidence

DEFAULT_BETA = 0.1
_ALONE = 16  # so many widths are computed one by one; more are cheaper together
_MORE = 4  # after n arms, the next n / _MORE are looked at
_MOST_LOOKED_AT = 0.25  # of all arms: if more are wanted, it is cheaper to compute all widths at once


class UCB(Explore):
    """Choose the arm with the largest upper confidence bound, margin + beta·width.

    Ties go to the lowest index. The margin is x'theta. For linear rewards it is the mean.
    Otherwise the mean increases with it.

    Parameters
    ----------
    beta : float, Confidence or "auto", optional
        The confidence radius: a constant, that of the theorem, or one that follows the standard deviation of
        the rewards. Default: the policy's ``beta``.
    floor : float
        The share of choices that are drawn uniformly.
    seed : int, optional
        Seed of the generator for these draws.

    Examples
    --------
    >>> import sketchbandit as sb
    >>> policy = sb.oful(2, explore=sb.UCB(0.5, floor=0.1, seed=0))
    >>> policy.probabilities([[1.0, 0.0], [0.0, 2.0]])
    array([0.05, 0.95])

    """

    kind = "ucb"
    draws = False
    chooses_by = "bound"

    def __init__(
        self, beta: float | Confidence | Auto | None = None, *, floor: float = 0.0, seed: int | None = None
    ) -> None:
        super().__init__(floor=floor, seed=seed)
        self.beta = None if beta is None else check_strength("beta", beta)

    def choose(self, candidates: Candidates, count: int, random: np.random.Generator) -> list[int]:
        """Return the ``count`` arms with the largest scores, best first.

        Arms with the largest optimistic bounds are scored first. If the bound of an arm is below the
        ``count``-th best score so far, it cannot be among the best, and its width is never computed.
        """
        del random
        if count > 1 and count > _MOST_LOOKED_AT * len(candidates):
            return _by_all_widths(candidates, count)
        return best_scores(candidates, count)


def _by_all_widths(candidates: Candidates, count: int) -> list[int]:
    """The arms with the largest scores, from the widths of all arms in one pass."""
    found = largest(candidates.means + candidates.bonuses(), count)
    candidates.width(found[0])
    candidates.keep()
    return found


def best_scores(candidates: Candidates, count: int) -> list[int]:
    """The ``count`` arms with the largest scores, best first. Ties go to the lowest index.

    Arms are looked at in the order of upper bounds on their scores. When the next bound is below the
    ``count``-th best score, no further arm can be among the best.
    """
    bounds = candidates.means + candidates.most_bonuses()
    few: list[tuple[float, int]] = []
    if count <= _ALONE:
        few, is_over = _one_by_one(candidates, bounds, count)
        if is_over:
            return [index for _, index in few[:count]]
    found = _together(candidates, bounds, count, few)
    candidates.width(found[0])
    candidates.keep()
    return found


def _one_by_one(candidates: Candidates, bounds: Vector, count: int) -> tuple[list[tuple[float, int]], bool]:
    """The first few arms as (-score, index), best first, and whether no other arm can be among the best."""
    found: list[tuple[float, int]] = []
    best = (math.inf, -1)

    def consider(index: int) -> None:
        nonlocal best
        found.append((-(float(candidates.means[index]) + candidates.bonus(index)), index))
        if found[-1] < best:
            best = found[-1]
            candidates.keep()

    for index in largest(bounds, count):
        consider(index)
    found.sort()
    rivals = np.flatnonzero(bounds >= -found[-1][0])
    if len(rivals) > count:
        for index in rivals[np.argsort(-bounds[rivals], kind="stable")][count:].tolist():
            if bounds[index] < -found[count - 1][0]:
                break
            if len(found) >= _ALONE:
                return found, False
            consider(index)
            found.sort()
    return found, True


def _together(candidates: Candidates, bounds: Vector, count: int, few: list[tuple[float, int]]) -> list[int]:
    """The best arms, of which a few are known.

    Each step looks at a quarter as many arms as all steps before, so that few are looked at in vain.
    """
    scores = np.empty(len(bounds))
    if few:
        worst, looked = -few[count - 1][0], len(few)
        scores[[index for _, index in few]] = [-score for score, _ in few]
    else:
        first = np.array(largest(bounds, count))
        scores[first] = candidates.means[first] + candidates.bonuses_of(first)
        worst, looked = float(scores[first].min()), count
    rivals = np.flatnonzero(bounds >= worst)
    rivals = rivals[np.argsort(-bounds[rivals], kind="stable")]  # the arms looked at so far come first
    while looked < len(rivals) and bounds[rivals[looked]] >= worst:
        some = rivals[looked : looked + max(_ALONE, looked // _MORE)]
        some = some[bounds[some] >= worst]
        scores[some] = candidates.means[some] + candidates.bonuses_of(some)
        looked += len(some)
        worst = float(np.partition(scores[rivals[:looked]], -count)[-count])
    seen = np.sort(rivals[:looked])
    best: list[int] = seen[largest(scores[seen], count)].tolist()
    return best


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
    """1 / (K + gamma·gap), the rest to the best arm. ``kernels.search`` has the compiled version."""
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


class Greedy(Explore):
    """Choose the arm with the largest mean. Ties go to the lowest index. It explores only by its ``floor``.

    Parameters
    ----------
    floor : float
        The share of choices that are drawn uniformly.
    seed : int, optional
        Seed of the generator for these draws.

    Examples
    --------
    >>> Greedy(floor=0.1).uniform_share
    0.1

    """

    kind = "greedy"
    beta = 0.0
    draws = False
    chooses_by = "mean"

    def __init__(self, *, floor: float = 0.0, seed: int | None = None) -> None:
        super().__init__(floor=floor, seed=seed)

    def choose(self, candidates: Candidates, count: int, random: np.random.Generator) -> list[int]:
        """Return the arms with the largest means."""
        del random
        return largest(candidates.means, count)


class EpsilonGreedy(Greedy):
    """Choose the arm with the largest mean with probability 1 - epsilon, otherwise any arm.

    This is ``Greedy`` with a floor. If ``floor`` is given too, it adds to epsilon.

    Parameters
    ----------
    epsilon : float
        The probability of a uniform draw.
    floor : float
        A further share of uniform draws.
    seed : int, optional
        Seed of the generator.

    Examples
    --------
    >>> import sketchbandit as sb
    >>> policy = sb.oful(2, explore=sb.EpsilonGreedy(0.1, seed=0))
    >>> policy.update([0.0, 1.0], 1.0)
    >>> policy.probabilities([[1.0, 0.0], [0.0, 1.0]])
    array([0.05, 0.95])

    """

    kind = "epsilon-greedy"

    def __init__(self, epsilon: float = 0.05, *, floor: float = 0.0, seed: int | None = None) -> None:
        super().__init__(floor=floor, seed=seed)
        self.epsilon = check_real("epsilon", epsilon, at_least=0.0, at_most=1.0)

    @property
    def uniform_share(self) -> float:
        """The floor, plus epsilon of the rest."""
        return self.floor + (1.0 - self.floor) * self.epsilon
