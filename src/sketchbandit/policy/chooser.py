"""How a rule chooses among arms: one, a ranking, many requests, with the uniform share and propensities."""

import operator
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, SupportsIndex

import numpy as np

from sketchbandit.arms import Arms, Offer, OfferedArms
from sketchbandit.array_api import is_foreign, library_of
from sketchbandit.arrays import AnyArray, Scalars, Vector
from sketchbandit.errors import FileError, InputError, InputTypeError
from sketchbandit.explore import ArmCandidates, Candidates, Choice, Explore, Ranking, Scores, upper_bound
from sketchbandit.explore.base import mixed
from sketchbandit.explore.candidates import Left
from sketchbandit.explore.screen import best_of_each, can_share, screened
from sketchbandit.explore.search import Question, aim_of
from sketchbandit.features import Features
from sketchbandit.policy.posterior import Posterior
from sketchbandit.sketch.checks import check_count
from sketchbandit.sketch.row_input import ColumnNames


class Places(NamedTuple):
    """Arms in the order of a ranking."""

    index: AnyArray  # type: ignore[assignment]  # tuples have a method of that name
    chances: Vector
    """The probability of each arm at its place, given the places before; 0 if not asked for."""

    @classmethod
    def of(cls, indices: list[int], chances: list[float]) -> "Places":
        """As arrays."""
        return cls(np.array(indices, dtype=np.intp), np.array(chances))


def check_generator(random: object) -> np.random.Generator:
    """Check the generator that the caller gave."""
    if not isinstance(random, np.random.Generator):
        raise InputTypeError(
            f"random is a {type(random).__name__}; give a generator: numpy.random.default_rng(seed)"
        )
    return random


def best_of(candidates: Candidates, count: int, rule: Explore, random: np.random.Generator) -> list[int]:
    """The choice of a rule. Raises unless it is ``count`` different arms."""
    answer: Iterable[SupportsIndex] = rule.choose(candidates, count, random)
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


def placed(order: list[int], arms: int, share: float, random: np.random.Generator) -> Places:
    """The arms in ``order``, except for the share of places that is drawn uniformly."""
    count = len(order)
    if not share:
        return Places.of(order, [1.0] * count)
    indices: list[int] = []
    chances: list[float] = []
    left = list(range(arms))
    where = left.copy()  # the place of an arm in ``left``; -1: it was chosen
    ahead = iter(order)
    own = next(ahead)
    while len(indices) < count:
        while where[own] < 0:
            own = next(ahead)
        drawn = random.random()
        index = own if drawn >= share else left[min(int(drawn / share * len(left)), len(left) - 1)]
        indices.append(index)
        chances.append(share / len(left) + (1.0 - share) * (index == own))
        at, last = where[index], left.pop()
        if at < len(left):  # the last arm moves to the free place
            left[at], where[last] = last, at
        where[index] = -1
    return Places.of(indices, chances)


def _drawn_one_by_one(
    candidates: Candidates,
    count: int,
    rule: Explore,
    random: np.random.Generator,
    *,
    with_chances: bool,
) -> Places:
    """Every place goes to a draw of the rule, or to a uniform one, among the arms left."""
    left, among = np.arange(len(candidates)), candidates
    indices: list[int] = []
    chances: list[float] = []
    for _ in range(count):
        (own,) = best_of(among, 1, rule, random)
        at = shared_with_all(own, len(left), rule.uniform_share, random)
        indices.append(int(left[at]))
        chances.append(Scores.of(among, rule).propensity(at) if with_chances else 0.0)
        left = np.delete(left, at)
        if len(indices) < count:
            among = Left(candidates, left)
    return Places.of(indices, chances)


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

    noun = "arms"

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
            chance = Scores.of(candidates, self.rule).propensity(index)
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

    def places(self, choices: Choices, k: int, random: Random, *, with_chances: bool) -> Places:
        """``k`` choices, best first. If the rule draws, every place is drawn among the choices left."""
        wanted, rule = check_count("k", k, at_least=1), self.rule
        if wanted > len(choices):
            raise InputError(f"k is {k}, but there are {len(choices)} {choices.noun}")
        if wanted == 1:
            (own,) = choices.best(1, rule, random)
            index = self.shared(own, len(choices), random)
            if not with_chances:
                return Places.of([index], [0.0])
            if rule.draws:
                return Places.of([index], [self.scores(choices).propensity(index)])
            return Places.of([index], [mixed(float(index == own), self.share, len(choices))])
        if rule.draws:
            return _drawn_one_by_one(choices.candidates(), wanted, rule, random, with_chances=with_chances)
        return placed(choices.best(wanted, rule, random), len(choices), self.share, random)

    def rank(self, choices: Choices, k: int, random: Random, *, with_chances: bool) -> Ranking:
        """The same, with the numbers of each."""
        places = self.places(choices, k, random, with_chances=with_chances)
        return Ranking(*places, *choices.numbers(places.index))

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


_NUMBERS_ON_HOST = 1 << 23  # of arms that are brought to the host at a time
_FEW_ARMS = 2_000  # up to so many arms of a catalogue have their probabilities computed on the host
_MOST_PICKED = 0.5  # share of all arms: if more are ranked, their numbers are taken from those of all


class ArmChoices(Choices):
    """Arms in the memory of the host. ``direction`` is the draw that a batch of requests shares."""

    def __init__(self, posterior: Posterior, arms: Arms, direction: Vector | None = None) -> None:
        self._posterior, self._arms, self._direction = posterior, arms, direction
        self._candidates: ArmCandidates | None = None

    def __len__(self) -> int:
        return len(self._arms)

    def candidates(self) -> ArmCandidates:
        """The arms as a rule sees them."""
        if self._candidates is None:
            self._candidates = self._posterior.candidates(self._arms, self._direction)
        return self._candidates

    def best(self, count: int, rule: Explore, random: Random) -> list[int]:
        """The choice of the rule; for one of dense arms in compiled calls, if that is possible."""
        view = self._arms.view if count == 1 else None
        own = None if view is None else self._posterior.search(view, rule, random, self._direction)
        return super().best(count, rule, random) if own is None else [own]

    def numbers(self, indices: AnyArray) -> Numbers:
        """Mean, width and score of some arms, computed for these alone unless they are many."""
        known, are_many = self._candidates, len(indices) > _MOST_PICKED * len(self)
        if known is not None and are_many and self._arms.view is not None:
            width = known.widths()[indices]
            score = known.means[indices] + known.radius * width + known.baseline
            return Numbers(known.rewards[indices], width, score)
        some = self._posterior.candidates(self._arms.some(indices))
        width = some.widths()
        return Numbers(some.rewards, width, some.means + some.radius * width + some.baseline)


class CatalogueChoices(Choices):
    """Arms of a catalogue: a cheap bound excludes most of them, if the rule allows it."""

    def __init__(
        self, posterior: Posterior, features: Features, arms: OfferedArms, direction: Vector | None = None
    ) -> None:
        self._posterior, self._features, self._arms = posterior, features, arms
        self._direction = direction
        self._candidates: Candidates | None = None

    def __len__(self) -> int:
        return len(self._arms)

    def candidates(self) -> Candidates:
        """All arms. The arms of a small catalogue are copied to the host: some rules compare all pairs."""
        if self._candidates is None:
            arms: Arms = self._arms
            if len(self) <= _FEW_ARMS:
                arms = self._features.read(self._arms.raw_rows(slice(None)))
            self._candidates = self._posterior.candidates(arms, self._direction)
        return self._candidates

    def best(self, count: int, rule: Explore, random: Random) -> list[int]:
        """The choice of the rule, scored in float64 among the arms that the bound leaves."""
        precision, arms, direction = self._posterior.precision, self._arms, self._direction
        asked = self._posterior.ask(rule, direction)
        if asked is not None and rule.chooses_by == "draw" and direction is None:
            direction = precision.sample_direction(random)
            asked = asked._replace(direction=direction)
        aim = None if asked is None else aim_of(asked, rounding=rounding_of(self._features))
        if aim is None:
            return best_of(self.candidates(), count, rule, random)  # those of ``probabilities``
        if not aim.bonus and not aim.vector.any():  # all scores are 0
            return list(range(count))
        if not arms.is_linear and (aim.rounding or arms.library.widest != arms.library.xp.float64):
            found = np.arange(len(arms))  # a difference from the mean of a column may lose all its digits
        else:
            found, is_settled = screened(arms, aim, precision, count)
            if is_settled:
                return [int(index) for index in found[:count]]
        return self._best_on_host(found, count, rule, random, direction)

    def _best_on_host(
        self, found: AnyArray, count: int, rule: Explore, random: Random, direction: Vector | None
    ) -> list[int]:
        """The best of some arms by index, scored as numpy arms are, a piece of them at a time."""
        step = max(count, _NUMBERS_ON_HOST // max(1, self._arms.dim))
        best: AnyArray = found[:0]
        for start in range(0, len(found), step):
            some = np.sort(np.concatenate([best, found[start : start + step]]))  # ties go to the lowest
            best = some[self._some(some, direction).best(min(count, len(some)), rule, random)]
        return [int(index) for index in best]

    def _some(self, indices: AnyArray, direction: Vector | None = None) -> ArmChoices:
        """Some of the arms, on the host."""
        return ArmChoices(self._posterior, self._features.read(self._arms.raw_rows(indices)), direction)

    def candidate(self, index: int) -> tuple[Candidates, int]:
        """Candidates with this arm alone."""
        return self._some(np.array([index])).candidates(), 0

    def numbers(self, indices: AnyArray) -> Numbers:
        """Mean, width and score of some arms, computed for these alone."""
        return self._some(indices).numbers(np.arange(len(indices)))


def choices_of(
    posterior: Posterior, features: Features, arms: Arms, direction: Vector | None = None
) -> Choices:
    """Arms that ``features`` has read."""
    if isinstance(arms, OfferedArms):
        return CatalogueChoices(posterior, features, arms, direction)
    return ArmChoices(posterior, arms, direction)


def rounding_of(features: Features) -> float:
    """The relative rounding of the features before they are scored."""
    return 0.0 if features.dtype == np.float64 else float(np.finfo(features.dtype).eps)


def best_of_offers(asked: Question, features: Features, offers: Sequence[Arms]) -> AnyArray | None:
    """The best arm of every offer of one catalogue, -1 if scores are close; None: choose one by one."""
    arms = [one for one in offers if isinstance(one, OfferedArms)]
    aim = aim_of(asked, rounding=rounding_of(features))
    if aim is None or len(arms) < len(offers) or not can_share(arms, aim, asked.precision):
        return None
    return best_of_each(arms, aim, asked.precision)


def given_back(values: Vector, arms: object) -> Any:
    """Values in the array library, and on the device, that the arms came from."""
    library = arms.arms.library if isinstance(arms, Offer) else library_of(arms) if is_foreign(arms) else None
    return values if library is None or library.on_host else library.put(values, library.widest)


def restored_generator(state: Any) -> np.random.Generator:
    """The generator that continues from a saved state."""
    made = np.random.PCG64(0)
    try:
        made.state = state
    except (TypeError, ValueError, KeyError, OverflowError) as error:
        raise FileError(f"the file is damaged: the state of the generator makes no sense: {error}") from error
    return np.random.Generator(made)
