"""Which arms a policy would show, each with its probability."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from sketchbandit.errors import InputError, InputTypeError
from sketchbandit.explore import Scores
from sketchbandit.service.offered import Offered
from sketchbandit.service.problems import Invalid

_MOST_RANKED = 10_000_000


@dataclass(frozen=True, slots=True)
class Pick:
    """An arm to be shown."""

    index: int
    arm: str | None
    score: float
    mean: float
    width: float
    propensity: float
    """Given those before it; 0: not known."""


def choose(policy: Any, offered: Offered, top: int, random: np.random.Generator) -> list[Pick]:
    """The arm to play, and ``top`` in all; nothing is changed, the policy's generator neither."""
    if top > len(offered):
        raise Invalid(f"top is {top}, but there are {len(offered)} arms")
    if top > 1 and policy.explore.draws and top * len(offered) > _MOST_RANKED:
        raise Invalid(
            f"top is {top}, among {len(offered)} arms: where a rule draws, each place takes a look at all of "
            f"them, and top times arms may be {_MOST_RANKED}; ask for fewer, or use ucb or epsilon-greedy"
        )
    asked, options = offered.question()
    try:
        if not policy.explore.exact_probabilities:
            return _without_probabilities(policy, offered, top, random)
        if top == 1:
            chosen = [policy.choose(asked, random=random, **options)]
        else:
            chosen = policy.slate(asked, top, random=random, **options)
    except (InputError, InputTypeError) as error:
        raise Invalid(str(error)) from error
    places = [offered.index(choice) for choice in chosen]
    return [
        Pick(place, offered.name(place), choice.score, choice.mean, choice.width, choice.probability)
        for place, choice in zip(places, chosen, strict=True)
    ]


def _without_probabilities(
    policy: Any, offered: Offered, top: int, random: np.random.Generator
) -> list[Pick]:
    """To know them would take much longer than to choose."""
    asked, options = offered.question()
    if top == 1:
        chosen = [policy.select(asked, random=random, **options)]
    else:
        chosen = list(policy.top(asked, top, random=random, **options))
    places = [offered.index(one) for one in chosen]
    some, options = offered.question(places)
    told = (verb(some, **options).tolist() for verb in (policy.ucb, policy.mean, policy.width))
    return [
        Pick(place, offered.name(place), score, mean, width, 0.0)
        for place, score, mean, width in zip(places, *told, strict=True)
    ]


def chances(scores: Scores, chosen: list[int]) -> Iterator[float]:
    """The probability of each arm that was chosen, given those before it, where the rule samples them."""
    left = np.arange(len(scores.means))
    for index in chosen:
        place = int(np.searchsorted(left, index))
        yield float(scores.among(left).probabilities()[place])
        left = np.delete(left, place)
