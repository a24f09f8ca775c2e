"""Policies by name: which there are, what they take, what to call them in a figure."""

import inspect
from functools import lru_cache
from typing import Any

from sketchbandit.environment import GaussianArms
from sketchbandit.errors import InputError
from sketchbandit.experiments.specs import Spec, Value, spec
from sketchbandit.explore import DEFAULT_BETA
from sketchbandit.playing import play
from sketchbandit.policy import named
from sketchbandit.policy.named import parameters, recipe

TUNED = ("ridge", "beta")
ROUNDS = "rounds"
"""As a horizon: as many as are played."""


def check(policy: Spec) -> None:
    """Refuse an unknown policy, an unknown setting or an impossible value, before any work starts."""
    try:  # which values are possible does not depend on the dimension, and 2 costs nothing
        build(policy, 2, rounds=1)
    except (TypeError, ValueError) as error:
        raise InputError(f"{policy}: {error}") from error


def is_given(policy: Spec) -> bool:
    """Whether the policy says its ridge or its beta itself, and so is not tuned."""
    return any(policy.get(name) is not None for name in TUNED)


def with_defaults(policy: Spec) -> Spec:
    """The same with ridge and beta given."""
    ridge = inspect.signature(recipe(policy.name).make).parameters["ridge"].default
    return spec(policy.name, **{"ridge": ridge, "beta": DEFAULT_BETA, **dict(policy.settings)})


def build(policy: Spec, dim: int, seed: int = 0, rounds: int | None = None) -> Any:
    """The policy; ``seed`` is used where it draws something and was given no seed.

    ``horizon=rounds`` stands for as many as are played.
    """
    settings = dict(policy.settings)
    if "seed" in parameters(policy.name):
        settings.setdefault("seed", seed)
    if settings.get("horizon") == ROUNDS:
        if rounds is None:
            raise InputError(f"{policy} needs to know how many rounds are played")
        settings["horizon"] = rounds
    return named.build(policy.name, dim, **settings)


def family(policy: Spec) -> str:
    """What the paper calls the method."""
    return recipe(policy.name).title(dict(policy.settings))


def label(policy: Spec) -> str:
    """The method with what tells it from its siblings, for a figure."""
    signs = {"size": recipe(policy.name).size_sign, "epsilon": "ε", "ridge": "λ", "beta": "β"}
    shown = sorted(
        ((k, v) for k, v in policy.settings if k != "compensation" and v != ROUNDS),
        key=lambda setting: (list(signs).index(setting[0]) if setting[0] in signs else 9, setting[0]),
    )
    return ", ".join([family(policy), *(f"{signs.get(k, k)} = {v}" for k, v in shown)])


@lru_cache(maxsize=64)
def warm_up(name: str, dtype: str) -> None:
    """Play a little, so that compiling the loops of a round is not timed: as few rows, and as a matrix."""
    for dim, size in ((24, 4), (8, 6)):
        small: dict[str, Value] = {"size": size, "epsilon": 2, "dtype": dtype}
        settings = {key: value for key, value in small.items() if key in parameters(name)}
        for _ in play(build(spec(name, **settings), dim), GaussianArms(dim=dim, arms=8), 60):
            pass
