"""Chance around a rule: the uniform share of choices, and rankings drawn place by place."""

import operator
from typing import Any, NamedTuple

import numpy as np

from sketchbandit.errors import InputError, InputTypeError
from sketchbandit.explore import Candidates, Explore, Scores
from sketchbandit.explore.base import mixed
from sketchbandit.explore.candidates import Left


class Places(NamedTuple):
    """Arms in the order of a ranking."""

    indices: list[int]
    chances: list[float]
    """The probability of each arm at its place, given the places before; 0 if not asked for."""


def check_generator(random: Any) -> np.random.Generator:
    """Check the generator that the caller gave."""
    if not isinstance(random, np.random.Generator):
        raise InputTypeError(
            f"random is a {type(random).__name__}; give a generator: numpy.random.default_rng(seed)"
        )
    return random


def best_of(candidates: Candidates, count: int, rule: Explore, random: np.random.Generator) -> list[int]:
    """The choice of a rule. Raises unless it is ``count`` different arms."""
    answer: Any = rule.choose(candidates, count, random)
    try:
        chosen = [operator.index(index) for index in answer]
    except TypeError:
        chosen = []
    arms = len(candidates)
    if len(set(chosen)) != count or len(chosen) != count or not all(0 <= i < arms for i in chosen):
        raise InputError(
            f"{type(rule).__name__}.choose must return {count} different indices from 0 to "
            f"{arms - 1}, as a list, got {answer!r}"
        )
    return chosen


def shared_with_all(own: int, count: int, share: float, random: np.random.Generator) -> int:
    """The rule's own choice, or, with probability ``share``, one of all ``count`` arms."""
    if not share:
        return own
    drawn = random.random()
    return own if drawn >= share else min(int(drawn / share * count), count - 1)


def chance_of(rule: Explore, candidates: Candidates, index: int, own: int) -> float:
    """The probability that an arm is chosen, if the rule's own choice is ``own``."""
    share = rule.uniform_share
    if rule.draws:
        return Scores.of(candidates, rule).propensity(index)
    return mixed(float(index == own), share, len(candidates))


def ranked(
    candidates: Candidates,
    count: int,
    rule: Explore,
    random: np.random.Generator,
    *,
    with_chances: bool,
) -> Places:
    """Rank arms: every place goes to the rule's choice, or to a uniform draw, among the arms left."""
    if rule.draws:
        return _drawn_one_by_one(candidates, count, rule, random, with_chances=with_chances)
    return placed(best_of(candidates, count, rule, random), len(candidates), rule.uniform_share, random)


def placed(order: list[int], arms: int, share: float, random: np.random.Generator) -> Places:
    """The arms in ``order``, except for the share of places that is drawn uniformly."""
    count = len(order)
    if not share:
        return Places(order, [1.0] * count)
    places = Places([], [])
    left = list(range(arms))
    where = left.copy()  # the place of an arm in ``left``; -1: it was chosen
    ahead = iter(order)
    own = next(ahead)
    while len(places.indices) < count:
        while where[own] < 0:
            own = next(ahead)
        drawn = random.random()
        index = own if drawn >= share else left[min(int(drawn / share * len(left)), len(left) - 1)]
        places.indices.append(index)
        places.chances.append(share / len(left) + (1.0 - share) * (index == own))
        at, last = where[index], left.pop()
        if at < len(left):  # the last arm moves to the free place
            left[at], where[last] = last, at
        where[index] = -1
    return places


def _drawn_one_by_one(
    candidates: Candidates,
    count: int,
    rule: Explore,
    random: np.random.Generator,
    *,
    with_chances: bool,
) -> Places:
    left, among, places = np.arange(len(candidates)), candidates, Places([], [])
    for _ in range(count):
        (own,) = best_of(among, 1, rule, random)
        at = shared_with_all(own, len(left), rule.uniform_share, random)
        places.indices.append(int(left[at]))
        places.chances.append(chance_of(rule, among, at, own) if with_chances else 0.0)
        left = np.delete(left, at)
        if len(places.indices) < count:
            among = Left(candidates, left)
    return places
