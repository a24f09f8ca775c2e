"""The array that holds the rows of a sketch, and the base class of sketches with such a buffer."""

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from sketchbandit.arrays import AnyArray
from sketchbandit.sketch.base import Sketch
from sketchbandit.sketch.change import NO_CHANGE, ONE_APPENDED, Change
from sketchbandit.thread_safety import needs_the_lock

_FIRST_ALLOCATION = 16  # rows
_MUCH = 1.25  # times the limit: more memory than this is freed


class RowBuffer:
    """Up to ``limit`` rows of length ``dim``. Memory is allocated as rows come: the array doubles."""

    def __init__(self, dim: int, limit: int, dtype: np.dtype[Any]) -> None:
        self.limit = limit
        self._array: AnyArray = np.empty((0, dim), dtype)
        self._count = 0
        self._view: AnyArray | None = None  # a view of the rows held; None if it is out of date

    def __len__(self) -> int:
        return self._count

    @property
    def room(self) -> int:
        """The number of rows that still fit."""
        return self.limit - self._count

    @property
    def rows(self) -> AnyArray:
        """The rows held, as a read-only view."""
        view = self._view
        if view is None:
            view = self._array[: self._count]
            view.flags.writeable = False
            self._view = view
        return view

    @property
    def nbytes(self) -> int:
        """Bytes allocated, used or not."""
        return self._array.nbytes

    def writable(self) -> AnyArray:
        """The rows held, to be changed in place."""
        return self._array[: self._count]

    def append(self, rows: AnyArray) -> None:
        """Add rows at the end. There must be room."""
        end = self._count + len(rows)
        if end > len(self._array):
            self._reallocate(min(self.limit, max(end, 2 * len(self._array), _FIRST_ALLOCATION)))
        self._array[self._count : end] = rows
        self._count = end
        self._view = None

    def truncate(self, count: int) -> None:
        """Drop all rows except the first ``count``."""
        self._count = count
        self._view = None

    def scale(self, root: float) -> None:
        """Multiply every row, in float64 before it is stored."""
        rows = self.writable()
        np.multiply(rows, np.float64(root), out=rows, casting="same_kind")

    def trim(self) -> None:
        """Free the memory that no row uses."""
        if len(self._array) > self._count:
            self._reallocate(self._count)

    @property
    def is_float64(self) -> bool:
        """Whether rows are held in float64."""
        return self._array.dtype == np.float64

    def widen(self) -> None:
        """Hold rows in float64 from now on."""
        self._array = self._array.astype(np.float64)
        self._view = None

    def resize(self, limit: int) -> None:
        """Set the limit, and free memory that is far above it."""
        self.limit = limit
        if len(self._array) > _MUCH * limit:
            self._reallocate(limit)

    def _reallocate(self, allocated: int) -> None:
        array = np.empty((allocated, self._array.shape[1]), self._array.dtype)
        array[: self._count] = self._array[: self._count]
        self._array = array
        self._view = None

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_view": None}  # a copied view would be a separate array


class BufferedSketch(Sketch):
    """A sketch that appends rows to a buffer, and makes room when it is full. Subclasses set the limit."""

    def __init__(self, dim: int, dtype: DTypeLike) -> None:
        super().__init__(dim, dtype)
        self._buffer = RowBuffer(self.dim, 0, self.dtype)

    @property
    def lossless_room(self) -> int:
        """The free rows of the buffer minus one: the row that fills it may cause a loss."""
        return max(0, self._buffer.room - 1)

    @property
    def plain_room(self) -> int:
        """The free rows of the buffer minus one: the row that fills it is not only appended."""
        return max(0, self._buffer.room - 1)

    @abstractmethod
    def _make_room(self) -> Change:
        """Make room for at least one row in the full buffer."""

    @needs_the_lock
    def views(self) -> tuple[AnyArray, ...]:
        """The buffer itself."""
        return (self._buffer.rows,)

    def _ingest_one(self, row: AnyArray, norm_sq: float) -> Change:  # the fast path
        del norm_sq
        buffer = self._buffer
        buffer.append(row)
        return ONE_APPENDED if buffer._count < buffer.limit else ONE_APPENDED.then(self._make_room())

    def _ingest(self, rows: AnyArray) -> Change:
        change = NO_CHANGE
        taken = 0
        while taken < len(rows):
            some = rows[taken : taken + self._buffer.room]
            self._buffer.append(some)
            taken += len(some)
            change = change.then(Change(len(some)))
            if not self._buffer.room:
                change = change.then(self._make_room())
        return change
