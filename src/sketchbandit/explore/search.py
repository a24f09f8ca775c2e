"""The fast paths of the built-in rules: what the loops can find without ``Candidates``.

A rule states by ``chooses_by`` what its choice follows from: the largest bound, the largest score of a draw,
the largest mean, or the gaps between the means. Rules that choose otherwise are asked with all candidates.
"""

from typing import NamedTuple

import numpy as np

from sketchbandit.arms import Batch, View, dense_arms, first_copies
from sketchbandit.arrays import AnyArray, Vector
from sketchbandit.explore.base import Explore
from sketchbandit.explore.candidates import close_to_best
from sketchbandit.explore.rules import inverse_gaps_of_many
from sketchbandit.explore.screen import Aim
from sketchbandit.kernels import kernels, loops
from sketchbandit.precision import Precision

Random = np.random.Generator


class Question(NamedTuple):
    """A rule, and what it needs to know of a model whose margins are x'theta."""

    rule: Explore
    theta: Vector
    precision: Precision
    radius: float
    direction: Vector | None = None
    """The draw that a batch of requests shares."""


def search(asked: Question, arms: View, random: Random) -> int | None:
    """The choice among dense arms of a rule that needs no widths; None if it has to be asked.

    Then a score is not finite, or nothing is compiled. For "bound" there is ``Precision.search``.
    """
    rule, theta, precision, radius, direction = asked
    how, compiled = rule.chooses_by, loops(arms.array.size)
    gamma = _gamma(asked) if how == "gap" else None
    if compiled is None or how is None or (how == "gap" and gamma is None):
        return None
    means = np.empty(len(arms.array))
    if how == "mean":
        best: int = compiled.best_mean(*arms, theta, means)
        return best if best >= 0 else None
    if not compiled.finite_means(*arms, theta, precision.inverse.shift, radius, means):
        return None
    if how == "gap":
        return int(kernels().pick_by_gap(means, gamma, random.random()))
    direction = precision.sample_direction(random) if direction is None else direction
    index: int = compiled.best_along(*arms, means, direction, radius)
    if index < 0:
        rivals = close_to_best(means, -1 - index)
        index = int(rivals[first_copies(dense_arms(View(arms.array[rivals], arms.lens)))[-1]])
    return index


def search_many(asked: Question, batch: Batch, random: Random) -> AnyArray | None:
    """The rule's choices from many sets of dense arms; None if it has to be asked, for each set.

    A negative entry says that this set has to be searched separately. Then nothing was drawn.
    """
    how, theta, precision, radius = asked.rule.chooses_by, asked.theta, asked.precision, asked.radius
    (arms, bounds), compiled, gamma = batch, kernels(), _gamma(asked)
    if how == "bound":
        return precision.inverse.search_many(batch, theta, radius)
    is_lacking = (how == "draw" and asked.direction is None) or (how == "gap" and gamma is None)
    if compiled is None or how is None or is_lacking:
        return None
    means, found = np.empty(len(arms.array)), np.empty(len(bounds) - 1, dtype=np.intp)
    if how == "mean":
        return found if compiled.best_means(*arms, theta, bounds, means, found) else None
    if not compiled.finite_means(*arms, theta, precision.inverse.shift, radius, means):
        return None
    if how == "draw":
        compiled.best_of_each(*arms, means, bounds, asked.direction, radius, found)
    else:
        compiled.pick_from_each(means, bounds, gamma, random.random(len(found)), found)
    return found


def chances_many(asked: Question, batch: Batch) -> Vector | None:
    """The rule's probabilities for the arms of many sets; None if it has to be asked, for each set.

    NaN marks a set that has to be asked separately.
    """
    rule, (arms, bounds) = asked.rule, batch
    if rule._has_own_probabilities or (rule.draws and rule.chooses_by != "gap"):
        return None
    if rule.chooses_by == "gap":
        compiled, gamma, means = kernels(), _gamma(asked), np.empty(len(arms.array))
        if compiled is None or gamma is None:
            return None
        shift = asked.precision.inverse.shift
        if not compiled.finite_means(*arms, asked.theta, shift, asked.radius, means):
            return None
        return inverse_gaps_of_many(means, bounds, gamma)
    found = search_many(asked, batch, np.random.default_rng(0))
    if found is None:
        return None
    counts, is_found = np.diff(bounds), found >= 0
    chances = np.repeat(np.where(is_found, 0.0, np.nan), counts)
    chances[(bounds[:-1] + found)[is_found]] = 1.0
    return chances


def aim_of(asked: Question, *, rounding: float = 0.0) -> Aim | None:
    """What the rule maximises; None if it needs all arms, or if its draw is not made yet.

    With an aim, a cheap bound excludes most arms of a large catalogue (``explore.screen``).
    """
    how, theta, radius = asked.rule.chooses_by, asked.theta, asked.radius
    if how == "bound":
        return Aim(theta, radius, rounding)
    if how == "mean":
        return Aim(theta, 0.0, rounding)
    if how == "draw" and asked.direction is not None:
        return Aim(theta + radius * asked.direction, 0.0, rounding)
    return None


def _gamma(asked: Question) -> float | None:
    return asked.rule.gap_factor(asked.precision.sketch.row_stats.count)
