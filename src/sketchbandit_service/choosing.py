"""Lets a policy choose the arms to show, each with its propensity."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sketchbandit.errors import InputError, InputTypeError
from sketchbandit.explore import Scores
from sketchbandit_service.offered import Offered
from sketchbandit_service.problems import Invalid

_MOST_RANKED = 10_000_000


class Told(NamedTuple):
    """What is known of an arm to show."""

    index: int  # type: ignore[assignment]  # tuples have a method of that name
    score: float
    mean: float
    width: float
    propensity: float


class Ranking(NamedTuple):
    """Arms in the order in which they are shown, as arrays of equal length."""

    index: NDArray[np.intp]  # type: ignore[assignment]  # tuples have a method of that name
    score: NDArray[np.float64]
    mean: NDArray[np.float64]
    width: NDArray[np.float64]
    propensity: NDArray[np.float64]
    """The propensity given the arms before it. 0: not known."""

    def rows(self, count: int) -> list["Told"]:
        """The first ``count`` arms, one by one, as Python numbers."""
        return [Told(*row) for row in zip(*(column[:count].tolist() for column in self), strict=True)]


def choose(policy: Any, offered: Offered, top: int, random: np.random.Generator) -> Ranking:
    """Choose the arm to play, and ``top`` arms in all. Nothing is changed, not even the policy's generator.

    Propensities that must be sampled are left out: computing them takes much longer than choosing.
    """
    if top > len(offered):
        raise Invalid(f"top is {top}, but there are only {len(offered)} arms")
    if top > 1 and policy.explore.draws and top * len(offered) > _MOST_RANKED:
        raise Invalid(
            f"top is {top} among {len(offered)} arms: a rule that draws looks at all arms for each place, "
            f"and top times arms may be {_MOST_RANKED}; ask for fewer, or use ucb or epsilon-greedy"
        )
    asked, options = offered.question(policy)
    are_exact = policy.explore.exact_probabilities
    try:
        found = policy.rank(asked, top, random=random, probabilities=are_exact, **options)
    except (InputError, InputTypeError) as error:
        raise Invalid(str(error)) from error
    return Ranking(found.index, found.score, found.mean, found.width, found.probability)


def chances(scores: Scores, chosen: list[int]) -> Iterator[float]:
    """The propensity of each chosen arm, given those before it, for a rule that samples."""
    left = np.arange(len(scores))
    for index in chosen:
        place = int(np.searchsorted(left, index))
        yield scores.among(left).propensity(place)
        left = np.delete(left, place)
