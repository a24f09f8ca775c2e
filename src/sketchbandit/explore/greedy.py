"""Rules without confidence widths: greedy and epsilon-greedy."""

import numpy as np

from sketchbandit.explore.base import Explore
from sketchbandit.explore.candidates import Candidates
from sketchbandit.explore.scores import largest
from sketchbandit.sketch.checks import check_real


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
