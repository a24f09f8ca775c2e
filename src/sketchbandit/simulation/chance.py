"""Chance: what a uniform choice earns. It is the reference of every comparison."""

from collections.abc import Iterator

import numpy as np

from sketchbandit.arrays import Scalars
from sketchbandit.environment import Environment
from sketchbandit.errors import InputError
from sketchbandit.simulation.specs import Spec, spec

UNIFORM = spec("uniform")
TITLE = "Uniform"


def is_chance(policy: Spec) -> bool:
    """Whether a contender is chance; it has no settings."""
    if policy.name == UNIFORM.name and policy != UNIFORM:
        raise InputError(f"{policy}: uniform chooses by chance and has no settings")
    return policy == UNIFORM


def measure(environment: Environment, rounds: int, points: int) -> Iterator[Scalars]:
    """Rows like those of a policy: the exact expectation over the choice, so that nothing is drawn.

    >>> from sketchbandit.environment import Classification
    >>> (row,) = measure(Classification(np.eye(4), [0, 1, 2, 3]), rounds=100, points=1)
    >>> row["reward"], row["regret"]
    (25.0, 75.0)
    """
    every = max(1, rounds // points)
    reward = regret = 0.0
    for number, drawn in enumerate(environment.rounds(rounds), start=1):
        arms = range(len(drawn.means))
        reward += float(np.mean([drawn.reward(arm) for arm in arms]))
        regret += float(np.mean([drawn.regret(arm) for arm in arms]))
        if number % every == 0 or number == rounds:
            held = dict.fromkeys(("bytes", "peak_bytes", "sketch_size", "sketch_rows"), 0)
            yield {
                "round": number,
                "reward": reward,
                "regret": regret,
                "seconds": 0.0,
                "warned": False,
                **held,
            }
