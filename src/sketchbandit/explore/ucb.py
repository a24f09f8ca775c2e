"""Optimism: the largest upper confidence bound, without the width of every arm."""

from typing import Any

import numpy as np

from sketchbandit.arms import Batch, View
from sketchbandit.arrays import AnyArray, Vector
from sketchbandit.explore.base import Auto, Explore, check_strength
from sketchbandit.explore.best_scores import best_scores
from sketchbandit.explore.candidates import Candidates
from sketchbandit.explore.compiled_search import search_dense, search_many, search_rows
from sketchbandit.explore.largest import largest
from sketchbandit.explore.screening import Aim
from sketchbandit.precision import DenseInverse, LowRankInverse, Precision
from sketchbandit.theory import Confidence

DEFAULT_BETA = 0.1
_MOST_LOOKED_AT = 0.25  # of all arms: where more are wanted, all widths at once cost less


class UCB(Explore):
    """The arm of the largest margin + beta·width, ties to the lowest index.

    The margin is x'theta: the mean where rewards are linear, else what the mean grows with.

    Parameters
    ----------
    beta : float or Confidence
        The radius: a constant, or the theorem's. Unless it is given, it is the policy's ``beta``.
    floor, seed
        As for every rule.

    Examples
    --------
    >>> import sketchbandit as sb
    >>> policy = sb.oful(2, explore=sb.UCB(0.5, floor=0.1, seed=0))
    >>> policy.probabilities([[1.0, 0.0], [0.0, 2.0]])
    array([0.05, 0.95])

    """

    kind = "ucb"
    draws = False
    _is_plain = True  # no subclass chooses otherwise

    def __init__(
        self, beta: float | Confidence | Auto | None = None, *, floor: float = 0.0, seed: int | None = None
    ) -> None:
        super().__init__(floor=floor, seed=seed)
        self.beta = None if beta is None else check_strength("beta", beta)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls._is_plain = cls.choose is UCB.choose

    def choose(self, candidates: Candidates, count: int, random: np.random.Generator) -> list[int]:
        """The ``count`` arms of the largest scores, best first (design: cost model).

        The arms with the largest optimistic bounds are scored first; an arm whose bound is below the
        ``count``-th best score found so far cannot be among the best, and its width is never computed.
        """
        del random
        if count > 1 and count > _MOST_LOOKED_AT * len(candidates):
            return _by_all_widths(candidates, count)
        return best_scores(candidates, count)

    def search(
        self, arms: View, theta: Vector, precision: Precision, radius: float, random: np.random.Generator
    ) -> int | None:
        """The best of dense arms in one compiled call."""
        del random
        inverse = precision.inverse
        if not self._is_plain:
            return None
        if isinstance(inverse, LowRankInverse):
            return search_rows(arms, theta, precision, inverse, radius)
        if isinstance(inverse, DenseInverse):
            return search_dense(arms, theta, precision, inverse, radius)
        return None

    def aim(self, theta: Vector, radius: float) -> Aim | None:
        """The upper confidence bound itself."""
        return Aim(theta, radius) if self._is_plain else None

    @property
    def aims(self) -> bool:
        """Unless a subclass scores or chooses otherwise."""
        return self._is_plain

    def search_many(
        self, batch: Batch, theta: Vector, precision: Precision, radius: float, random: np.random.Generator
    ) -> AnyArray | None:
        """The best of every set in one compiled call."""
        del random
        if not self._is_plain:
            return None
        return search_many(*batch, theta, precision.inverse, radius)


def _by_all_widths(candidates: Candidates, count: int) -> list[int]:
    """The arms of the largest scores, the same numbers in one pass."""
    found = largest(candidates.means + candidates.bonuses(), count)
    candidates.width(found[0])
    candidates.keep()
    return found
