"""Variations of any environment: clicks, outliers, and rewards that change over time."""

from collections.abc import Iterator
from itertools import islice

import numpy as np
from scipy.special import expit, logit

from sketchbandit.arrays import Vector
from sketchbandit.environment.base import Environment, Round
from sketchbandit.environment.gaussian import GaussianArms
from sketchbandit.errors import InputError
from sketchbandit.linalg import normalised
from sketchbandit.sketch.checks import check_count, check_real

_CLICKS, _NOISE, _TURN = 3, 4, 5  # tags of the generators; GaussianArms uses 1 and 2


class Clicked(Round):
    """A round of clicks. ``noise`` is uniform in [0, 1); an arm is clicked if its mean is above that."""

    __slots__ = ()

    def reward(self, chosen: int) -> float:
        """1 with a probability equal to the mean of the arm, else 0."""
        return float(self.noise < self.means[chosen])


class Clicks(Environment):
    """Clicks instead of rewards: the log-odds are those of ``base_rate`` plus ``lift`` times the old mean.

    Parameters
    ----------
    environment : Environment
        The source of the arms and of the old means.
    base_rate : float
        The click probability of an arm with old mean 0; above 0 and below 1.
    lift : float
        How much the log-odds increase from an old mean of 0 to one of 1.
    seed : int
        Seed of the clicks.

    Examples
    --------
    >>> clicks = Clicks(GaussianArms(dim=20, arms=5), base_rate=0.02, lift=5.0)
    >>> {round.reward(0) for round in clicks.rounds(500)} == {0.0, 1.0}
    True

    """

    def __init__(
        self, environment: Environment, *, base_rate: float = 0.1, lift: float = 3.0, seed: int = 0
    ) -> None:
        self._environment = environment
        self.base_rate = check_real("base_rate", base_rate, above=0.0, below=1.0)
        self.lift = check_real("lift", lift, above=0.0)
        self.seed = check_count("seed", seed, at_least=0)
        self.dim, self.name = environment.dim, f"{environment.name}, clicks at {self.base_rate:.0%}"

    def rounds(self, count: int) -> Iterator[Round]:
        """Yield rounds. Whether an arm would be clicked does not depend on the choice."""
        random = np.random.default_rng([self.seed, _CLICKS])
        start = float(logit(self.base_rate))
        for drawn in self._environment.rounds(count):
            yield Clicked(drawn.arms, expit(start + self.lift * drawn.means), random.random())


class HeavyTails(Environment):
    """Heavy-tailed noise: Student's t, or outliers among the rewards. Give ``degrees`` or ``outliers``.

    Parameters
    ----------
    environment : Environment
        The source of arms and means. With outliers, its own noise stays.
    degrees : float, optional
        Degrees of freedom of Student's t, which replaces the noise. Moments below ``degrees`` are finite.
    outliers : float, optional
        The probability that ``scale`` is added to a reward or subtracted from it.
    scale : float
        The factor on t, or the size of an outlier.
    seed : int
        Seed of the noise.

    Examples
    --------
    >>> wild = HeavyTails(GaussianArms(dim=5, arms=3), degrees=1.5, scale=0.1)
    >>> max(abs(round.noise) for round in wild.rounds(2000)) > 2.0
    True

    """

    def __init__(
        self,
        environment: Environment,
        *,
        degrees: float | None = None,
        outliers: float | None = None,
        scale: float = 0.1,
        seed: int = 0,
    ) -> None:
        if (degrees is None) == (outliers is None):
            raise InputError("give either degrees, for t-distributed noise, or outliers, their probability")
        self._environment = environment
        self.degrees = None if degrees is None else check_real("degrees", degrees, above=1.0)
        self.outliers = (
            None if outliers is None else check_real("outliers", outliers, at_least=0.0, at_most=1.0)
        )
        self.scale = check_real("scale", scale, at_least=0.0)
        self.seed = check_count("seed", seed, at_least=0)
        what = f"t({degrees:g}) noise" if degrees is not None else f"{outliers:.0%} outliers"
        self.dim, self.name = environment.dim, f"{environment.name}, {what}"

    def rounds(self, count: int) -> Iterator[Round]:
        """Yield rounds with one draw of the noise each, whichever arm is chosen."""
        random = np.random.default_rng([self.seed, _NOISE])
        for drawn in self._environment.rounds(count):
            if self.degrees is not None:
                yield drawn._replace(noise=self.scale * float(random.standard_t(self.degrees)))
            else:
                is_one, sign = random.random() < (self.outliers or 0.0), random.choice((-1.0, 1.0))
                yield drawn._replace(noise=drawn.noise + is_one * float(sign) * self.scale)


class Switching(Environment):
    """An abrupt change: one environment up to a round, and another one from then on.

    Parameters
    ----------
    first, then : Environment
        Two environments of the same dimension. ``then`` continues with the rounds it has at that time.
    at : int
        The number of rounds of the first one.

    Examples
    --------
    >>> first, then = (GaussianArms(dim=5, arms=3, seed=seed) for seed in (0, 1))
    >>> changing = Switching(first, then, at=10)
    >>> last = [*changing.rounds(20)][-1]
    >>> bool(np.allclose(last.means, last.arms @ then.theta))
    True

    """

    def __init__(self, first: Environment, then: Environment, *, at: int) -> None:
        if first.dim != then.dim:
            raise InputError(f"both need the same dim; the first has {first.dim}, the other {then.dim}")
        self._first, self._then = first, then
        self.at = check_count("at", at, at_least=1)
        self.dim, self.name = first.dim, f"{first.name}, then another after {self.at} rounds"

    def rounds(self, count: int) -> Iterator[Round]:
        """Yield the rounds of the first environment, then those of the other."""
        yield from self._first.rounds(min(count, self.at))
        if count > self.at:
            yield from islice(self._then.rounds(count), self.at, count)


class Rotating(Environment):
    """Slow drift: Gaussian arms whose theta* rotates in a plane.

    Parameters
    ----------
    environment : GaussianArms
        The source of arms and noise. theta* starts with its own.
    turn : int
        The number of rounds of a full turn.

    Examples
    --------
    >>> turning = Rotating(GaussianArms(dim=5, arms=3), turn=4)
    >>> first, _, third = turning.rounds(3)
    >>> bool(np.allclose(third.means, -(third.arms @ turning.theta(0))))
    True

    """

    def __init__(self, environment: GaussianArms, *, turn: int) -> None:
        self._environment = environment
        self.turn = check_count("turn", turn, at_least=2)
        if environment.dim < 2:
            raise InputError("theta* rotates in a plane, so dim must be at least 2")
        random = np.random.default_rng([environment.seed, _TURN])
        other = random.standard_normal(environment.dim)
        other -= (other @ environment.theta) * environment.theta
        self._other = normalised(other[np.newaxis])[0]
        self.dim, self.name = environment.dim, f"{environment.name}, theta* turns in {self.turn} rounds"

    def theta(self, number: int) -> Vector:
        """theta* in a round, counted from 0."""
        angle = 2.0 * np.pi * number / self.turn
        theta: Vector = np.cos(angle) * self._environment.theta + np.sin(angle) * self._other
        return theta

    def rounds(self, count: int) -> Iterator[Round]:
        """Yield the rounds of the environment, with the means of the theta* of each round."""
        for number, drawn in enumerate(self._environment.rounds(count)):
            yield drawn._replace(means=drawn.arms @ self.theta(number))
