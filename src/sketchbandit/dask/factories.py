"""Factories: the user's functions that make a fresh sketch or policy for each partition."""

import inspect
from collections.abc import Callable
from typing import Any

from sketchbandit.errors import InputError, InputTypeError

Factory = Callable[..., Any]
"""A function with no argument, with the length of a row, or with that and the number of the partition."""


def make(factory: Factory, dim: int, number: int, kind: Any, noun: str) -> Any:
    """Make a fresh object of a ``kind`` for a partition."""
    made = factory(*(dim, number)[: _arguments(factory)])
    if not isinstance(made, kind):
        raise InputTypeError(f"factory must make a fresh {noun}, but made {made!r}")
    if made.dim != dim:
        raise InputError(f"rows have length {dim}, but factory makes a {noun} for {made.dim}")
    return made


def check_factory(factory: Any) -> None:
    """Raise unless it can be called."""
    if not callable(factory):
        raise InputTypeError(f"factory must be callable, but is {factory!r}")


def _arguments(factory: Factory) -> int:
    """The number of arguments that it needs."""
    parameters = inspect.signature(factory).parameters.values()
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(p.kind in kinds and p.default is inspect.Parameter.empty for p in parameters)
