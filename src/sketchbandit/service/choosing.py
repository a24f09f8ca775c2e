"""Which arm a policy would play, with what probability, and which would come next."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from sketchbandit.errors import InputError, InputTypeError
from sketchbandit.service.problems import Invalid
from sketchbandit.service.vectors import ArmSet


@dataclass(frozen=True, slots=True)
class Ranked:
    """An arm that was ranked high."""

    index: int
    arm: str | None
    score: float


class Choice(NamedTuple):
    """What the policy makes of a set of arms."""

    score: float
    mean: float
    propensity: float
    ranking: list[Ranked]
    """The arm to play first."""


def choose(policy: Any, arms: ArmSet, top: int, exploration: float, random: np.random.Generator) -> Choice:
    """The arm to play, and ``top`` in all; nothing is changed."""
    count = len(arms)
    if top > count:
        raise Invalid(f"top is {top}, but there are {count} arms")
    try:
        best = [policy.select(arms.matrix)] if top == 1 else policy.top(arms.matrix, top).tolist()
        index = best[0]
        if exploration and random.random() < exploration:
            index = int(random.integers(count))
        ranking = [index, *(other for other in best if other != index)][:top]
        ranked = arms.matrix[ranking]
        scores, means = policy.ucb(ranked).tolist(), policy.mean(ranked).tolist()
    except (InputError, InputTypeError) as error:
        raise Invalid(str(error)) from error
    propensity = exploration / count + (1.0 - exploration) * (index == best[0])
    named = [None if arms.ids is None else arms.ids[i] for i in ranking]
    return Choice(scores[0], means[0], propensity, list(map(Ranked, ranking, named, scores)))
