"""Named actions, and their places."""

from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from sketchbandit.errors import InputError, InputTypeError
from sketchbandit.evaluation.chunk import Action


def names_of(actions: Any) -> tuple[Action, ...] | None:
    """The names of the actions; None if they are features."""
    if actions is None or np.ndim(actions) != 1:
        return None
    names = tuple(name.item() if hasattr(name, "item") else name for name in actions)
    if not all(isinstance(name, (str, int)) for name in names):
        raise InputTypeError("actions are names, or an array of their features (actions, q)")
    if len(set(names)) < len(names):
        raise InputError(f"an action is there twice: {names}")
    return names


def indices_of(chosen: Any, names: tuple[Action, ...] | None) -> Any:
    """The indices of the chosen actions, which may be given by name."""
    values = np.asarray(chosen)
    if names is None or values.dtype.kind in "iuf":
        return values
    places = {name: place for place, name in enumerate(names)}
    for at, name in enumerate(values.tolist()):
        if name not in places:
            _refuse_name(at, name, names)
    return np.array([places[name] for name in values.tolist()], dtype=np.int64)


def place_of(at: int, name: Action, offered: Sequence[Action]) -> int:
    """The place of a name among the actions offered in decision ``at``."""
    if name not in offered:
        _refuse_name(at, name, offered)
    return list(offered).index(name)


def _refuse_name(at: int, name: Any, names: Sequence[Action]) -> NoReturn:
    raise InputError(f"decision {at}: {name!r} was chosen, and is none of the actions {tuple(names[:8])}")
