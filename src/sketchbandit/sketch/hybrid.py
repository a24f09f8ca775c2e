"""Rows while they are few, and X'X as a matrix once that is smaller."""

import math
import sys

import numpy as np
from numpy.typing import DTypeLike

from sketchbandit.arrays import AnyArray, Arrays, Matrix
from sketchbandit.sketch.accumulator import Accumulator
from sketchbandit.sketch.buffer import BufferedSketch, RowBuffer
from sketchbandit.sketch.change import NO_CHANGE, ONE_APPENDED, Change
from sketchbandit.sketch.telling import read_only
from sketchbandit.thread_safety import needs_the_lock

ADDED = Change(rebuilt=True, lossless=True)


class HybridSketch(BufferedSketch):
    """A buffer of rows that is replaced by a triangle of S'S before it needs more memory than that.

    Subclasses call ``_become_dense`` in ``_make_room``. After that nothing is ever lost.
    """

    def __init__(self, dim: int, dtype: DTypeLike) -> None:
        super().__init__(dim, dtype)
        self._most_rows = max(1, self.dim // 2)
        self._dense: Accumulator | None = None

    @property
    def is_dense(self) -> bool:
        """Whether S'S is held as a matrix rather than as rows."""
        return self._dense is not None

    @property
    def _rows_before_it_may_turn_dense(self) -> int:
        """The number of rows that can come before it may turn dense; no limit once it has."""
        return self._buffer.room if self._dense is None else sys.maxsize

    @property
    def lossless_room(self) -> int:
        """No limit once it is dense."""
        return super().lossless_room if self._dense is None else sys.maxsize

    @property
    def plain_room(self) -> int:
        """No limit once it is dense: the matrix takes rows in, and only ``rows`` are computed again."""
        return super().plain_room if self._dense is None else sys.maxsize

    @property
    def rows(self) -> AnyArray:
        """S, shape (r, dim): a read-only copy. It takes O(dim³) if the sketch is dense.

        It is float64 if the sketch holds a matrix, or rows for which float32 rounding would be too much.
        """
        return read_only(self._buffer.rows.copy() if self._dense is None else self._dense.rows)

    @needs_the_lock
    def views(self) -> tuple[AnyArray, ...]:
        """The buffer itself, unless the sketch is dense."""
        return (self._buffer.rows if self._dense is None else self._dense.rows,)

    @property
    def nbytes(self) -> int:
        """Bytes of the rows, or of the covariance and its pending rows."""
        return self._buffer.nbytes + (0 if self._dense is None else self._dense.nbytes)

    def gram(self) -> Matrix:
        """S'S."""
        return super().gram() if self._dense is None else self._dense.covariance()

    def _ingest_one(self, row: AnyArray, norm_sq: float) -> Change:
        if self._dense is None:
            return super()._ingest_one(row, norm_sq)
        return ADDED if self._dense.take(row) else ONE_APPENDED

    def _ingest(self, rows: AnyArray) -> Change:
        return self._store(rows)

    def _store(self, rows: AnyArray) -> Change:
        """Put rows that are counted already into the buffer or the matrix."""
        change = NO_CHANGE
        while len(rows):
            if self._dense is not None:
                return change.then(ADDED if self._dense.take(rows) else Change(len(rows)))
            some = rows[: self._buffer.room]
            change = change.then(super()._ingest(some))
            rows = rows[len(some) :]
        return change

    def _become_dense(self) -> Accumulator:
        self._dense = Accumulator(self.dim)
        self._dense.take_at_once(self._buffer.rows)
        self._buffer = RowBuffer(self.dim, 0, self.dtype)
        return self._dense

    def _scale(self, factor: float) -> None:
        """Multiply S'S by the factor."""
        if self._dense is None:
            self._buffer.scale(math.sqrt(factor))
        else:
            self._dense.forget(factor)

    def _absorb(self, other: "HybridSketch") -> None:
        if other._dense is not None:
            dense = self._become_dense() if self._dense is None else self._dense
            dense.add(other._dense)
        if other._buffer.is_float64 and not self._buffer.is_float64:
            self._buffer.widen()
        self._store(other._buffer.rows)

    def _rows_or_triangle(self) -> Arrays:
        """The arrays that ``_refill`` needs."""
        return {"rows": self._buffer.rows} if self._dense is None else self._dense.state()

    def _refill(self, arrays: Arrays) -> None:
        if "triangle" in arrays:
            self._dense = Accumulator(self.dim)
            self._dense.restore(arrays)
        else:
            if arrays["rows"].dtype == np.float64 and not self._buffer.is_float64:
                self._buffer.widen()
            self._buffer.append(arrays["rows"])
