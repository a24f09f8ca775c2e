"""The sketch that loses nothing."""

import sys
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from sketchbandit.arrays import Arrays, Matrix, Scalars
from sketchbandit.linalg import SCALING_ROUNDING, are_independent, shrink
from sketchbandit.sketch.buffer import RowBuffer
from sketchbandit.sketch.change import NO_CHANGE, Change
from sketchbandit.sketch.densifying import ADDED, DensifyingSketch
from sketchbandit.sketch.shrinking import MOST_GATHERED

_FIRST_LIMIT = 32  # rows before the first look for redundancy


class ExactSketch(DensifyingSketch):
    """Keeps X'X exactly: the oracle, and the last block of dyadic block sketching.

    It holds rows, without redundancy, O(dim · k) memory for a stream of rank k, until they fill half of
    dim²: from a rank between 3/8 and 1/2 of dim on. Then a triangle of X'X is smaller, and it holds that,
    which takes in up to 32 pending rows at a time. Both are float64 whatever the dtype, because they sum up a
    long stream: the dtype says how rows are read, and told.
    ``rows`` is then a factor computed on demand, O(dim³); ``covariance()`` is the cheap way to read it.

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
        """One that counts ``others`` rows, held elsewhere, as its own when it decides to turn dense."""
        sketch = cls(dim, dtype=dtype)
        sketch._most_rows = max(1, sketch._most_rows - others)
        sketch._buffer.limit = min(_FIRST_LIMIT, sketch._most_rows)
        return sketch

    @property
    def size(self) -> int:
        """The rank it can hold: all of it."""
        return self.dim

    @property
    def uncounted(self) -> float:
        """What sums in float64 may have changed in any direction, also while redundant rows were removed."""
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
        """No loss whatever the stream."""
        return float("inf")

    @property
    def error_limit(self) -> float:
        """No loss whatever the stream."""
        return 0.0

    @property
    def exact_rank(self) -> int:
        """Any rank is kept."""
        return self.dim

    @property
    def lossless_room(self) -> int:
        """No limit."""
        return sys.maxsize

    @property
    def gram_up_to_dim(self) -> int:
        """X'X is what it holds sooner or later."""
        return MOST_GATHERED

    def _compress(self) -> Change:
        """Remove redundant rows now and give back the memory they took."""
        if self._dense is not None:
            self._dense.trim()
            return ADDED
        change = self._remove_redundancy(worth=self.dim)
        self._buffer.trim()
        return change

    def _make_room(self) -> Change:
        limit, is_last = self._buffer.limit, self._buffer.limit >= self._most_rows
        worth = 3 * self._most_rows // 4 if is_last else limit // 2  # with fewer rows looking again pays
        change = self._remove_redundancy(worth=worth)
        if len(self._buffer) <= worth:
            return change
        if not is_last:
            self._buffer.limit = min(2 * limit, self._most_rows)
            return change
        self._become_dense()
        return ADDED

    def _remove_redundancy(self, *, worth: int) -> Change:
        """Leave the rank of the rows, unless that is above ``worth``."""
        if are_independent(self._buffer.rows):
            return NO_CHANGE
        # No stream has rank above dim, so size = dim + 1 never subtracts anything; nor is anything dropped.
        done = shrink(self._buffer.writable(), self.dim + 1, most=0.0, worth=worth)
        if not done.rotated:
            return NO_CHANGE
        self._buffer.truncate(done.kept)
        self._drift += done.arithmetic
        return Change(rebuilt=True, lossless=True, orthogonal=True)

    def _forget(self, factor: float) -> Change:
        self._drift = self._drift * factor + SCALING_ROUNDING * self.tally.mass
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
