"""Chance around a rule: the share that is drawn uniformly, and one place after another."""

import operator
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from sketchbandit.errors import InputError, InputTypeError
from sketchbandit.explore import Candidates, Explore
from sketchbandit.explore.base import chances_of, with_share
from sketchbandit.explore.candidates import Left
from sketchbandit.sketch.columns import ColumnNames


class Place(NamedTuple):
    """An arm at its place in a ranking."""

    index: int  # type: ignore[assignment]  # tuples have a method of that name
    probability: Callable[[], float]
    """With which it has come there, given the places before."""


def check_generator(random: Any) -> np.random.Generator:
    """The caller's generator."""
    if not isinstance(random, np.random.Generator):
        raise InputTypeError(
            f"random is a {type(random).__name__}; give a generator: numpy.random.default_rng(seed)"
        )
    return random


@contextmanager
def unless_refused(random: np.random.Generator, columns: ColumnNames) -> Iterator[None]:
    """Generator and column names go back to what they were if what is asked for cannot be done."""
    state, names = random.bit_generator.state, columns.names
    try:
        yield
    except BaseException:
        random.bit_generator.state, columns.names = state, names
        raise


def best_of(candidates: Candidates, count: int, rule: Explore, random: np.random.Generator) -> list[int]:
    """What a rule has answered, if it is ``count`` different arms."""
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
    """What the rule chose, or, in a share of all choices, any of ``count`` arms."""
    if not share:
        return own
    drawn = random.random()
    return own if drawn >= share else min(int(drawn / share * count), count - 1)


def chance_of(rule: Explore, candidates: Candidates, index: int, own: int) -> float:
    """The probability with which an arm is chosen, where the rule's own choice was ``own``."""
    share = rule.uniform_share
    if rule.draws:
        return float(with_share(chances_of(rule, candidates), share)[index])
    return share / len(candidates) + (1.0 - share) * (index == own)


def ranked(
    candidates: Candidates,
    count: int,
    rule: Explore,
    best: Callable[[Candidates, int], list[int]],
    random: np.random.Generator,
) -> Iterator[Place]:
    """Arms one after another, each by the rule, or uniformly, among those that are left.

    ``best``: the first choices of the rule among some arms.
    """
    if not rule.is_random:
        for index in best(candidates, count):
            yield Place(index, lambda: 1.0)
        return
    left, among, shown = np.arange(len(candidates)), candidates, set[int]()
    order = iter(() if rule.draws else best(candidates, count))
    first = next(order, -1)
    for _ in range(count):
        if rule.draws:
            (own,) = best(among, 1)
        else:
            while first in shown:
                first = next(order)
            own = int(np.searchsorted(left, first))
        place = shared_with_all(own, len(left), rule.uniform_share, random)
        shown.add(int(left[place]))
        yield Place(int(left[place]), partial(chance_of, rule, among, place, own))
        left = np.delete(left, place)
        among = Left(candidates, left)
