"""X'X itself, for sketches whose rows would take more memory than that."""

import math

import numpy as np

from sketchbandit.arrays import AnyArray, Arrays, Matrix
from sketchbandit.linalg import PackedSymmetric, covariance_of, factor_of_covariance
from sketchbandit.sketch.buffer import RowBuffer

_MOST_PENDING = 32  # rows that are added together: enough for full BLAS speed


class Accumulator:
    """A triangle of X'X, and up to 32 pending rows that it takes in together.

    Both are float64, whatever the dtype of the rows, because they sum up a long stream.
    """

    def __init__(self, dim: int) -> None:
        self._triangle = PackedSymmetric(dim)
        self._pending = RowBuffer(dim, min(_MOST_PENDING, max(1, dim // 4)), np.dtype(np.float64))

    @property
    def nbytes(self) -> int:
        """Bytes of the triangle and of the pending rows."""
        return self._triangle.nbytes + self._pending.nbytes

    @property
    def rows(self) -> Matrix:
        """S with S'S = X'X up to rounding, in O(dim³): a factor of the triangle, and the pending rows."""
        return np.concatenate([factor_of_covariance(self._triangle.full()).rows, self._pending.rows])

    def covariance(self) -> Matrix:
        """X'X."""
        covariance = self._triangle.full()
        if len(self._pending):
            covariance += covariance_of(self._pending.rows)
        return covariance

    def take(self, rows: AnyArray) -> bool:
        """Add rows. Return whether pending rows went into the triangle."""
        pending, flushed = self._pending, False
        if len(rows) == 1:  # the row of a round
            return self._take_some(rows)
        while len(rows):
            some = rows[: pending.room]
            rows = rows[len(some) :]
            flushed |= self._take_some(some)
        return flushed

    def _take_some(self, rows: AnyArray) -> bool:
        self._pending.append(rows)
        if self._pending.room:
            return False
        self.flush()
        return True

    def flush(self) -> None:
        """Add the pending rows to the triangle."""
        self._triangle.add_covariance(self._pending.rows)
        self._pending.truncate(0)

    def forget(self, factor: float) -> None:
        """Multiply X'X by the factor."""
        self._triangle.flat *= factor
        self._pending.scale(math.sqrt(factor))

    def trim(self) -> None:
        """Free the memory of the pending rows."""
        self.flush()
        self._pending.trim()

    def add(self, other: "Accumulator") -> None:
        """Add another X'X."""
        self._triangle.add(other._triangle)
        self.take(other._pending.rows)

    def add_covariance(self, covariance: Matrix) -> None:
        """Add X'X of other rows."""
        self._triangle.add_full(covariance)

    def take_at_once(self, rows: AnyArray) -> None:
        """Add many rows directly to the triangle."""
        self._triangle.add_covariance(rows)

    def state(self) -> Arrays:
        """What ``restore`` needs."""
        return {"triangle": self._triangle.flat, "pending": self._pending.rows}

    def restore(self, arrays: Arrays) -> None:
        """Set the state that ``state`` returned."""
        self._triangle.flat[:] = arrays["triangle"]
        self._pending.append(arrays["pending"])
