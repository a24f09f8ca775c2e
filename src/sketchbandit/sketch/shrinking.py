"""What Frequent Directions and incremental SVD share: a buffer of rows, shrunk whenever it is full."""

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from sketchbandit.linalg import gram_spectrum, shrink
from sketchbandit.sketch.accumulator import Accumulator
from sketchbandit.sketch.base import NO_CHANGE, ONE_APPENDED, Arrays, Change, Scalars
from sketchbandit.sketch.buffer import BufferedSketch
from sketchbandit.sketch.checks import check_compensation, check_count

_ADDED = Change(rebuilt=True, lossless=True)


class ShrinkingSketch(BufferedSketch):
    """Up to 2·size buffered rows -> at most size - 1, by taking s = sigma_size² from the squared spectrum.

    The certificate is the sum of every s so far; ``compensation`` says how much of it alpha gives back.
    The first ``head`` directions of each shrink are not reduced.
    """

    def __init__(self, dim: int, size: int, head: int, compensation: float, dtype: DTypeLike) -> None:
        super().__init__(dim, dtype)
        self._size = check_count("size", size, at_least=2)
        self._head = head
        self._compensation = check_compensation(compensation)
        self._buffer.limit = 2 * self._size
        # Where 2·size rows would take more memory than S'S, that is held, and shrunk at the same times.
        self._dense = Accumulator(self.dim, self.dtype) if 2 * self._size > self.dim else None
        self._dense_rows = 0  # how many the buffer would hold
        self._error = 0.0

    @property
    def size(self) -> int:
        """The sketch size l: after a shrink at most l - 1 rows are left."""
        return self._size

    @property
    def compensation(self) -> float:
        """The part of the certificate that alpha gives back."""
        return self._compensation

    @property
    def rows(self) -> NDArray[Any]:
        """S, (r, dim), buffered rows included, read-only. O(dim³) when the sketch is dense."""
        return self._buffer.rows if self._dense is None else self._dense.rows

    @property
    def is_dense(self) -> bool:
        """Whether S'S is held as a matrix rather than as rows: where 2·size exceeds dim."""
        return self._dense is not None

    @property
    def error_bound(self) -> float:
        """The certificate e: the sum of all shrinkage so far."""
        return self._error

    @property
    def alpha(self) -> float:
        """compensation · e: X'X is estimated by S'S + alpha I."""
        return self._compensation * self._error

    @property
    def nbytes(self) -> int:
        """Bytes of the row buffer, or of S'S and its pending rows."""
        return self._buffer.nbytes if self._dense is None else self._dense.nbytes

    @property
    def guarantee(self) -> float:
        """Each shrink by s takes s from this many directions, so error_bound <= mass / guarantee."""
        return float(self._size - self._head)

    @property
    def exact_rank(self) -> int:
        """Streams of rank below size are never shrunk."""
        return min(self._size - 1, self.dim)

    def covariance(self) -> NDArray[np.float64]:
        """S'S + alpha I."""
        if self._dense is None:
            return super().covariance()
        covariance = self._dense.covariance()
        covariance[np.diag_indices_from(covariance)] += self.alpha
        return covariance

    def _compress(self) -> Change:
        """Shrink now, to at most size - 1 rows, and give back the memory of the buffer."""
        change = Change()
        if self._dense is not None:
            if self._size <= self.dim and self._dense_rows >= self._size:
                change = self._shrink_dense(self._dense)
            self._dense.trim()
            return change.then(_ADDED)
        if len(self._buffer) >= self._size:
            change = self._make_room()
        self._buffer.trim()
        return change

    def _take_one(self, row: NDArray[Any], norm_sq: float) -> Change:
        dense, exact = self._dense, self._size > self.dim
        if dense is None or not norm_sq or (not exact and self._dense_rows + 1 == self._buffer.limit):
            return super()._take_one(row, norm_sq)
        self._count += 1
        self._mass += norm_sq
        self._dense_rows += not exact
        return _ADDED if dense.take(row) else ONE_APPENDED

    def _ingest(self, rows: NDArray[Any]) -> Change:
        dense = self._dense
        if dense is None:
            return super()._ingest(rows)
        if self._size > self.dim:  # nothing is ever lost
            return _ADDED if dense.take(rows) else Change(len(rows))
        change = NO_CHANGE
        while len(rows):
            some = rows[: self._buffer.limit - self._dense_rows]
            rows = rows[len(some) :]
            change = change.then(_ADDED if dense.take(some) else Change(len(some)))
            self._dense_rows += len(some)
            if self._dense_rows == self._buffer.limit:
                change = change.then(self._shrink_dense(dense))
        return change

    def _shrink_dense(self, dense: Accumulator) -> Change:
        """The shrink in terms of S'S: keep sigma_i² - s for i < size."""
        dense.flush()
        sigma_sq, right = gram_spectrum(dense.covariance())
        rounding = 4.0 * self.dim * float(np.finfo(np.float64).eps) * sigma_sq[0]
        amount = float(sigma_sq[self._size - 1])
        self._dense_rows = min(int(np.count_nonzero(sigma_sq > rounding)), self._size - 1)
        if amount <= rounding:  # nothing to see, and nothing is lost by keeping it
            return _ADDED
        kept = sigma_sq[: self._size - 1] - amount
        kept[: self._head] += amount
        dense.replace(np.sqrt(kept)[:, np.newaxis] * right[: self._size - 1])
        self._error += amount
        return Change(rebuilt=True)

    def _make_room(self) -> Change:
        kept, amount = shrink(self._buffer.writable(), self._size, head=self._head)
        self._buffer.truncate(kept)
        self._error += amount
        # float32 rows are orthogonal to their own precision only.
        return Change(0, True, lossless=amount == 0.0, orthogonal=self.dtype == np.float64)

    def _absorb(self, other: "ShrinkingSketch") -> None:
        self._error += other._error
        if self._dense is None or other._dense is None:  # both or neither: the settings are the same
            self._ingest(other.rows)
            return
        self._dense.add(other._dense)
        self._dense_rows += other._dense_rows
        if self._size <= self.dim and self._dense_rows >= self._buffer.limit:
            self._shrink_dense(self._dense)

    def _state(self) -> tuple[Scalars, Arrays]:
        arrays = {"rows": self._buffer.rows} if self._dense is None else self._dense.state()
        return {"error": self._error, "dense_rows": self._dense_rows}, arrays

    def _restore(self, scalars: Scalars, arrays: Arrays) -> None:
        self._error = float(scalars["error"])
        self._dense_rows = int(scalars["dense_rows"])
        if self._dense is None:
            self._buffer.append(arrays["rows"])
        else:
            self._dense.restore(arrays)
