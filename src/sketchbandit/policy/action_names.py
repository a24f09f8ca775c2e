"""The names of actions, and the policy that each action gets a copy of."""

from collections.abc import Iterable
from numbers import Integral
from typing import Any

import numpy as np

from sketchbandit.errors import InputError, InputTypeError
from sketchbandit.policy.policy import Policy

Action = str | int

_NAMED = 5  # actions named in a message


def read_names(actions: Any) -> list[Action]:
    """Read a list of names, without repetition."""
    if isinstance(actions, (str, bytes)) or not isinstance(actions, Iterable):
        raise InputTypeError(f'actions must be a list of names such as ["a", "b"], got {actions!r:.80}')
    names = [check_action(action) for action in actions]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"action {twice!r} is there twice; name each action once")
    if not names:
        raise InputError("there are no actions to choose from: the list is empty")
    return names


def some_of(names: Iterable[Action]) -> str:
    """A few names, as a part of a message."""
    listed = list(names)
    more = f", ... ({len(listed)} in all)" if len(listed) > _NAMED else ""
    return f"there are {', '.join(map(repr, listed[:_NAMED]))}{more}" if listed else "there are none"


def check_action(action: Any) -> Action:
    """Check the name of an action: a string or an integer."""
    if isinstance(action, str):
        return str(action)
    if isinstance(action, (bool, np.bool_)) or not isinstance(action, Integral):
        raise InputTypeError(f"the name of an action must be a string or an integer, got {action!r:.80}")
    return int(action)


def made_by(factory: Any) -> Policy:
    """The fresh policy that a factory makes."""
    if isinstance(factory, Policy) or not callable(factory):
        raise InputTypeError(
            f"factory is a {type(factory).__name__}; give a function that returns a policy, for instance "
            "lambda: sketchbandit.adaptive(300)"
        )
    made = factory()
    if not isinstance(made, Policy):
        raise InputTypeError(f"factory returned a {type(made).__name__}; let it return a sketchbandit.Policy")
    if made.rounds or made.sketch.count:
        raise InputError(
            f"factory returned a policy of {made.rounds} rounds; let it return a fresh one at every call"
        )
    return made
