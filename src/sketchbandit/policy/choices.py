"""Arms of one model, as a chooser sees them: an array or a sparse matrix, or the arms of a catalogue."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from sketchbandit.arms import Arms, Offer, OfferedArms
from sketchbandit.array_api import is_foreign, library_of
from sketchbandit.arrays import AnyArray, Vector
from sketchbandit.explore import ArmCandidates, Candidates, Explore
from sketchbandit.explore.screen import best_of_each, can_share, screened
from sketchbandit.explore.search import Question, aim_of
from sketchbandit.features import Features
from sketchbandit.policy.chooser import Choices, Numbers, Random
from sketchbandit.policy.posterior import Posterior
from sketchbandit.policy.propensity import best_of

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


def given_back(values: Vector, arms: Any) -> Any:
    """Values in the array library, and on the device, that the arms came from."""
    library = arms.arms.library if isinstance(arms, Offer) else library_of(arms) if is_foreign(arms) else None
    return values if library is None or library.on_host else library.put(values, library.widest)
