"""How a rule chooses: among arms of one model, arms of a catalogue, or actions with a model each."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from sketchbandit.arrays import AnyArray, Scalars, Vector
from sketchbandit.explore import Candidates, Choice, Explore, Scores, upper_bound
from sketchbandit.explore.base import mixed
from sketchbandit.policy.files import restored_generator
from sketchbandit.policy.propensity import (
    Places,
    best_of,
    chance_of,
    check_generator,
    placed,
    ranked,
    shared_with_all,
)
from sketchbandit.sketch.checks import check_count
from sketchbandit.sketch.row_input import ColumnNames

Random = np.random.Generator

NEVER_USED = np.random.default_rng(0)
"""The generator of policies that draw nothing."""


class Numbers(NamedTuple):
    """What is known of some of the choices, as arrays of one length."""

    mean: Vector
    width: Vector
    score: Vector


class Choices(ABC):
    """What may be chosen now. A rule sees it as ``candidates``; there may be faster ways to the best."""

    @abstractmethod
    def __len__(self) -> int:
        """The number of arms, or actions."""

    @abstractmethod
    def candidates(self) -> Candidates:
        """All of them as a rule sees them, computed once. Raises unless all scores are finite."""

    def best(self, count: int, rule: Explore, random: Random) -> list[int]:
        """The choice of the rule: ``count`` different indices."""
        return best_of(self.candidates(), count, rule, random)

    def candidate(self, index: int) -> tuple[Candidates, int]:
        """Candidates that hold this choice, and its place among them."""
        return self.candidates(), index

    def numbers(self, indices: AnyArray) -> Numbers:
        """Mean, width and score of some of the choices."""
        return numbers_of(self.candidates(), indices)


def numbers_of(candidates: Candidates, indices: AnyArray) -> Numbers:
    """Mean, width and score of some candidates, one by one."""
    width = np.array([candidates.width(index) for index in indices.tolist()])
    radius = candidates.radius if isinstance(candidates.radius, float) else candidates.radius[indices]
    score = upper_bound(candidates.means[indices], radius, width) + candidates.baseline
    return Numbers(candidates.rewards[indices], width, score)


class Chooser:
    """An exploration rule, the uniform share of its choices, and the generator that it draws from."""

    def __init__(self, rule: Explore) -> None:
        self.random: Random = np.random.default_rng(rule.seed) if rule.is_random else NEVER_USED
        self._use(rule)

    def _use(self, rule: Explore) -> None:
        rule.bind()
        self.rule, self.share = rule, rule.uniform_share

    def explore_by(self, rule: Explore) -> None:
        """Use this rule from now on. The caller gives it away.

        The generator continues, unless the new rule has a seed.
        """
        if not rule.is_random:
            self.random = NEVER_USED
        elif rule.seed is not None or not self.rule.is_random:
            self.random = np.random.default_rng(rule.seed)
        self._use(rule)

    def generator(self, random: Random | None) -> Random:
        """The generator that the caller gave, checked; else the own one."""
        return self.random if random is None else check_generator(random)

    @property
    def leaves_no_trace(self) -> bool:
        """Whether choices draw nothing: then there is nothing to restore if one is refused."""
        return not (self.rule.draws or self.share)

    @property
    def shares_draw(self) -> bool:
        """Whether one draw serves all requests of a batch."""
        return self.rule.per == "batch" and self.rule.chooses_by == "draw"

    # -- one choice ---------------------------------------------------------------------------------

    def shared(self, own: int, count: int, random: Random) -> int:
        """The rule's own choice, or, with the probability of the uniform share, one of all."""
        return shared_with_all(own, count, self.share, random) if self.share else own

    def select(self, choices: Choices, random: Random) -> int:
        """The index of one choice."""
        (own,) = choices.best(1, self.rule, random)
        return self.shared(own, len(choices), random)

    def choose(self, choices: Choices, random: Random) -> Choice:
        """One choice with its propensity and numbers. What it took to compute them is kept for the update."""
        (own,) = choices.best(1, self.rule, random)
        index = self.shared(own, len(choices), random)
        if self.rule.draws:
            candidates, place = choices.candidates(), index
            chance = chance_of(self.rule, candidates, index, own)
        else:
            candidates, place = choices.candidate(index)
            chance = mixed(float(index == own), self.share, len(choices))
        chosen = _told(candidates, place, chance)
        candidates.keep()
        return chosen._replace(index=index)

    def scores(self, choices: Choices) -> Scores:
        """The scores of all choices as of now, from which probabilities can be computed later."""
        return Scores.of(choices.candidates(), self.rule)

    # -- a ranking ----------------------------------------------------------------------------------

    def places(self, choices: Choices, k: Any, random: Random, *, with_chances: bool) -> Places:
        """``k`` choices, best first. If the rule draws, every place is drawn among the choices left."""
        wanted, rule = check_count("k", k, at_least=1), self.rule
        if wanted == 1:
            (own,) = choices.best(1, rule, random)
            index = self.shared(own, len(choices), random)
            if not with_chances:
                return Places([index], [0.0])
            if rule.draws:
                return Places([index], [chance_of(rule, choices.candidates(), index, own)])
            return Places([index], [mixed(float(index == own), self.share, len(choices))])
        if rule.draws:
            return ranked(choices.candidates(), wanted, rule, random, with_chances=with_chances)
        return placed(choices.best(wanted, rule, random), len(choices), self.share, random)

    # -- refused calls, files -------------------------------------------------------------------------

    @contextmanager
    def undone_if_refused(self, random: Random, names: ColumnNames) -> Iterator[None]:
        """Restore the generator and the column names if the block raises."""
        state = None if self.leaves_no_trace else random.bit_generator.state
        known = names.names
        try:
            yield
        except BaseException:
            names.names = known
            if state is not None:
                random.bit_generator.state = state
            raise

    def dump(self) -> Scalars:
        """The state of the generator, as a file holds it."""
        return {"random": self.random.bit_generator.state} if self.rule.is_random else {}

    def restore(self, scalars: Scalars) -> None:
        """Restore what ``dump`` returned."""
        if "random" in scalars:
            self.random = restored_generator(scalars["random"])


def _told(candidates: Candidates, index: int, probability: float) -> Choice:
    width, mean, radius = candidates.width(index), float(candidates.rewards[index]), candidates.radius
    factor = radius if isinstance(radius, float) else radius.item(index)
    score = upper_bound(candidates.means.item(index), factor, width) + candidates.baseline
    return Choice(index, probability, mean, width, score)
