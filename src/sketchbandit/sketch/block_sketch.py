"""Base class of sketches made of blocks: sums over the blocks, and their files."""

import numpy as np
from numpy.typing import DTypeLike

from sketchbandit.arrays import AnyArray, Arrays, Matrix, Parts, Scalars, taken_from, under
from sketchbandit.linalg import covariance_of
from sketchbandit.sketch.base import Sketch
from sketchbandit.sketch.blocks import Block, WorkingBlock
from sketchbandit.sketch.change import Change
from sketchbandit.sketch.telling import read_only
from sketchbandit.thread_safety import needs_the_lock

_LOST = ("error", "rounding", "uncounted", "alpha")


class BlockSketch(Sketch):
    """Frozen blocks, oldest first, then the active block; and the losses of merged sketches."""

    def __init__(self, dim: int, dtype: DTypeLike) -> None:
        super().__init__(dim, dtype)
        self._blocks: list[WorkingBlock] = []
        self._merged = dict.fromkeys(_LOST, 0.0)
        """The losses of merged sketches."""
        self._carried = dict.fromkeys(_LOST, 0.0)
        """The losses of blocks that were dissolved after enough was forgotten."""

    @property
    def _active(self) -> WorkingBlock:
        return self._blocks[-1]

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
        return self._lost_before("alpha") + sum(block.sketch.alpha for block in self._blocks)

    @property
    def error_bound(self) -> float:
        """The sum of the error bounds of all blocks (Lemma Decomposability)."""
        return self._lost_before("error") + sum(block.sketch.error_bound for block in self._blocks)

    @property
    def rounding(self) -> float:
        """The part of the error bound that is rounding. S'S may exceed X'X by as much."""
        return self._lost_before("rounding") + sum(block.sketch.rounding for block in self._blocks)

    @property
    def uncounted(self) -> float:
        """Rounding in float64 that the error bound leaves out."""
        return self._lost_before("uncounted") + sum(block.sketch.uncounted for block in self._blocks)

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

    def _lost_before(self, name: str) -> float:
        return self._merged[name] + self._carried[name]

    def _check_can_forget(self) -> None:
        super()._check_can_forget()
        for block in self._blocks:
            if isinstance(block.sketch, Sketch):  # it may come from a user's own base
                block.sketch._check_can_forget()

    def _forget(self, factor: float) -> Change:
        for block in self._blocks:
            block.forget(factor)
        for lost in (self._merged, self._carried):
            for name in lost:
                lost[name] *= factor
        return Change(rebuilt=True)

    def _take_over(self, other: "BlockSketch") -> None:
        """Add the losses of another sketch, but not its rows."""
        self._merged["error"] += other.error_bound
        self._merged["rounding"] += other.rounding
        self._merged["uncounted"] += other.uncounted
        self._merged["alpha"] += other.alpha

    def _state(self) -> tuple[Scalars, Arrays]:
        blocks: list[Scalars] = []
        arrays: Arrays = {}
        for index, block in enumerate(self._blocks):
            scalars, parts = block.dump()
            blocks.append(scalars)
            arrays |= under(str(index), parts)
        lost = {f"merged_{name}": value for name, value in self._merged.items()}
        if any(self._carried.values()):
            lost |= {f"carried_{name}": value for name, value in self._carried.items()}
        return {**lost, "blocks": blocks}, arrays

    def _restore(self, scalars: Scalars, arrays: Arrays) -> None:
        self._merged = {name: float(scalars.get(f"merged_{name}", 0.0)) for name in _LOST}
        self._carried = {name: float(scalars.get(f"carried_{name}", 0.0)) for name in _LOST}
        self._blocks = []
        for index, saved in enumerate(scalars["blocks"]):
            self._blocks.append(WorkingBlock.undump(saved, taken_from(str(index), arrays)))
