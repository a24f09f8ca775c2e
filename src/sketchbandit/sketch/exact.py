"""The sketch that loses nothing."""

import sys
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from sketchbandit.linalg import are_independent, covariance_of, shrink
from sketchbandit.sketch.base import Arrays, Change, Scalars
from sketchbandit.sketch.buffer import BufferedSketch, RowBuffer

_FIRST_LIMIT = 32  # rows before the first look for redundancy
_MOST_PENDING = 64  # rows that a dense covariance takes in at a time: enough for full BLAS speed


class ExactSketch(BufferedSketch):
    """Keeps X'X exactly: the oracle, and the last block of dyadic block sketching.

    While the rows span at most half the space it holds rows, without redundancy: O(dim · k) memory for a
    stream of rank k. Beyond that a dense covariance is smaller, and it holds X'X, (dim, dim), which takes
    in up to 64 pending rows at a time: in float64 whatever the dtype, because it sums a long stream.
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
        self._buffer.limit = min(_FIRST_LIMIT, self.dim)
        self._dense: NDArray[np.float64] | None = None

    @property
    def size(self) -> int:
        """The rank it can hold: all of it."""
        return self.dim

    @property
    def is_dense(self) -> bool:
        """Whether X'X is held as a (dim, dim) matrix rather than as rows."""
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
        sigma_sq, right = np.linalg.eigh(self._dense)
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
    def exact_rank(self) -> int:
        """Any rank is kept."""
        return self.dim

    def covariance(self) -> NDArray[np.float64]:
        """X'X."""
        if self._dense is None:
            return super().covariance()
        return self._dense + covariance_of(self._buffer.rows)

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
        if self._buffer.limit < self.dim:
            self._buffer.limit = min(2 * self._buffer.limit, self.dim)
            return change
        self._become_dense()
        return Change(rebuilt=True)

    def _remove_redundancy(self) -> Change:
        if are_independent(self._buffer.rows):
            return Change()
        # No stream has rank above dim, so size = dim + 1 never subtracts anything.
        kept, _ = shrink(self._buffer.writable(), self.dim + 1)
        self._buffer.truncate(kept)
        return Change(rebuilt=True)

    def _become_dense(self) -> NDArray[np.float64]:
        self._dense = covariance_of(self._buffer.rows)
        self._buffer = RowBuffer(self.dim, min(_MOST_PENDING, max(1, self.dim // 8)), self.dtype)
        return self._dense

    def _add_pending(self, dense: NDArray[np.float64]) -> Change:
        dense += covariance_of(self._buffer.rows)
        self._buffer.truncate(0)
        return Change(rebuilt=True)

    def _absorb(self, other: "ExactSketch") -> None:
        if other._dense is not None:
            dense = self._become_dense() if self._dense is None else self._dense
            dense += other._dense
        self._ingest(other._buffer.rows)

    def _settings(self) -> Scalars:
        return {"dim": self.dim, "dtype": self.dtype.name}

    def _state(self) -> tuple[Scalars, Arrays]:
        arrays: Arrays = {"rows": self._buffer.rows}
        if self._dense is not None:
            arrays["dense"] = self._dense
        return {"limit": self._buffer.limit}, arrays

    def _restore(self, scalars: Scalars, arrays: Arrays) -> None:
        self._dense = arrays.get("dense")
        self._buffer.limit = int(scalars["limit"])
        self._buffer.append(arrays["rows"])
