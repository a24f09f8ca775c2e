"""The sketch below an estimator: by its name, or made by the user."""

from collections.abc import Callable
from typing import Any

from sketchbandit.errors import InputError, InputTypeError
from sketchbandit.sketch import (
    AdaptiveSketch,
    DyadicBlockSketch,
    ExactSketch,
    FrequentDirections,
    IncrementalSVD,
    Sketch,
)

Choice = str | Callable[[int], Sketch]

_NAMED: dict[str, Callable[..., Sketch]] = {
    cls.kind: cls for cls in (IncrementalSVD, FrequentDirections, DyadicBlockSketch, AdaptiveSketch)
}


def make_sketch(choice: Any, dim: int, size: int, compensation: float) -> Sketch:
    """A fresh sketch for rows of length ``dim``."""
    if callable(choice):
        made = choice(dim)
        if not isinstance(made, Sketch) or made.dim != dim or made.count:
            raise InputTypeError(
                f"sketch must make a fresh sketchbandit.Sketch of dim {dim}, but made {made!r}"
            )
        return made
    if choice == ExactSketch.kind:
        return ExactSketch(dim)
    if choice not in _NAMED:
        known = ", ".join(map(repr, [*_NAMED, ExactSketch.kind]))
        raise InputError(f"sketch must be one of {known}, or make one from dim; got {choice!r}")
    return _NAMED[choice](dim, size=size, compensation=compensation)
