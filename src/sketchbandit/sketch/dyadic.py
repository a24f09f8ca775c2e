"""Dyadic Block Sketching: the paper's Algorithm 1."""

import math
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import DTypeLike

from sketchbandit.arrays import AnyArray, Arrays, Matrix, Parts, Scalars, Vector, taken_from, under
from sketchbandit.errors import FileError
from sketchbandit.linalg import covariance_of, row_norms_sq, running_sums, storing_error
from sketchbandit.sketch.accounts import NO_CHANGE, Change
from sketchbandit.sketch.base import Sketch, read_only
from sketchbandit.sketch.blocks import BaseFactory, Bases, Block, Losses, WorkingBlock
from sketchbandit.sketch.checks import check_compensation, check_count, check_real
from sketchbandit.sketch.exact import ExactSketch
from sketchbandit.thread_safety import needs_the_lock

_LIGHT = 0.9  # share of a block's mass limit
_LOOK_AHEAD = 1024  # rows examined at a time
# If the rank is watched, at most 1 MiB of rows: the system reclaims larger scratch memory after every look.
_LOOK_AHEAD_ELEMENTS = 1 << 17


class DyadicBlockSketch(Sketch):
    """Dyadic Block Sketching: blocks of doubling size keep the spectral error below 2·epsilon.

    A row goes into the active block while the mass of the block stays below epsilon·size, or while the block
    can take it without shrinking. Otherwise the block is frozen, and a block of twice the size starts. There
    are at most floor(log2(dim/size + 1)) blocks, and the last one is exact (Alg. 1; Thm. 1: e <= 2·epsilon).

    Parameters
    ----------
    dim : int
        Length of a row.
    size : int
        l0, the sketch size of the first block. If size > dim, the first block is exact.
    epsilon : float
        Half of the spectral error allowed, in units of a squared row norm.
    compensation : float
        As for ``FrequentDirections``, the default base. 0 is DBS-FD, 1 is the paper's DBS-RFD.
    base : callable, optional
        ``(dim, size) -> sketch``: makes the blocks instead of ``FrequentDirections``. The error bound of the
        sketch must never exceed mass / size. ``sketchbandit.load`` needs it again.
    dtype : dtype
        float64, or float32 for half the memory in all blocks except the exact one.

    Notes
    -----
    Choices that the paper leaves open:

    - An empty block takes any row, however long, if its sketch keeps rank 1 without loss, as Frequent
      Directions does. (Alg. 1 would freeze an empty block.)
    - A block is compressed to size - 1 rows when it is frozen. Then its mass is below epsilon·size or its
      rank below size, so its error bound stays below its share epsilon/2^i. In any case it is frozen before
      a row would bring the error bound above the share.
    - Once the exact block is a dense matrix, it takes over the rows of the frozen blocks (line 4 of Alg. 1
      modifies the whole of S'S). Their error bounds stay.
    - A merge gives the rows of the other sketch to Alg. 1, as if they came from the stream. Rows of its exact
      block go to the exact block. The error bound of the other is added: e <= 2·epsilon for each sketch.
    - The forgotten part of a block's mass may be used again. So one block lasts for ever if the remembered
      mass stays below epsilon·size. When so little is left in all blocks that the first one would have been
      enough, they are dissolved: their rows go into a new first block. Their error bounds count against its
      share, so that e stays below 2·epsilon.

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
        self._is_float64 = self.dtype == np.float64
        self._first_size = check_count("size", size, at_least=2)
        self._epsilon = check_real("epsilon", epsilon, above=0.0)
        self._compensation = check_compensation(compensation)
        # floor(log2(dim/size + 1)) in integers: the largest b with 2^b <= dim/size + 1.
        self._most_blocks = max(1, ((self.dim + self._first_size) // self._first_size).bit_length() - 1)
        sizes = [self._first_size * 2**index for index in range(max(1, self._most_blocks - 1))]
        self._bases = Bases(base, self.dim, self.dtype, self._compensation, sizes)
        self._merged = Losses()
        """The losses of merged sketches."""
        self._carried = Losses()
        """The losses of blocks that were dissolved after enough was forgotten."""
        self._dense: Sketch | None = None
        """The exact block, once it holds a matrix. From then on it takes every row."""
        self._blocks: list[WorkingBlock] = []
        """Frozen blocks, oldest first, then the active one."""
        self._blocks.append(self._new_block(0))
        self._exact_rank = self._active.open.exact_rank

    # -- what it tells ------------------------------------------------------------------------------

    epsilon = property(lambda self: self._epsilon, doc="Half of the spectral error allowed.")

    @property
    def size(self) -> int:
        """The sketch size of the active block."""
        return self._active.size

    @property
    def blocks(self) -> tuple[Block, ...]:
        """The frozen blocks, oldest first, and the active one."""
        return tuple(
            Block(b.size, b.sketch.rows, b.row_stats.mass, b.sketch.error_bound, b is self._active, b.exact)
            for b in self._blocks
        )

    @property
    def rows(self) -> AnyArray:
        """S of eq. (combination): the rows of all blocks, oldest first, as a read-only copy.

        It is float64 if the exact block has rows, because that block is float64.
        """
        return read_only(np.concatenate(self.views()))

    @needs_the_lock
    def views(self) -> Parts:
        """The rows of each block that has any, oldest first. The active block is always included."""
        every = [block.rows for block in self._blocks]
        return tuple([rows for rows in every[:-1] if len(rows)] + every[-1:])

    @property
    def alpha(self) -> float:
        """The sum of the alphas of all blocks. It enters the covariance once."""
        return self._total("alpha")

    @property
    def error_bound(self) -> float:
        """The sum of the error bounds of all blocks (Lemma Decomposability)."""
        return self._total("error_bound")

    @property
    def rounding(self) -> float:
        """The part of the error bound that is rounding. S'S may exceed X'X by as much."""
        return self._total("rounding")

    @property
    def uncounted(self) -> float:
        """Rounding in float64 that the error bound leaves out."""
        return self._total("uncounted")

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays of all blocks."""
        return sum(block.nbytes for block in self._blocks)

    def gram(self) -> Matrix:
        """S'S: the sum over the blocks."""
        gram = self._active.open.gram()  # a dense exact block has no rows to read
        for block in self._blocks[:-1]:
            if len(block.rows):
                gram += covariance_of(block.rows)
        return gram

    @property
    def is_dense(self) -> bool:
        """Whether the exact block holds S'S as a matrix."""
        return self._dense is not None

    @property
    def guarantee(self) -> float:
        """error_bound <= mass / guarantee, the size of the first block; 0 with a base of your own."""
        return float(self._first_size) if self._bases.described is None else 0.0

    @property
    def error_limit(self) -> float:
        """2·epsilon (Thm. 1), plus the error bounds of merged sketches."""
        return 2.0 * self._epsilon + self._merged.error_bound

    @property
    def exact_rank(self) -> int:
        """The rank that the first block keeps without loss. Later blocks keep it too."""
        return self._exact_rank

    @property
    def _active(self) -> WorkingBlock:
        return self._blocks[-1]

    def _total(self, name: str) -> float:
        """The sum of a property over merged sketches, dissolved blocks, and blocks."""
        before: float = getattr(self._merged, name) + getattr(self._carried, name)
        return before + float(sum(getattr(block.sketch, name) for block in self._blocks))

    def _compress(self) -> Change:
        """Compress the active block. The others are compressed already."""
        return self._active.within(self._share, self._active.compress) or NO_CHANGE

    # -- forgetting ---------------------------------------------------------------------------------

    def _check_can_forget(self) -> None:
        super()._check_can_forget()
        for block in self._blocks:  # they may come from a user's own base
            block.sketch._check_can_forget()

    def _forget(self, factor: float) -> Change:
        for block in self._blocks:
            block.sketch.forget(factor)
        self._merged, self._carried = self._merged.times(factor), self._carried.times(factor)
        if len(self._blocks) > 1 and self._mass_in_one_block < _LIGHT * self._epsilon * self._first_size:
            self._dissolve()
        return Change(rebuilt=True)

    @property
    def _mass_in_one_block(self) -> float:
        """An upper bound on |S|_F² of all blocks, plus room for their error bounds in a first block."""
        lost = self._carried.error_bound + sum(block.sketch.error_bound for block in self._blocks)
        held = sum(block.row_stats.mass for block in self._blocks)
        if self._bases.described is None:  # a shrink by s takes s from ``size`` directions
            held -= sum(b.size * (b.sketch.error_bound - b.sketch.rounding) for b in self._blocks)
        return held + lost * self._first_size

    def _dissolve(self) -> None:
        """Start again with one block that has room for all rows, and for the errors so far."""
        parts = [block.rows for block in self._blocks]
        rows = np.concatenate(parts)
        stored = sum(storing_error(part, self.dtype) for part in parts if part.dtype != self.dtype)
        for block in self._blocks:
            self._carried = self._carried.plus(Losses.of(block.sketch))
        self._carried = self._carried.plus(Losses(stored, stored, 0.0, self._compensation * stored))
        self._blocks, self._dense = [], None
        self._blocks.append(self._new_block(0))
        self._ingest(rows[row_norms_sq(rows) > 0.0].astype(self.dtype, copy=False))

    # -- Algorithm 1 --------------------------------------------------------------------------------

    def _ingest_one(self, row: AnyArray, norm_sq: float) -> Change:
        return self._ingest(row) if self._dense is None else self._dense.take_one(row, norm_sq)

    def _ingest(self, rows: AnyArray) -> Change:
        norms_sq = row_norms_sq(rows)
        change = NO_CHANGE
        taken = 0
        while taken < len(rows):
            fitting, is_safe = self._count_fitting(rows[taken:], norms_sq[taken:])
            some = slice(taken, taken + fitting)
            if fitting and is_safe:
                given, count = self._active.open.take(rows[some], norms_sq[some]), fitting
            else:
                given, count = self._give(rows[some], norms_sq[some])
            taken += count
            change = change.then(given if len(self._blocks) == 1 else given._replace(orthogonal=False))
            change = change.then(self._fold() if 0 < count == fitting else self._freeze())
        return change

    def _give(self, rows: AnyArray, norms_sq: Vector) -> tuple[Change, int]:
        """Give rows to the active block, until the next row would bring its error bound above its share.

        A row that counts as inside the span costs its part outside the span, up to rounding of the longest
        row. float32 rounds as well. Returns the change, and how many rows the block took.
        """
        block, change, taken = self._active, NO_CHANGE, 0
        while taken < len(rows):
            room = block.open.lossless_room
            some = slice(taken, min(len(rows), taken + max(1, room)))
            give = partial(block.open.take, rows[some], norms_sq[some])
            given = give() if room else block.within(self._share, give)
            if given is None:
                break
            change, taken = change.then(given), some.stop
        return change, taken

    def _count_fitting(self, rows: AnyArray, norms_sq: Vector) -> tuple[int, bool]:
        """How many leading rows the active block takes (line 7), and whether its share surely holds."""
        block = self._active
        if block.never_loses:  # it is looked at again when it may have turned dense
            return min(len(rows), block.open.plain_room + 1), True
        threshold = self._epsilon * self._first_size
        if len(self._blocks) == 1:
            threshold -= self._carried.error_bound * self._first_size
        if block.row_stats.mass + norms_sq[0] < threshold:  # then the error bound is below mass / size
            sums = running_sums(block.row_stats.mass, norms_sq[:_LOOK_AHEAD])
            return int(np.searchsorted(sums, threshold)), self._is_float64
        if not block.row_stats.count:  # a single row never needs a shrink if the sketch keeps rank 1
            return min(1, block.open.exact_rank), True
        some = max(block.size, min(_LOOK_AHEAD, _LOOK_AHEAD_ELEMENTS // self.dim))
        return block.count_without_excess(rows[:some]), False

    def _freeze(self) -> Change:
        change = self._compress()
        if len(self._blocks) > 1:  # rows are orthogonal within the block, not to older blocks
            change = change._replace(orthogonal=False)
        self._blocks.append(self._new_block(len(self._blocks)))
        return change

    @property
    def _share(self) -> float:
        """The largest error bound allowed for the active block."""
        if self._active.exact:
            return math.inf
        index = len(self._blocks) - 1
        return self._epsilon / 2**index if index else self._epsilon - self._carried.error_bound

    def _fold(self) -> Change:
        """Once the exact block holds a matrix, let it take over the rows of the frozen blocks."""
        exact, change = self._active.open, NO_CHANGE
        if not self._active.never_loses or not exact.is_dense:
            return NO_CHANGE
        self._dense = exact
        for block in self._blocks[:-1]:
            if len(block.rows):
                self._merged = self._merged.plus(Losses(uncounted=block.sketch.uncounted))
                exact._ingest(block.hand_over_rows().astype(self.dtype, copy=False))
                change = Change(rebuilt=True, lossless=True)  # S'S is the same as before
        return change

    def _new_block(self, index: int) -> WorkingBlock:
        size, exact = self._first_size * 2**index, index + 1 >= self._most_blocks
        if exact:
            frozen = sum(len(block.rows) for block in self._blocks)
            return WorkingBlock(ExactSketch.beside(frozen, self.dim, self.dtype), size, exact)
        return WorkingBlock(self._bases.make(size), size, exact)

    # -- merge and files ----------------------------------------------------------------------------

    def _absorb(self, other: Self) -> None:
        self._merged = self._merged.plus(Losses.of(other))
        theirs = other._active
        if theirs.never_loses and theirs.row_stats.count:
            while not self._active.never_loses:  # exact rows stay exact
                self._freeze()
            self._active.open.merge(theirs.open)
            self._fold()
        for block in other._blocks:
            if not block.never_loses:
                self._ingest(block.rows[row_norms_sq(block.rows) > 0.0].astype(self.dtype, copy=False))

    def _blank(self) -> "DyadicBlockSketch":
        settings = {**self._settings(), "base": self._bases.base}
        return type(self)(**settings)

    def _settings(self) -> Scalars:
        return {
            "dim": self.dim,
            "size": self._first_size,
            "epsilon": self._epsilon,
            "compensation": self._compensation,
            "base": self._bases.described,
            "dtype": self.dtype.name,
        }

    def _state(self) -> tuple[Scalars, Arrays]:
        blocks: list[Scalars] = []
        arrays: Arrays = {}
        for index, block in enumerate(self._blocks):
            scalars, parts = block.dump()
            blocks.append(scalars)
            arrays |= under(str(index), parts)
        lost = self._merged.dump("merged")
        if any(self._carried):
            lost |= self._carried.dump("carried")
        return {**lost, "blocks": blocks}, arrays

    def _restore(self, scalars: Scalars, arrays: Arrays) -> None:
        self._merged = Losses.undump("merged", scalars)
        self._carried = Losses.undump("carried", scalars)
        self._blocks = [
            WorkingBlock.undump(saved, taken_from(str(index), arrays))
            for index, saved in enumerate(scalars["blocks"])
        ]
        self._fold()

    @classmethod
    def undump(cls, scalars: Scalars, arrays: Arrays, **extra: Any) -> Self:
        """Return the sketch that ``dump`` described."""
        settings = dict(scalars["settings"])
        described = settings.pop("base")
        if settings.pop("schedule", "mass") != "mass":  # a file of 0.7
            raise FileError("this sketch has a spectral schedule, which 0.8 replaced by AdaptiveSketch")
        if described is not None and extra.get("base") is None:
            raise FileError(
                f"this sketch was made with base={described}, and files hold no code; "
                "pass the factory again: sketchbandit.load(path, base=...)"
            )
        sketch = super().undump({**scalars, "settings": settings}, arrays, **extra)
        if sketch._bases.described != described:
            raise FileError(f"the base given makes {sketch._bases.described}, but the file holds {described}")
        return sketch
