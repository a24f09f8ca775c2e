"""The blocks of dyadic block sketching."""

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, cast

import numpy as np

from sketchbandit.arrays import AnyArray, Arrays, Dtype, Matrix, Parts, Scalars
from sketchbandit.errors import InputError, InputTypeError
from sketchbandit.linalg import extend_span, row_space
from sketchbandit.sketch.accounts import Change, RowStats
from sketchbandit.sketch.base import SKETCHES, Sketch
from sketchbandit.sketch.frequent_directions import FrequentDirections

BaseFactory = Callable[[int, int], Sketch] | type[Sketch]
"""A function ``(dim, size) -> sketch`` with error bound <= mass / size, or the class of such a sketch."""


class Block(NamedTuple):
    """One block of a dyadic block sketch, as ``DyadicBlockSketch.blocks`` returns it.

    Attributes
    ----------
    size : int
        The sketch size of the block.
    rows : array
        The rows of its sketch.
    mass : float
        The sum of the squared norms of the rows it was given.
    error_bound : float
        The error bound of its sketch.
    active : bool
        Whether it still takes rows. Only the last block does.
    exact : bool
        Whether it loses nothing.

    Examples
    --------
    >>> import sketchbandit as sb
    >>> (block,) = sb.DyadicBlockSketch(100, size=8).blocks
    >>> block.size, block.active, block.exact
    (8, True, False)

    """

    size: int
    rows: AnyArray
    mass: float
    error_bound: float
    active: bool
    exact: bool


class Losses(NamedTuple):
    """What sketches certify, summed up. Each field has the name of the property of a sketch."""

    error_bound: float = 0.0
    rounding: float = 0.0
    uncounted: float = 0.0
    alpha: float = 0.0

    @classmethod
    def of(cls, sketch: "Sketch | Folded") -> "Losses":
        """Those of one sketch."""
        return cls(sketch.error_bound, sketch.rounding, sketch.uncounted, sketch.alpha)

    def plus(self, other: "Losses") -> "Losses":
        """The sum of both."""
        return Losses(*(mine + theirs for mine, theirs in zip(self, other, strict=True)))

    def times(self, factor: float) -> "Losses":
        """Everything times the factor."""
        return Losses(*(factor * value for value in self))

    def dump(self, prefix: str) -> Scalars:
        """The JSON values that ``undump`` takes."""
        return {f"{prefix}_{name}": value for name, value in zip(_SAVED, self, strict=True)}

    @classmethod
    def undump(cls, prefix: str, scalars: Scalars) -> "Losses":
        """Those that ``dump`` described; zero where there are none."""
        return cls(*(float(scalars.get(f"{prefix}_{name}", 0.0)) for name in _SAVED))


_SAVED = ("error", "rounding", "uncounted", "alpha")


@dataclass
class WorkingBlock:
    """A block in use. Its sketch counts the rows it was given."""

    sketch: "Sketch | Folded"
    size: int
    exact: bool
    span: Matrix | None = None
    """Orthonormal rows that span the block, once only its rank keeps it open."""

    @property
    def open(self) -> Sketch:
        """The sketch of a block that still takes rows."""
        return cast("Sketch", self.sketch)

    @property
    def never_loses(self) -> bool:
        """Whether nothing is ever lost: it is the exact block, or a base made an exact sketch."""
        return self.sketch.error_limit == 0.0

    @property
    def row_stats(self) -> RowStats:
        """Count and mass of the rows it was given."""
        return self.sketch.row_stats

    @property
    def rows(self) -> AnyArray:
        """The rows of the sketch, without a copy."""
        views = self.sketch.views()
        return views[0] if len(views) == 1 else np.concatenate(views)

    def compress(self) -> Change:
        """Compress the sketch, and drop the row space."""
        self.span = None
        return self.open.compress()

    def within(self, share: float, action: Callable[[], Change]) -> Change | None:
        """Do something to the sketch. If e then exceeds ``share``, undo it and return None."""
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

        It takes O(dim · size) per row: the row space of the block is computed once and then extended.
        """
        limit = self.open.exact_rank
        if not limit or self.row_stats.count < self.size:  # too few rows to judge: only the mass rule decides
            return 0
        if self.span is None:
            self.span = row_space(self.rows)
        if len(self.span) > limit:  # the buffer has unshrunk rows: the next shrink will lose something
            return 0
        fitting, self.span = extend_span(self.span, rows, limit)
        return fitting

    def hand_over_rows(self) -> AnyArray:
        """Give the rows to the caller. Only the row_stats, the error bound and alpha stay here."""
        rows, known = self.rows, self.sketch
        self.sketch = Folded(rows[:0].copy(), known.alpha, known.error_bound, known.rounding, known.row_stats)
        return rows

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return self.sketch.nbytes + (0 if self.span is None else self.span.nbytes)

    def dump(self) -> tuple[Scalars, Arrays]:
        """JSON values and arrays that ``undump`` turns into the same block."""
        content, arrays = self.sketch.content()
        if self.span is not None:
            arrays = {**arrays, "span": self.span}
        return {"kind": self.sketch.kind, "content": content, "size": self.size, "exact": self.exact}, arrays

    @classmethod
    def undump(cls, saved: Scalars, arrays: Arrays) -> "WorkingBlock":
        """Return the block that ``dump`` described."""
        span, content = arrays.pop("span", None), saved["content"]
        if saved["kind"] == Folded.kind:
            # in a file of 0.7 the block itself had counted
            sketch: Sketch | Folded = Folded.undump({**saved, **content}, arrays)
        else:
            sketch = SKETCHES.of_kind(saved["kind"]).undump(content, arrays)
        return cls(sketch, saved["size"], saved["exact"], span)


@dataclass
class Folded:
    """What is left of a frozen block whose rows went into the dense exact block: alpha and error bound."""

    rows: AnyArray
    alpha: float
    error_bound: float
    rounding: float
    row_stats: RowStats
    kind: ClassVar[str] = "folded"
    nbytes: ClassVar[int] = 0
    uncounted: ClassVar[float] = 0.0
    error_limit: ClassVar[float] = math.inf

    def forget(self, factor: float) -> None:
        """Multiply everything by the factor."""
        self.row_stats.forget(factor)
        self.alpha *= factor
        self.error_bound *= factor
        self.rounding *= factor

    def _check_can_forget(self) -> None:
        """It can."""

    def views(self) -> Parts:
        """No bytes."""
        return (self.rows,)

    def content(self) -> tuple[Scalars, Arrays]:
        """JSON values and arrays that ``undump`` turns into the same object."""
        known = {"alpha": self.alpha, "error": self.error_bound, "rounding": self.rounding}
        return {**known, **self.row_stats.dump()}, {"rows": self.rows}

    @classmethod
    def undump(cls, scalars: Scalars, arrays: Arrays) -> "Folded":
        """Return the object that ``content`` described."""
        row_stats = RowStats(np.dtype(np.float64))
        row_stats.restore(scalars)
        rounding = float(scalars.get("rounding", 0.0))  # files of 0.6 have none
        return cls(arrays["rows"], float(scalars["alpha"]), float(scalars["error"]), rounding, row_stats)


class Bases:
    """Makes the sketches of the blocks: Frequent Directions, or what the user's ``base`` makes.

    A base that cannot make a block of one of the ``sizes`` is refused now, not in mid-stream.
    """

    def __init__(
        self, base: BaseFactory | None, dim: int, dtype: Dtype, compensation: float, sizes: list[int]
    ) -> None:
        if base is not None and compensation:
            raise InputError(
                f"compensation={compensation!r} belongs to the default base; set it in your own base"
            )
        self.base, self._dim, self._dtype, self._compensation = base, dim, dtype, compensation
        self.described: Scalars | None = None
        """JSON values that identify the sketches of the user's base."""
        if base is not None:
            first, *_ = [self.make(size) for size in sizes]
            self.described = {"kind": first.kind, **first._settings()}

    def make(self, size: int) -> Sketch:
        """A fresh sketch for a block of this size."""
        if self.base is not None:
            return make_base(self.base, self._dim, size, self._dtype)
        return FrequentDirections(self._dim, size=size, compensation=self._compensation, dtype=self._dtype)


def make_base(base: BaseFactory, dim: int, size: int, dtype: Dtype) -> Sketch:
    """The sketch that ``base`` makes. Raises unless it can be a block of this size."""
    if not callable(base):
        raise InputTypeError(f"base must be a factory (dim, size) -> sketch, got {base!r}")
    make: Callable[..., Sketch] = base
    ours = isinstance(base, type) and issubclass(base, Sketch)  # a class whose settings are keyword-only
    sketch = make(dim, size=size) if ours else make(dim, size)
    name = type(sketch).__name__
    if not isinstance(sketch, Sketch):
        raise InputTypeError(f"base made a {name}; it must make an instance of sketchbandit.Sketch")
    for setting, given, wanted in (("dim", sketch.dim, dim), ("dtype", sketch.dtype, dtype)):
        if given != wanted:
            raise InputError(f"base must make sketches of {setting} {wanted}, but its {name} has {given}")
    promised = sketch.guarantee
    if not promised:
        raise InputError(f"base makes {name}, which has no bound on its error and cannot be a block")
    if promised < size:
        raise InputError(
            f"base must make sketches with error_bound <= mass / {size}, but its {name} promises "
            f"only mass / {promised:g}; let the factory use a larger size"
        )
    return sketch
