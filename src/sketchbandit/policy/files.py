"""The parts of a policy in one file, each under its own name."""

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np

from sketchbandit.arrays import Arrays, Scalars, taken_from, under
from sketchbandit.errors import FileError
from sketchbandit.estimate import Estimate, Linear
from sketchbandit.estimate.base import MODELS
from sketchbandit.explore import UCB, Explore
from sketchbandit.explore.base import RULES
from sketchbandit.precision import Saved
from sketchbandit.sketch import Sketch
from sketchbandit.sketch.base import SKETCHES


class Part(Protocol):
    """A part of a policy that can be saved."""

    def content(self) -> tuple[Scalars, Arrays]:
        """JSON values and arrays, without a copy."""


class Parts(NamedTuple):
    """What ``restored_parts`` found in a file."""

    sketch: Sketch
    explore: Explore
    estimate: Estimate
    learned: Saved
    """The arguments of ``estimate.restore``, to be called once the estimate is bound."""
    precision: Saved | None
    """None if the precision has to be computed again."""
    blank: Sketch | None = None
    """The sketch before it has learned anything, for a warm-up."""


def content_of(parts: Mapping[str, Part]) -> tuple[Scalars, Arrays]:
    """JSON values and arrays of all parts."""
    scalars: Scalars = {}
    arrays: Arrays = {}
    for name, part in parts.items():
        content, held = part.content()
        kind = getattr(part, "kind", None)
        scalars[name] = content if kind is None else {"kind": kind, "content": content}
        arrays |= under(name, held)
    return scalars, arrays


def restored_generator(state: Any) -> np.random.Generator:
    """The generator that continues from a saved state."""
    made = np.random.PCG64(0)
    try:
        made.state = state
    except (TypeError, ValueError, KeyError, OverflowError) as error:
        raise FileError(f"the file is damaged: the state of the generator makes no sense: {error}") from error
    return np.random.Generator(made)


def restored_parts(scalars: Scalars, arrays: Arrays, **extra: Any) -> Parts:
    """Read the parts of a policy. ``extra`` goes to the sketch."""
    saved = scalars["sketch"]
    sketch = SKETCHES.of_kind(saved["kind"]).undump(saved["content"], taken_from("sketch", arrays), **extra)
    if "system" in scalars:  # a file of 0.7: the rest is computed again from the sketch and b
        learned: Saved = {"is_sparse": False}, {"b": taken_from("system", arrays)["b"]}
        return Parts(sketch, UCB(), Linear(), learned, None)
    rule, estimate = scalars["explore"], scalars["estimate"]
    blank = None
    if "blank" in scalars:
        empty, held = scalars["blank"], taken_from("blank", arrays)
        blank = SKETCHES.of_kind(empty["kind"]).undump(empty["content"], held, **extra)
    return Parts(
        sketch,
        RULES.of_kind(rule["kind"]).undump(rule["content"], taken_from("explore", arrays)),
        MODELS.of_kind(estimate["kind"]).made_for(estimate["content"]),
        (estimate["content"], taken_from("estimate", arrays)),
        (scalars["precision"], taken_from("precision", arrays)),
        blank,
    )
