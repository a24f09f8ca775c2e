"""The blocks of dyadic block sketching: what a base must offer, and how a block is kept."""

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from sketchbandit.arrays import AnyArray, Arrays, Scalars
from sketchbandit.errors import InputError, InputTypeError
from sketchbandit.linalg import extend_span, row_space, running_sums
from sketchbandit.sketch.base import Change, Sketch, known_change, sketch_class


class BaseSketch(Protocol):
    """What a block's sketch must have: any object with this surface can be one.

    Its certificate must never exceed mass / size. Where the object also tells ``guarantee`` and
    ``exact_rank`` and can ``compress``, as every ``Sketch`` does, the promise is checked, blocks stay open
    for long or low-rank rows, and frozen blocks are small. Where it tells ``lossless_room``, the rows it is
    sure to take without loss, it is not copied for each row by ``schedule="spectral"``.
    """

    def update(self, rows: Any) -> Any:
        """Take rows (n, dim)."""

    @property
    def rows(self) -> AnyArray:
        """S."""

    @property
    def alpha(self) -> float:
        """What is added to the diagonal."""

    @property
    def error_bound(self) -> float:
        """The certificate."""

    @property
    def nbytes(self) -> int:
        """Bytes held."""


BaseFactory = Callable[[int, int], BaseSketch] | type[Sketch]
"""``(dim, size) -> sketch`` whose certificate never exceeds mass / size, or the class of such a sketch."""


class Block(NamedTuple):
    """One block of a dyadic block sketch, as ``DyadicBlockSketch.blocks`` shows it."""

    size: int
    rows: AnyArray
    mass: float
    error_bound: float
    active: bool
    exact: bool


@dataclass
class WorkingBlock:
    """A block at work. ``mass`` is that of the rows it was given."""

    sketch: BaseSketch
    size: int
    exact: bool
    count: int = 0
    mass: float = 0.0
    span: NDArray[np.float64] | None = None
    """Orthonormal rows spanning the block, once only its rank keeps it open."""

    def give(self, rows: AnyArray, norms_sq: NDArray[np.float64]) -> Change:
        """Pass rows on to the sketch."""
        self.count += len(rows)
        self.mass = float(running_sums(self.mass, norms_sq)[-1])
        if isinstance(self.sketch, Sketch):  # ours: the rows were checked already
            return self.sketch._take(rows, norms_sq)
        return known_change(self.sketch.update(rows))

    @property
    def rows(self) -> AnyArray:
        """The rows of the sketch, not copied where it is ours."""
        views = self.sketch.views() if isinstance(self.sketch, Sketch) else (np.asarray(self.sketch.rows),)
        return views[0] if len(views) == 1 else np.concatenate(views)

    def compress(self) -> Change:
        """Let the sketch drop what it can, and forget the row space."""
        self.span = None
        return known_change(self.sketch.compress()) if hasattr(self.sketch, "compress") else Change()

    @property
    def rounding(self) -> float:
        """What of the certificate is rounding."""
        return float(getattr(self.sketch, "rounding", 0.0))

    @property
    def uncounted(self) -> float:
        """Rounding that is not in it."""
        return float(getattr(self.sketch, "uncounted", 0.0))

    @property
    def lossless_room(self) -> int:
        """How many rows the sketch takes for sure without any loss."""
        return int(getattr(self.sketch, "lossless_room", 0))

    def within(self, share: float, action: Callable[[], Change]) -> Change | None:
        """Do something to the sketch; None, and as if never done, if that makes e exceed ``share``."""
        if share == math.inf:
            return action()
        before = copy.deepcopy(self)
        change = action()
        if self.sketch.error_bound <= share:
            return change
        vars(self).update(vars(before))
        return None

    def count_without_excess(self, rows: AnyArray) -> int:
        """How many leading rows leave ``willExcessSketch`` False: the block keeps their rank without loss.

        O(dim · size) a row: the block's row space is computed once and then extended.
        """
        limit = getattr(self.sketch, "exact_rank", 0)
        if not limit or self.count < self.size:  # too few rows to tell: the mass rule alone decides
            return 0
        if self.span is None:
            self.span = row_space(self.rows)
        if len(self.span) > limit:  # unshrunk rows in the buffer: the next shrink will lose something
            return 0
        fitting, self.span = extend_span(self.span, rows, limit)
        return fitting

    def hand_over_rows(self) -> AnyArray:
        """Give the rows to the caller; only the certificate and alpha stay here."""
        rows = self.rows
        self.sketch = Folded(rows[:0].copy(), self.sketch.alpha, self.sketch.error_bound, self.rounding)
        return rows

    @property
    def nbytes(self) -> int:
        """Bytes of every array."""
        return self.sketch.nbytes + (0 if self.span is None else self.span.nbytes)

    def dump(self) -> tuple[Scalars, Arrays]:
        """JSON values and arrays that ``undump`` turns into the same block."""
        arrays: Arrays
        if isinstance(self.sketch, Folded):
            folded = self.sketch
            kind = "folded"
            content = {"alpha": folded.alpha, "error": folded.error_bound, "rounding": folded.rounding}
            arrays = {"rows": self.sketch.rows}
        elif isinstance(self.sketch, Sketch):
            kind, (content, arrays) = self.sketch.kind, self.sketch._dump()
        else:
            raise InputTypeError(
                f"base makes {type(self.sketch).__name__}, which cannot be saved; derive it from "
                "sketchbandit.Sketch"
            )
        if self.span is not None:
            arrays = {**arrays, "span": self.span}
        settings = {"size": self.size, "exact": self.exact, "count": self.count, "mass": self.mass}
        return {"kind": kind, "content": content, **settings}, arrays

    @classmethod
    def undump(cls, saved: Scalars, arrays: Arrays) -> "WorkingBlock":
        """The block that ``dump`` described."""
        span = arrays.pop("span", None)
        content = saved["content"]
        sketch: BaseSketch
        if saved["kind"] == "folded":
            rounding = float(content.get("rounding", 0.0))  # files of 0.6 have none
            sketch = Folded(arrays["rows"], float(content["alpha"]), float(content["error"]), rounding)
        else:
            sketch = sketch_class(saved["kind"])._undump(content, arrays)
        return cls(sketch, saved["size"], saved["exact"], saved["count"], float(saved["mass"]), span)


class Folded(NamedTuple):
    """What is left of a frozen block whose rows went into the dense exact one: its alpha and certificate."""

    rows: AnyArray
    alpha: float
    error_bound: float
    rounding: float
    nbytes: int = 0

    def update(self, rows: Any) -> Any:
        """Not for frozen blocks."""
        raise InputError(f"a folded block takes no rows, got {len(rows)}")


def make_base(base: BaseFactory, dim: int, size: int, dtype: np.dtype[Any]) -> BaseSketch:
    """The sketch that ``base`` makes, if it can be a block of that size."""
    if not callable(base):
        raise InputTypeError(f"base must be a factory (dim, size) -> sketch, got {base!r}")
    make: Callable[..., BaseSketch] = base
    ours = isinstance(base, type) and issubclass(base, Sketch)  # a class whose settings are keyword-only
    sketch = make(dim, size=size) if ours else make(dim, size)
    name = type(sketch).__name__
    missing = [n for n in ("update", "rows", "alpha", "error_bound", "nbytes") if not hasattr(sketch, n)]
    if missing:
        raise InputTypeError(f"base made a {name}, which lacks {', '.join(missing)}")
    for setting, wanted in (("dim", dim), ("dtype", dtype)):
        given = getattr(sketch, setting, wanted)
        if given != wanted:
            raise InputError(f"base must make sketches of {setting} {wanted}, but its {name} has {given}")
    promised = getattr(sketch, "guarantee", float(size))
    if not promised:
        raise InputError(f"base makes {name}, which promises no bound on its error and cannot be a block")
    if promised < size:
        raise InputError(
            f"base must make sketches with error_bound <= mass / {size}, but its {name} promises "
            f"mass / {promised:g} only; let the factory ask for a larger one"
        )
    return sketch


def describe_base(sketch: BaseSketch) -> Scalars:
    """What identifies the sketches that a base makes, as JSON values."""
    settings = sketch._settings() if isinstance(sketch, Sketch) else {}
    return {"kind": getattr(sketch, "kind", type(sketch).__qualname__), **settings}
