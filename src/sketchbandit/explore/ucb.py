"""UCB: the arm with the largest upper confidence bound, found without the width of every arm."""

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
    _is_plain = True  # False in subclasses that choose otherwise

    def __init__(
        self, beta: float | Confidence | Auto | None = None, *, floor: float = 0.0, seed: int | None = None
    ) -> None:
        super().__init__(floor=floor, seed=seed)
        self.beta = None if beta is None else check_strength("beta", beta)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls._is_plain = cls.choose is UCB.choose

    def choose(self, candidates: Candidates, count: int, random: np.random.Generator) -> list[int]:
        """Return the ``count`` arms with the largest scores, best first.

        Arms with the largest optimistic bounds are scored first. If the bound of an arm is below the
        ``count``-th best score so far, it cannot be among the best, and its width is never computed.
        """
        del random
        if count > 1 and count > _MOST_LOOKED_AT * len(candidates):
            return _by_all_widths(candidates, count)
        return best_scores(candidates, count)

    def search(
        self, arms: View, theta: Vector, precision: Precision, radius: float, random: np.random.Generator
    ) -> int | None:
        """Find the best of dense arms in one compiled call."""
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
        """Find the best arm of every set in one compiled call."""
        del random
        if not self._is_plain:
            return None
        return search_many(*batch, theta, precision.inverse, radius)


def _by_all_widths(candidates: Candidates, count: int) -> list[int]:
    """The arms with the largest scores, from the widths of all arms in one pass."""
    found = largest(candidates.means + candidates.bonuses(), count)
    candidates.width(found[0])
    candidates.keep()
    return found
