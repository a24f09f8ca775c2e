"""The exact sketch, which loses nothing."""

import sys
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from sketchbandit.arrays import Arrays, Matrix, Scalars
from sketchbandit.linalg import SCALING_ROUNDING, are_independent, shrink
from sketchbandit.sketch.buffer import RowBuffer
from sketchbandit.sketch.change import NO_CHANGE, Change
from sketchbandit.sketch.hybrid import ADDED, HybridSketch
from sketchbandit.sketch.shrinking import MOST_GATHERED

_FIRST_LIMIT = 32  # rows before the first search for redundancy


class ExactSketch(HybridSketch):
    """Keeps X'X exactly. It is used for OFUL, as the last block of ``DyadicBlockSketch``, and as an oracle.

    It holds rows without redundancy, which takes O(dim · k) memory for a stream of rank k. Once they fill
    half of dim², from a rank between 3/8 and 1/2 of dim on, it holds a triangle of X'X instead, because that
    is smaller. The triangle takes in up to 32 pending rows at a time. Both are float64 whatever the dtype,
    because they sum up a long stream. The dtype says how rows are read and returned. With a triangle,
    ``rows`` is a factor computed on demand in O(dim³); ``covariance()`` is the cheap way to read the sketch.

    Parameters
    ----------
    dim : int
        Length of a row.
    dtype : dtype
        float64 or float32.

    Examples
    --------
    >>> X = np.random.default_rng(0).standard_normal((500, 3)) @ np.eye(3, 1000)
    >>> sketch = ExactSketch(1000)
    >>> change = sketch.update(X)
    >>> sketch.error_bound, len(sketch.rows) < 64, sketch.is_dense
    (0.0, True, False)

    """

    kind = "exact"

    def __init__(self, dim: int, *, dtype: DTypeLike = np.float64) -> None:
        super().__init__(dim, dtype)
        self._buffer = RowBuffer(self.dim, min(_FIRST_LIMIT, self._most_rows), np.dtype(np.float64))
        self._drift = 0.0

    @classmethod
    def beside(cls, others: int, dim: int, dtype: DTypeLike) -> "ExactSketch":
        """A sketch that counts ``others`` rows, held elsewhere, as its own when it decides to turn dense."""
        sketch = cls(dim, dtype=dtype)
        sketch._most_rows = max(1, sketch._most_rows - others)
        sketch._buffer.limit = min(_FIRST_LIMIT, sketch._most_rows)
        return sketch

    @property
    def size(self) -> int:
        """The rank it can hold, which is dim."""
        return self.dim

    @property
    def uncounted(self) -> float:
        """A bound on the rounding of float64 sums in any direction, also while redundant rows are removed."""
        return super().uncounted + self._drift

    @property
    def alpha(self) -> float:
        """Zero: there is nothing to compensate."""
        return 0.0

    @property
    def error_bound(self) -> float:
        """Zero: nothing is ever shrunk."""
        return 0.0

    @property
    def guarantee(self) -> float:
        """Infinite: no loss on any stream."""
        return float("inf")

    @property
    def error_limit(self) -> float:
        """Zero: no loss on any stream."""
        return 0.0

    @property
    def exact_rank(self) -> int:
        """dim: every rank is kept."""
        return self.dim

    @property
    def lossless_room(self) -> int:
        """No limit."""
        return sys.maxsize

    @property
    def gram_up_to_dim(self) -> int:
        """The limit for X'X, which it holds sooner or later anyway."""
        return MOST_GATHERED

    def _compress(self) -> Change:
        """Remove redundant rows now, and free their memory."""
        if self._dense is not None:
            self._dense.trim()
            return ADDED
        change = self._remove_redundancy(worth=self.dim)
        self._buffer.trim()
        return change

    def _make_room(self) -> Change:
        limit, is_last = self._buffer.limit, self._buffer.limit >= self._most_rows
        worth = 3 * self._most_rows // 4 if is_last else limit // 2  # with fewer rows another look pays off
        change = self._remove_redundancy(worth=worth)
        if len(self._buffer) <= worth:
            return change
        if not is_last:
            self._buffer.limit = min(2 * limit, self._most_rows)
            return change
        self._become_dense()
        return ADDED

    def _remove_redundancy(self, *, worth: int) -> Change:
        """Reduce the rows to their rank, unless that is above ``worth``."""
        if are_independent(self._buffer.rows):
            return NO_CHANGE
        # No stream has a rank above dim, so with size = dim + 1 nothing is subtracted or dropped.
        done = shrink(self._buffer.writable(), self.dim + 1, most=0.0, worth=worth)
        if not done.rotated:
            return NO_CHANGE
        self._buffer.truncate(done.kept)
        self._drift += done.arithmetic
        return Change(rebuilt=True, lossless=True, orthogonal=True)

    def _forget(self, factor: float) -> Change:
        self._drift = self._drift * factor + SCALING_ROUNDING * self.row_stats.mass
        self._scale(factor)
        return Change(rebuilt=True)

    def _add_gram(self, gram: Matrix) -> None:
        (self._become_dense() if self._dense is None else self._dense).add_covariance(gram)

    def _absorb(self, other: Any) -> None:
        self._drift += other._drift
        super()._absorb(other)

    def _settings(self) -> Scalars:
        return {"dim": self.dim, "dtype": self.dtype.name}

    def _state(self) -> tuple[Scalars, Arrays]:
        scalars = {"limit": self._buffer.limit, "most_rows": self._most_rows, "drift": self._drift}
        return scalars, self._rows_or_triangle()

    def _restore(self, scalars: Scalars, arrays: Arrays) -> None:
        self._most_rows = int(scalars["most_rows"])
        self._buffer.limit = int(scalars["limit"])
        self._drift = float(scalars.get("drift", 0.0))  # files of 0.6 have none
        self._refill(arrays)
