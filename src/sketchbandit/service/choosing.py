"""Which arms a policy would show, each with its probability."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from sketchbandit.errors import InputError, InputTypeError
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


def choose(
    policy: Any, arms: ArmSet, top: int, exploration: float, random: np.random.Generator
) -> list[Pick]:
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
        widths = policy.width(ranked).tolist()
    except (InputError, InputTypeError) as error:
        raise Invalid(str(error)) from error
    propensity = exploration / count + (1.0 - exploration) * (index == best[0])
    named = [None if arms.ids is None else arms.ids[i] for i in ranking]
    return [Pick(*found, propensity) for found in zip(ranking, named, scores, means, widths, strict=True)]
