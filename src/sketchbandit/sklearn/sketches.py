"""The sketch of an estimator, given by name or made by the user."""

import inspect
from collections.abc import Callable
from typing import Any

from sketchbandit.errors import FileError, InputError, InputTypeError
from sketchbandit.sketch import Sketch

Choice = str | Callable[[int], Sketch]


def make_sketch(
    choice: Any, dim: int, size: int | None, compensation: float, epsilon: float | None = None
) -> Sketch:
    """A fresh sketch for rows of length ``dim``; one that is named takes what it has a setting for.

    What is None is left to the sketch.
    """
    if callable(choice):
        made = choice(dim)
        if not isinstance(made, Sketch) or made.dim != dim or made.count:
            raise InputTypeError(
                f"sketch must make a fresh sketchbandit.Sketch of dim {dim}, but made {made!r}"
            )
        return made
    try:
        kind: Any = Sketch.of_kind(choice)
    except FileError as error:
        raise InputError(f"sketch must be a name, or a function that makes one from dim: {error}") from None
    offered = {"size": size, "compensation": compensation, "epsilon": epsilon}
    takes = inspect.signature(kind).parameters
    given = {name: value for name, value in offered.items() if name in takes and value is not None}
    made = kind(dim, **given)
    if not made.guarantee:
        raise InputError(f"sketch {choice!r} has no bound on its error; choose one that has")
    return made
