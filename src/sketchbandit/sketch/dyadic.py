"""Dyadic Block Sketching: the paper's Algorithm 1."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray

from sketchbandit.errors import FileError, InputError, InputTypeError
from sketchbandit.linalg import extend_span, row_norms_sq, row_space
from sketchbandit.sketch.base import Arrays, Change, Scalars, Sketch, sketch_class
from sketchbandit.sketch.checks import check_compensation, check_count, check_real
from sketchbandit.sketch.exact import ExactSketch
from sketchbandit.sketch.frequent_directions import FrequentDirections

_LOOK_AHEAD = 1024  # rows examined at a time
_LOOK_AHEAD_ELEMENTS = 1 << 18  # and at most 2 MiB of them while the rank is watched


class BaseSketch(Protocol):
    """What a block's sketch must have: any object with this surface can be one.

    Its certificate must never exceed mass / size. Where the object also tells ``guarantee`` and
    ``exact_rank`` and can ``compress``, as every ``Sketch`` does, the promise is checked, low-rank blocks
    stay open, and frozen blocks are small.
    """

    def update(self, rows: Any) -> Any:
        """Take rows (n, dim)."""

    @property
    def rows(self) -> NDArray[Any]:
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


BaseFactory = Callable[[int, int], BaseSketch]
"""``(dim, size) -> sketch`` whose certificate never exceeds mass / size."""


class Block(NamedTuple):
    """One block of a dyadic block sketch, as ``DyadicBlockSketch.blocks`` shows it."""

    size: int
    rows: NDArray[Any]
    mass: float
    error_bound: float
    active: bool
    exact: bool


@dataclass
class _Block:
    """A block at work. ``mass`` is that of the rows it was given."""

    sketch: BaseSketch
    size: int
    exact: bool
    count: int = 0
    mass: float = 0.0
    span: NDArray[np.float64] | None = None
    """Orthonormal rows spanning the block, once only its rank keeps it open."""


class DyadicBlockSketch(Sketch):
    """Blocks of doubling sketch size that keep the spectral error under 2·epsilon on every stream.

    A row goes into the active block while the block's mass stays under epsilon·size, or while the block
    can take it without shrinking. Otherwise the block is frozen and one of twice the size starts. At most
    floor(log2(dim/size + 1)) blocks; the last one is exact (Alg. 1; Thm. 1: e <= 2·epsilon).

    Parameters
    ----------
    dim : length of a row.
    size : l0, the sketch size of the first block. With size > dim the first block is already exact.
    epsilon : the error allowed; in units of a squared row norm.
    compensation : as for FrequentDirections, the default base: 0 is DBS-FD, 1 the paper's DBS-RFD.
    base : ``(dim, size) -> sketch``, any sketch whose certificate never exceeds mass / size, instead of
        FrequentDirections.
    dtype : float64, or float32 for half the memory.

    Notes
    -----
    Where the paper is silent: an empty block takes any row, however long, because it need not shrink for
    it (Alg. 1 would freeze an empty block). A block is compressed when it is frozen, to size - 1 rows:
    its mass is under epsilon·size then, or its rank under size, so that its certificate stays
    under its share epsilon/2^i. A merge hands the rows of the other sketch to Alg. 1 as if they came from
    the stream and adds the other's certificate: e <= 2·epsilon for each of the sketches merged.

    Examples
    --------
    >>> X = np.random.default_rng(0).standard_normal((2000, 100))
    >>> X /= np.linalg.norm(X, axis=1, keepdims=True)
    >>> sketch = DyadicBlockSketch(100, size=8, epsilon=10.0)
    >>> change = sketch.update(X)
    >>> bool(np.linalg.norm(X.T @ X - sketch.covariance(), 2) <= sketch.error_bound <= 2 * 10.0)
    True
    >>> [(block.size, block.exact) for block in sketch.blocks]
    [(8, False), (16, False), (32, True)]

    """

    kind = "dyadic-block"

    def __init__(
        self,
        dim: int,
        *,
        size: int = 50,
        epsilon: float = 8.0,
        compensation: float = 0.0,
        base: BaseFactory | None = None,
        dtype: DTypeLike = np.float64,
    ) -> None:
        super().__init__(dim, dtype)
        self._first_size = check_count("size", size, at_least=2)
        self._epsilon = check_real("epsilon", epsilon, above=0.0)
        self._compensation = check_compensation(compensation)
        if base is not None and self._compensation:
            raise InputError(
                f"compensation={compensation!r} is for the default base; give it to what base makes"
            )
        self._base = base
        self._base_described = None if base is None else _described(self._make_base(self._first_size))
        # floor(log2(dim/size + 1)) in integers: the largest b with 2^b <= dim/size + 1.
        self._most_blocks = max(1, ((self.dim + self._first_size) // self._first_size).bit_length() - 1)
        self._merged_error = 0.0
        self._merged_alpha = 0.0
        self._blocks = [self._new_block(self._first_size)]

    # -- what it tells ------------------------------------------------------------------------------

    @property
    def size(self) -> int:
        """The sketch size of the active block."""
        return self._active.size

    @property
    def epsilon(self) -> float:
        """Half the error that is allowed."""
        return self._epsilon

    @property
    def blocks(self) -> tuple[Block, ...]:
        """The frozen blocks, oldest first, and the active one."""
        return tuple(
            Block(b.size, b.sketch.rows, b.mass, b.sketch.error_bound, b is self._active, b.exact)
            for b in self._blocks
        )

    @property
    def rows(self) -> NDArray[Any]:
        """S of eq. (combination): the rows of all blocks, oldest first. A copy when there are several."""
        parts = [block.sketch.rows for block in self._blocks]
        if len(parts) == 1:
            return np.asarray(parts[0])
        rows = np.concatenate(parts)
        rows.flags.writeable = False
        return rows

    @property
    def alpha(self) -> float:
        """The sum of the blocks' alphas: it enters the covariance once."""
        return self._merged_alpha + sum(block.sketch.alpha for block in self._blocks)

    @property
    def error_bound(self) -> float:
        """The sum of the blocks' certificates (Lemma Decomposability)."""
        return self._merged_error + sum(block.sketch.error_bound for block in self._blocks)

    @property
    def nbytes(self) -> int:
        """Bytes of every array of every block."""
        spans = sum(block.span.nbytes for block in self._blocks if block.span is not None)
        return spans + sum(block.sketch.nbytes for block in self._blocks)

    @property
    def exact_rank(self) -> int:
        """No rank is promised to be exact: the mass rule may shrink first."""
        return 0

    def covariance(self) -> NDArray[np.float64]:
        """S'S + alpha I, with alpha entering once, whatever the number of blocks."""
        covariance = np.zeros((self.dim, self.dim))
        for block in self._blocks:
            if isinstance(block.sketch, ExactSketch):
                covariance += block.sketch.covariance()
            else:
                rows = block.sketch.rows.astype(np.float64, copy=False)
                covariance += rows.T @ rows
        covariance[np.diag_indices_from(covariance)] += self.alpha
        return covariance

    def compress(self) -> Change:
        """Compress the active block; the others are compressed already."""
        return _compressed(self._active.sketch)

    # -- Algorithm 1 --------------------------------------------------------------------------------

    @property
    def _active(self) -> _Block:
        return self._blocks[-1]

    def _ingest(self, rows: NDArray[Any]) -> Change:
        norms_sq = row_norms_sq(rows)
        change = Change()
        taken = 0
        while taken < len(rows):
            fitting = self._count_fitting(rows[taken:], norms_sq[taken:])
            if not fitting:
                change = change.then(self._freeze())
                fitting = 1  # line 10: the row that did not fit opens the new block
            change = change.then(self._give(rows[taken : taken + fitting], norms_sq[taken : taken + fitting]))
            taken += fitting
        return change

    def _count_fitting(self, rows: NDArray[Any], norms_sq: NDArray[np.float64]) -> int:
        """How many leading rows the active block takes as it is (line 7)."""
        block = self._active
        if block.exact:
            return len(rows)
        threshold = self._epsilon * self._first_size
        if block.mass + norms_sq[0] < threshold:
            masses = np.add.accumulate(np.concatenate([[block.mass], norms_sq[:_LOOK_AHEAD]]))[1:]
            return int(np.searchsorted(masses, threshold))
        if not block.count:
            return 1
        some = max(block.size, min(_LOOK_AHEAD, _LOOK_AHEAD_ELEMENTS // self.dim))
        return self._count_without_excess(block, rows[:some])

    @staticmethod
    def _count_without_excess(block: _Block, rows: NDArray[Any]) -> int:
        """How many leading rows leave ``willExcessSketch`` False: the block keeps their rank without loss.

        O(dim · size) a row: the block's row space is computed once and then extended.
        """
        limit = getattr(block.sketch, "exact_rank", 0)
        if not limit or block.count < block.size:  # too few rows to tell: the mass rule alone decides
            return 0
        if block.span is None:
            block.span = row_space(block.sketch.rows)
        if len(block.span) > limit:  # unshrunk rows in the buffer: the next shrink will lose something
            return 0
        fitting, block.span = extend_span(block.span, rows, limit)
        return fitting

    def _freeze(self) -> Change:
        frozen = self._active
        change = _compressed(frozen.sketch)
        frozen.span = None
        self._blocks.append(self._new_block(2 * frozen.size))
        return change

    def _give(self, rows: NDArray[Any], norms_sq: NDArray[np.float64]) -> Change:
        block = self._active
        block.count += len(rows)
        block.mass = float(np.add.accumulate(np.concatenate([[block.mass], norms_sq]))[-1])
        change = block.sketch.update(rows)
        return change if isinstance(change, Change) else Change(rebuilt=True)

    def _new_block(self, size: int) -> _Block:
        exact = len(getattr(self, "_blocks", ())) + 1 >= self._most_blocks
        return _Block(
            ExactSketch(self.dim, dtype=self.dtype) if exact else self._make_base(size), size, exact
        )

    def _make_base(self, size: int) -> BaseSketch:
        if self._base is None:
            return FrequentDirections(self.dim, size=size, compensation=self._compensation, dtype=self.dtype)
        sketch = self._base(self.dim, size)
        missing = [n for n in ("update", "rows", "alpha", "error_bound", "nbytes") if not hasattr(sketch, n)]
        if missing:
            raise InputTypeError(f"base made a {type(sketch).__name__}, which lacks {', '.join(missing)}")
        dim = getattr(sketch, "dim", self.dim)
        if dim != self.dim:
            raise InputError(f"base was asked for dim={self.dim} and made a sketch of dim={dim}")
        promised = getattr(sketch, "guarantee", float(size))
        if promised < size:
            raise InputError(
                f"base must make sketches with error_bound <= mass / {size}, but its {type(sketch).__name__} "
                f"promises mass / {promised:g} only; let the factory ask for a larger one"
            )
        return sketch

    # -- merge and files ----------------------------------------------------------------------------

    def _absorb(self, other: "DyadicBlockSketch") -> Change:
        self._merged_error += other.error_bound
        self._merged_alpha += other.alpha
        rows = other.rows
        return self._ingest(rows[row_norms_sq(rows) > 0.0])

    def _settings(self) -> Scalars:
        return {
            "dim": self.dim,
            "size": self._first_size,
            "epsilon": self._epsilon,
            "compensation": self._compensation,
            "base": self._base_described,
            "dtype": self.dtype.name,
        }

    def _state(self) -> tuple[Scalars, Arrays]:
        scalars: list[Scalars] = []
        arrays: Arrays = {}
        for index, block in enumerate(self._blocks):
            if not isinstance(block.sketch, Sketch):
                raise InputTypeError(
                    f"base makes {type(block.sketch).__name__}, which cannot be saved; derive it from "
                    "sketchbandit.Sketch"
                )
            content, parts = block.sketch._dump()
            arrays |= {f"{index}.{name}": array for name, array in parts.items()}
            if block.span is not None:
                arrays[f"{index}:span"] = block.span
            scalars.append(
                {
                    "kind": block.sketch.kind,
                    "content": content,
                    "size": block.size,
                    "exact": block.exact,
                    "count": block.count,
                    "mass": block.mass,
                }
            )
        merged = {"merged_error": self._merged_error, "merged_alpha": self._merged_alpha}
        return {**merged, "blocks": scalars}, arrays

    def _restore(self, scalars: Scalars, arrays: Arrays) -> None:
        self._merged_error = float(scalars["merged_error"])
        self._merged_alpha = float(scalars["merged_alpha"])
        self._blocks = []
        for index, saved in enumerate(scalars["blocks"]):
            prefix = f"{index}."
            parts = {n.removeprefix(prefix): array for n, array in arrays.items() if n.startswith(prefix)}
            sketch = sketch_class(saved["kind"])._undump(saved["content"], parts)
            span = arrays.get(f"{index}:span")
            self._blocks.append(
                _Block(sketch, saved["size"], saved["exact"], saved["count"], float(saved["mass"]), span)
            )

    @classmethod
    def _undump(cls, scalars: Scalars, arrays: Arrays, **extra: Any) -> Self:
        settings = dict(scalars["settings"])
        described = settings.pop("base")
        if described is not None and extra.get("base") is None:
            raise FileError(
                f"this sketch was made with base={described}, and code is not saved; "
                "pass the factory again: sketchbandit.load(path, base=...)"
            )
        sketch = super()._undump({**scalars, "settings": settings}, arrays, **extra)
        if sketch._base_described != described:
            raise FileError(f"the base given makes {sketch._base_described}, but the file holds {described}")
        return sketch


def _compressed(sketch: BaseSketch) -> Change:
    change = sketch.compress() if hasattr(sketch, "compress") else Change()
    return change if isinstance(change, Change) else Change(rebuilt=True)


def _described(sketch: BaseSketch) -> Scalars:
    """What identifies the sketches that a base makes, as JSON values."""
    settings = sketch._settings() if isinstance(sketch, Sketch) else {}
    return {"kind": getattr(sketch, "kind", type(sketch).__qualname__), **settings}
