"""UCB: the arm with the largest upper confidence bound, found without the width of every arm."""

import math

import numpy as np

from sketchbandit.arrays import Vector
from sketchbandit.explore.base import Auto, Explore, check_strength
from sketchbandit.explore.candidates import Candidates
from sketchbandit.explore.scores import largest
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
