"""The sketch that loses nothing."""

import sys
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from sketchbandit.linalg import PackedSymmetric, are_independent, covariance_of, shrink
from sketchbandit.sketch.base import Arrays, Change, Scalars
from sketchbandit.sketch.buffer import BufferedSketch, RowBuffer

_FIRST_LIMIT = 32  # rows before the first look for redundancy
_MOST_PENDING = 32  # rows that a dense covariance takes in at a time: enough for full BLAS speed


class ExactSketch(BufferedSketch):
    """Keeps X'X exactly: the oracle, and the last block of dyadic block sketching.

    It holds rows, without redundancy, O(dim · k) memory for a stream of rank k, until they fill half of
    dim²: from a rank between 3/8 and 1/2 of dim on. Then a triangle of X'X is smaller, and it holds that,
    which takes in up to 32 pending rows at a time: in float64 whatever the dtype, because it sums a long
    stream.
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
        self._most_rows = max(1, self.dim // 2)
        self._buffer.limit = min(_FIRST_LIMIT, self._most_rows)
        self._dense: PackedSymmetric | None = None

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
    def is_dense(self) -> bool:
        """Whether X'X is held as a matrix rather than as rows."""
        return self._dense is not None

    @property
    def rows_before_it_may_turn_dense(self) -> int:
        """How many rows can come before it may turn dense: no limit once it has."""
        return self._buffer.room if self._dense is None else sys.maxsize

    @property
    def rows(self) -> NDArray[Any]:
        """S with S'S = X'X, read-only. O(dim³) when the sketch is dense."""
        if self._dense is None:
            return self._buffer.rows
        sigma_sq, right = np.linalg.eigh(self._dense.full())
        alive = sigma_sq > 0.0
        factor = np.sqrt(sigma_sq[alive])[:, np.newaxis] * right[:, alive].T
        rows = np.concatenate([factor.astype(self.dtype), self._buffer.rows])
        rows.flags.writeable = False
        return rows

    @property
    def alpha(self) -> float:
        """Zero: there is nothing to compensate."""
        return 0.0

    @property
    def error_bound(self) -> float:
        """Zero: nothing is ever shrunk."""
        return 0.0

    @property
    def nbytes(self) -> int:
        """Bytes of the rows, or of the covariance and its pending rows."""
        return self._buffer.nbytes + (0 if self._dense is None else self._dense.nbytes)

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

    def covariance(self) -> NDArray[np.float64]:
        """X'X."""
        if self._dense is None:
            return super().covariance()
        covariance = self._dense.full()
        covariance += covariance_of(self._buffer.rows)
        return covariance

    def compress(self) -> Change:
        """Remove redundant rows now and give back the memory they took."""
        change = self._remove_redundancy() if self._dense is None else self._add_pending(self._dense)
        self._buffer.trim()
        return change

    def _make_room(self) -> Change:
        if self._dense is not None:
            return self._add_pending(self._dense)
        change = self._remove_redundancy()
        if 2 * len(self._buffer) <= self._buffer.limit:
            return change
        if self._buffer.limit < self._most_rows:
            self._buffer.limit = min(2 * self._buffer.limit, self._most_rows)
            return change
        if 4 * self._buffer.room >= self._most_rows:  # enough that looking again pays
            return change
        self._become_dense()
        return Change(rebuilt=True, lossless=True)

    def _remove_redundancy(self) -> Change:
        if are_independent(self._buffer.rows):
            return Change()
        # No stream has rank above dim, so size = dim + 1 never subtracts anything.
        kept, _ = shrink(self._buffer.writable(), self.dim + 1)
        self._buffer.truncate(kept)
        return Change(rebuilt=True, lossless=True, orthogonal=self.dtype == np.float64)

    def _become_dense(self) -> PackedSymmetric:
        self._dense = PackedSymmetric(self.dim)
        self._dense.add_covariance(self._buffer.rows)
        self._buffer = RowBuffer(self.dim, min(_MOST_PENDING, max(1, self.dim // 4)), self.dtype)
        return self._dense

    def _add_pending(self, dense: PackedSymmetric) -> Change:
        dense.add_covariance(self._buffer.rows)
        self._buffer.truncate(0)
        return Change(rebuilt=True, lossless=True)

    def _absorb(self, other: "ExactSketch") -> None:
        if other._dense is not None:
            dense = self._become_dense() if self._dense is None else self._dense
            dense.add(other._dense)
        self._ingest(other._buffer.rows)

    def _settings(self) -> Scalars:
        return {"dim": self.dim, "dtype": self.dtype.name}

    def _state(self) -> tuple[Scalars, Arrays]:
        arrays: Arrays = {"rows": self._buffer.rows}
        if self._dense is not None:
            arrays["triangle"] = self._dense.flat
        return {"limit": self._buffer.limit, "most_rows": self._most_rows}, arrays

    def _restore(self, scalars: Scalars, arrays: Arrays) -> None:
        if "triangle" in arrays:
            self._dense = PackedSymmetric(self.dim)
            self._dense.flat[:] = arrays["triangle"]
        self._most_rows = int(scalars["most_rows"])
        self._buffer.limit = int(scalars["limit"])
        self._buffer.append(arrays["rows"])
