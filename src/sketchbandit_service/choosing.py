"""Lets a policy choose the arms to show, each with its propensity, and writes rankings as JSON."""

from collections.abc import Iterator
from json.encoder import encode_basestring as quoted  # not for ASCII alone: UTF-8 is the shorter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sketchbandit.errors import InputError, InputTypeError
from sketchbandit.explore import Scores
from sketchbandit_service.offered import Offered
from sketchbandit_service.pacing import politely
from sketchbandit_service.problems import Invalid
from sketchbandit_service.types import AnyPolicy

_MOST_RANKED = 10_000_000
_SLICE = 500  # arms written at once; they take about a millisecond


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


def choose(policy: AnyPolicy, offered: Offered, top: int, random: np.random.Generator) -> Ranking:
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


def ranking_json(ranking: Ranking, offered: Offered) -> str:
    """One object per arm, in order. Long rankings are written in slices, so other threads get a turn."""
    starts = range(0, len(ranking.index), _SLICE)
    slices = starts if len(starts) == 1 else politely(starts)
    return f"[{','.join(_some(ranking, offered, at) for at in slices)}]"


def _some(ranking: Ranking, offered: Offered, start: int) -> str:
    rows = zip(*(column[start : start + _SLICE].tolist() for column in ranking), strict=True)
    return ",".join(
        f'{{"position":{position},"index":{index},"arm":{_name(offered.name(index))},"score":{score!r},'
        f'"mean":{mean!r},"propensity":{propensity or "null"}}}'
        for position, (index, score, mean, _, propensity) in enumerate(rows, start)
    )


def _name(name: str | None) -> str:
    return "null" if name is None else quoted(name)
