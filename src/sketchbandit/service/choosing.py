"""Which arms a policy would show, each with its probability."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sketchbandit.errors import InputError, InputTypeError
from sketchbandit.explore import Scores
from sketchbandit.service.problems import Invalid
from sketchbandit.service.vectors import ArmSet


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


def choose(policy: Any, arms: ArmSet, top: int, random: np.random.Generator) -> list[Pick]:
    """The arm to play, and ``top`` in all; nothing is changed, the policy's generator neither."""
    if top > len(arms):
        raise Invalid(f"top is {top}, but there are {len(arms)} arms")
    try:
        if not policy.explore.exact_probabilities:
            return _without_probabilities(policy, arms, top, random)
        if top == 1:
            chosen = [policy.choose(arms.matrix, random=random)]
        else:
            chosen = policy.slate(arms.matrix, top, random=random)
    except (InputError, InputTypeError) as error:
        raise Invalid(str(error)) from error
    return [Pick(c.index, arms.name(c.index), c.score, c.mean, c.width, c.probability) for c in chosen]


def _without_probabilities(policy: Any, arms: ArmSet, top: int, random: np.random.Generator) -> list[Pick]:
    """To know them would take much longer than to choose."""
    if top == 1:
        chosen = [policy.select(arms.matrix, random=random)]
    else:
        chosen = policy.top(arms.matrix, top, random=random).tolist()
    rows = arms.matrix[chosen]
    means, widths, radius = policy.mean(rows).tolist(), policy.width(rows).tolist(), policy.radius
    return [
        Pick(index, arms.name(index), mean + radius * width, mean, width, 0.0)
        for index, mean, width in zip(chosen, means, widths, strict=True)
    ]


def chances(scores: Scores, chosen: list[int]) -> list[float]:
    """The probability of each arm that was chosen, given those before it."""
    left = np.arange(len(scores.means))
    found: list[float] = []
    for index in chosen:
        place = int(np.searchsorted(left, index))
        found.append(float(_among(scores, left).probabilities()[place]))
        left = np.delete(left, place)
    return found


def _among(scores: Scores, left: Any) -> Scores:
    """The scores of those that are left."""
    if len(left) == len(scores.means) or scores.covariance is None or scores.first_copies is None:
        return scores
    _, first, of = np.unique(scores.first_copies[left], return_index=True, return_inverse=True)
    covariance = scores.covariance[np.ix_(left, left)]
    return replace(scores, means=scores.means[left], covariance=covariance, first_copies=first[of])
