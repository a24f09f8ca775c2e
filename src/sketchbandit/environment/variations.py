"""Any environment with other rewards: clicks, outliers, a world that changes."""

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

_CLICKS, _NOISE, _TURN = 3, 4, 5  # tags of the generators: 1 and 2 are those of GaussianArms


class Clicked(Round):
    """A round of clicks: ``noise`` is from [0, 1), and an arm is clicked if that is below its mean."""

    __slots__ = ()

    def reward(self, chosen: int) -> float:
        """1 with the chance that is the mean of the arm."""
        return float(self.noise < self.means[chosen])


class Clicks(Environment):
    """Clicks in place of rewards: the log-odds are those of ``base_rate``, and ``lift`` times the old mean.

    Parameters
    ----------
    environment : Environment
        Whose arms are offered. An arm of mean 0 has the base rate; one of mean 1 has ``lift`` more log-odds.
    base_rate, lift : float
        As above. The base rate is a chance: above 0 and below 1.
    seed : int
        Of the clicks.

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
        """The arms of the environment; whether each would be clicked does not depend on which is chosen."""
        random = np.random.default_rng([self.seed, _CLICKS])
        start = float(logit(self.base_rate))
        for drawn in self._environment.rounds(count):
            yield Clicked(drawn.arms, expit(start + self.lift * drawn.means), random.random())


class HeavyTails(Environment):
    """Noise with heavy tails: Student's t of some degrees of freedom, or outliers among rewards.

    Parameters
    ----------
    environment : Environment
        Whose arms and means there are; its own noise stays where there are outliers.
    degrees : float, optional
        Of Student's t, in place of the noise. Its moments below ``degrees`` are finite.
    outliers : float, optional
        The chance that ``scale`` is added to a reward, or taken from it.
    scale : float
        What t is multiplied by, or the size of an outlier.
    seed : int
        Of the noise.

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
            raise InputError("give either the degrees of freedom of the noise, or the share of outliers")
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
        """The arms of the environment, and one draw of the noise, whichever arm is chosen."""
        random = np.random.default_rng([self.seed, _NOISE])
        for drawn in self._environment.rounds(count):
            if self.degrees is not None:
                yield drawn._replace(noise=self.scale * float(random.standard_t(self.degrees)))
            else:
                is_one, sign = random.random() < (self.outliers or 0.0), random.choice((-1.0, 1.0))
                yield drawn._replace(noise=drawn.noise + is_one * float(sign) * self.scale)


class Switching(Environment):
    """One environment up to a round, and another from then on.

    Parameters
    ----------
    first, then : Environment
        Of the same dimension. The rounds of ``then`` are those that it would have had by that time.
    at : int
        How many rounds are the first one's.

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
            raise InputError(f"both need one dimension: the first has {first.dim}, the other {then.dim}")
        self._first, self._then = first, then
        self.at = check_count("at", at, at_least=1)
        self.dim, self.name = first.dim, f"{first.name}, then another after {self.at} rounds"

    def rounds(self, count: int) -> Iterator[Round]:
        """Those of the first, then those of the other."""
        yield from self._first.rounds(min(count, self.at))
        if count > self.at:
            yield from islice(self._then.rounds(count), self.at, count)


class Rotating(Environment):
    """Gaussian arms whose theta* turns slowly in a plane.

    Parameters
    ----------
    environment : GaussianArms
        Whose arms and noise there are, and whose theta* it begins with.
    turn : int
        Rounds for a whole turn.

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
            raise InputError("theta* turns in a plane: it needs two dimensions or more")
        random = np.random.default_rng([environment.seed, _TURN])
        other = random.standard_normal(environment.dim)
        other -= (other @ environment.theta) * environment.theta
        self._other = normalised(other[np.newaxis])[0]
        self.dim, self.name = environment.dim, f"{environment.name}, theta* turns in {self.turn} rounds"

    def theta(self, number: int) -> Vector:
        """The parameter of a round, counted from 0."""
        angle = 2.0 * np.pi * number / self.turn
        theta: Vector = np.cos(angle) * self._environment.theta + np.sin(angle) * self._other
        return theta

    def rounds(self, count: int) -> Iterator[Round]:
        """The arms of the environment, with the means of the theta* of each round."""
        for number, drawn in enumerate(self._environment.rounds(count)):
            yield drawn._replace(means=drawn.arms @ self.theta(number))
