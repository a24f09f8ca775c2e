"""Base class of Frequent Directions and incremental SVD: a buffer of rows, shrunk when it is full."""

import math

import numpy as np
from numpy.typing import DTypeLike

from sketchbandit.arrays import AnyArray, Arrays, Matrix, Scalars
from sketchbandit.linalg import factor_of_covariance, shrink, storing_error
from sketchbandit.sketch.buffer import BufferedSketch
from sketchbandit.sketch.change import Change
from sketchbandit.sketch.checks import check_compensation, check_count
from sketchbandit.sketch.device_gram import Gathering
from sketchbandit.sketch.device_sketch import DeviceSketch
from sketchbandit.sketch.error_account import ErrorAccount
from sketchbandit.sketch.telling import read_only
from sketchbandit.sketch.truncated_eigh import cut

GATHER_TIMES_SIZE = 16
MOST_GATHERED = 2048  # columns: 32 MiB, and about a second for the eigenvectors


class ShrinkingSketch(DeviceSketch, ErrorAccount, BufferedSketch):
    """Shrinks up to 2·size buffered rows to at most size - 1: s = sigma_size² is taken from the spectrum.

    The error bound is the sum of all s so far. alpha gives back the share ``compensation`` of it. The first
    ``head`` directions of each shrink are not reduced.
    """

    def __init__(self, dim: int, size: int, head: int, compensation: float, dtype: DTypeLike) -> None:
        super().__init__(dim, dtype)
        self._size = check_count("size", size, at_least=2)
        self._head = head
        self._compensation = check_compensation(compensation)
        # No stream has a rank above dim, so a longer buffer would only hold redundant rows.
        self._buffer.limit = 2 * min(self._size, self.dim)

    @property
    def size(self) -> int:
        """The sketch size l: after a shrink at most l - 1 rows are left."""
        return self._size

    @property
    def rows(self) -> AnyArray:
        """S, shape (r, dim), including buffered rows: a read-only copy."""
        return read_only(self._buffer.rows.copy())

    @property
    def nbytes(self) -> int:
        """Bytes of the row buffer, the only array held."""
        return self._buffer.nbytes

    @property
    def guarantee(self) -> float:
        """error_bound - rounding <= mass / guarantee: a shrink by s takes s from so many directions."""
        return float(self._size - self._head)

    @property
    def exact_rank(self) -> int:
        """Streams of a rank below size are never shrunk."""
        return min(self._size - 1, self.dim)

    def _compress(self) -> Change:
        """Shrink now, to at most size - 1 rows, and free the memory of the buffer."""
        change = Change()
        if len(self._buffer) >= self._size:
            change = self._make_room()
        self._buffer.trim()
        return change

    def _make_room(self) -> Change:
        done = shrink(self._buffer.writable(), self._size, head=self._head)
        self._buffer.truncate(done.kept)
        # float32 rows are orthogonal only up to their own precision.
        return Change(0, True, lossless=self._charge(done), orthogonal=self.dtype == np.float64)

    def _forget(self, factor: float) -> Change:
        self._discount(factor)
        self._buffer.scale(math.sqrt(factor))
        self._charge_rounding(storing_error(self._buffer.rows, self.dtype))
        return Change(rebuilt=True)

    @property
    def gram_up_to_dim(self) -> int:
        """The measured dim up to which one product (dim² flop per row) is cheaper than the shrinks."""
        return min(GATHER_TIMES_SIZE * self._size, MOST_GATHERED)

    def _add_gram(self, gram: Matrix) -> None:
        rows, remainder = factor_of_covariance(gram)
        if len(self._buffer):
            rows = np.concatenate([rows, self._buffer.rows])
        done = shrink(rows, self._size, head=self._head)
        kept = rows[: done.kept]
        self._buffer.truncate(0)
        self._buffer.append(kept)
        self._charge(done)
        self._charge_rounding(remainder + storing_error(kept, self.dtype))

    def _add_gathered(self, gathered: Gathering) -> None:
        rows, amount, rounding = cut(
            gathered.library, gathered.gram, self._buffer.rows, self._size, self._head
        )
        # only now: the device may run out of memory for the eigenvectors
        self.row_stats.add(
            gathered.row_stats
        )  # only now: the device may run out of memory for the eigenvectors
        self._buffer.truncate(0)
        self._buffer.append(rows)
        # What rounding adds to the spectrum does not count as shrinkage.
        room = max(0.0, self.row_stats.mass / self.guarantee - (self._error - self._rounding))
        self._error += min(amount, room)
        rounding += gathered.rounding + max(0.0, amount - room)
        self._charge_rounding(rounding + storing_error(rows, self.dtype))

    def _absorb(self, other: "ShrinkingSketch") -> None:
        self._take_over(other)
        self._ingest(other._buffer.rows)

    def _state(self) -> tuple[Scalars, Arrays]:
        return self._account(), {"rows": self._buffer.rows}

    def _restore(self, scalars: Scalars, arrays: Arrays) -> None:
        self._set_account(scalars)
        self._buffer.append(arrays["rows"])
