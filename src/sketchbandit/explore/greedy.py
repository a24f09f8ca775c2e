"""Without widths: the arm of the largest mean, and now and then any."""

import numpy as np

from sketchbandit.arms import Batch, View
from sketchbandit.arrays import AnyArray, Vector
from sketchbandit.explore.base import Explore
from sketchbandit.explore.candidates import Candidates
from sketchbandit.explore.largest import largest
from sketchbandit.explore.screening import Aim
from sketchbandit.kernels import kernels, loops
from sketchbandit.precision import Precision
from sketchbandit.sketch.checks import check_real


class Greedy(Explore):
    """The arm of the largest mean, ties to the lowest index. It does not explore, but for its ``floor``.

    >>> Greedy(floor=0.1).uniform_share
    0.1
    """

    kind = "greedy"
    beta = 0.0
    draws = False

    def __init__(self, *, floor: float = 0.0, seed: int | None = None) -> None:
        super().__init__(floor=floor, seed=seed)

    def choose(self, candidates: Candidates, count: int, random: np.random.Generator) -> list[int]:
        """The arms of the largest means."""
        del random
        return largest(candidates.means, count)

    def search(
        self, arms: View, theta: Vector, precision: Precision, radius: float, random: np.random.Generator
    ) -> int | None:
        """One pass over the arms."""
        del precision, radius, random
        compiled = loops(arms.array.size)
        if compiled is None or type(self).choose is not Greedy.choose:
            return None
        means = np.empty(len(arms.array))
        best: int = compiled.best_mean(*arms, theta, means)
        return best

    def aim(self, theta: Vector, radius: float) -> Aim | None:
        """The mean."""
        del radius
        return Aim(theta, 0.0) if self.aims else None

    @property
    def aims(self) -> bool:
        """Unless a subclass chooses otherwise."""
        return type(self).choose is Greedy.choose

    def search_many(
        self, batch: Batch, theta: Vector, precision: Precision, radius: float, random: np.random.Generator
    ) -> AnyArray | None:
        """One pass over all arms."""
        del precision, radius, random
        compiled, arms, bounds = kernels(), *batch
        means, found = np.empty(len(arms.array)), np.empty(len(bounds) - 1, dtype=np.intp)
        if compiled is None or type(self).choose is not Greedy.choose:
            return None
        return found if compiled.best_means(*arms, theta, bounds, means, found) else None


class EpsilonGreedy(Greedy):
    """The arm of the largest mean with probability 1 - epsilon, else any arm.

    It is ``Greedy`` with a floor; ``floor`` adds to it.

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
        """Epsilon, and of the rest the floor."""
        return self.floor + (1.0 - self.floor) * self.epsilon
