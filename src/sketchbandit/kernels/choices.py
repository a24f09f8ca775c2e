# mypy: allow-untyped-defs, allow-untyped-calls
"""Choices that follow from means alone, or from means and one draw."""

from math import isfinite, sqrt

import numpy as np

from sketchbandit.kernels.backend import CLOSE
from sketchbandit.kernels.compiling import compiled
from sketchbandit.kernels.lens import dot_and_norm_at, inner_dim
from sketchbandit.kernels.sums import need


@compiled
def finite_means(arms, lens, theta, shift, radius, means):
    """The means of all arms; whether they, and radius·width, are finite."""
    need(inner_dim(arms, lens) == len(theta) and len(means) >= len(arms))
    for k in range(len(arms)):
        mean, norm_sq = dot_and_norm_at(arms, lens, k, theta)
        if not isfinite(abs(mean) + radius * sqrt(norm_sq / shift)):
            return False
        means[k] = mean
    return True


@compiled
def _largest_between(means, start, stop):
    best = start
    for k in range(start + 1, stop):
        if means[k] > means[best]:
            best = k
    return best


@compiled
def _need_filled_sets(arms, bounds, found):
    """Whether the sets lie one after the other among so many arms, none is empty, and each has its answer."""
    need(len(bounds) == len(found) + 1 and bounds[0] >= 0 and bounds[-1] <= arms)
    for i in range(len(found)):
        need(bounds[i] < bounds[i + 1])


@compiled
def best_mean(arms, lens, theta, means):
    """The arm of the largest mean; -1 if one is not finite."""
    if not finite_means(arms, lens, theta, 1.0, 1.0, means):
        return -1
    return _largest_between(means, 0, len(arms))


@compiled
def best_means(arms, lens, theta, bounds, means, found):
    """The arm of the largest mean of each of many sets; False if a mean is not finite."""
    _need_filled_sets(len(arms), bounds, found)
    if not finite_means(arms, lens, theta, 1.0, 1.0, means):
        return False
    for i in range(len(found)):
        found[i] = _largest_between(means, bounds[i], bounds[i + 1]) - bounds[i]
    return True


@compiled
def pick_by_gap(means, gamma, drawn):
    """The arm that a uniform draw falls on, with chances 1 / (K + gamma·gap), the rest to the best arm."""
    best = _largest_between(means, 0, len(means))
    chances = np.empty(len(means))
    others = 0.0
    for k in range(len(means)):
        if k != best:
            chances[k] = 1.0 / (len(means) + gamma * (means[best] - means[k]))
            others += chances[k]
    chances[best] = max(0.0, 1.0 - others)
    total, last = 0.0, best
    for k in range(len(means)):
        if chances[k] > 0.0:
            last = k
        total += chances[k]
        if drawn < total:
            return k
    return last


@compiled
def pick_from_each(means, bounds, gamma, drawn, found):
    """The same for many sets, of which the i-th has the arms bounds[i] to bounds[i + 1]."""
    _need_filled_sets(len(means), bounds, found)
    need(len(drawn) == len(found))
    for i in range(len(found)):
        found[i] = pick_by_gap(means[bounds[i] : bounds[i + 1]], gamma, drawn[i])


@compiled
def best_along(arms, lens, means, direction, radius):
    """The arm i of the largest mean + radius·x'direction; -1 - i if an earlier one may be its copy.

    The scores take the place of the means.
    """
    need(inner_dim(arms, lens) == len(direction) and len(means) == len(arms))
    return _best_between(arms, lens, means, direction, radius, 0, len(arms))


@compiled
def best_of_each(arms, lens, means, bounds, direction, radius, found):
    """The same for many sets, of which the i-th has the arms bounds[i] to bounds[i + 1]."""
    need(inner_dim(arms, lens) == len(direction) and len(means) == len(arms))
    _need_filled_sets(len(arms), bounds, found)
    for i in range(len(found)):
        best = _best_between(arms, lens, means, direction, radius, bounds[i], bounds[i + 1])
        found[i] = best - bounds[i] if best >= 0 else -1


@compiled
def _best_between(arms, lens, means, direction, radius, start, stop):
    best, score, largest = start, -np.inf, 0.0
    for k in range(start, stop):
        value = means[k] + radius * dot_and_norm_at(arms, lens, k, direction)[0]
        means[k] = value
        largest = max(largest, abs(value))
        if value > score:
            best, score = k, value
    for k in range(start, best):
        if means[k] >= score - CLOSE * largest:
            return -1 - best
    return best
