"""The exact sketch, which loses nothing."""

import sys
from typing import Self

import numpy as np
from numpy.typing import DTypeLike

from sketchbandit.arrays import Arrays, Matrix, Scalars
from sketchbandit.linalg import are_independent, shrink
from sketchbandit.sketch.accounts import ADDED, NO_CHANGE, Change
from sketchbandit.sketch.frequent_directions import MOST_IN_GRAM
from sketchbandit.sketch.row_store import BufferedSketch

_FIRST_LIMIT = 32  # rows before the first search for redundancy


class ExactSketch(BufferedSketch):
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
        super().__init__(dim, dtype, stored=np.float64)
        self._store.buffer.limit = min(_FIRST_LIMIT, self._store.most_rows)

    @classmethod
    def beside(cls, others: int, dim: int, dtype: DTypeLike) -> "ExactSketch":
        """A sketch that counts ``others`` rows, held elsewhere, as its own when it decides to turn dense."""
        sketch = cls(dim, dtype=dtype)
        store = sketch._store
        store.most_rows = max(1, store.most_rows - others)
        store.buffer.limit = min(_FIRST_LIMIT, store.most_rows)
        return sketch

    # -- what it tells ------------------------------------------------------------------------------

    @property
    def size(self) -> int:
        """The rank it can hold, which is dim."""
        return self.dim

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
        return MOST_IN_GRAM

    # -- the stream ---------------------------------------------------------------------------------

    def _make_room(self) -> Change:
        store = self._store
        if store.is_dense:
            store.flush()
            return ADDED
        limit, is_last = store.limit, store.limit >= store.most_rows
        worth = 3 * store.most_rows // 4 if is_last else limit // 2  # with fewer rows another look pays off
        change = self._remove_redundancy(worth=worth)
        if len(store.buffer) <= worth:
            return change
        if not is_last:
            store.buffer.limit = min(2 * limit, store.most_rows)
            return change
        store.become_dense()
        return ADDED

    def _remove_redundancy(self, *, worth: int) -> Change:
        """Reduce the rows to their rank, unless that is above ``worth``."""
        buffer = self._store.buffer
        if are_independent(buffer.rows):
            return NO_CHANGE
        # No stream has a rank above dim, so with size = dim + 1 nothing is subtracted or dropped.
        done = shrink(buffer.writable(), self.dim + 1, most=0.0, worth=worth)
        if not done.rotated:
            return NO_CHANGE
        buffer.truncate(done.kept, orthogonal=True)
        self._account.drift += done.arithmetic
        return Change(rebuilt=True, lossless=True, orthogonal=True)

    def _compress(self) -> Change:
        """Remove redundant rows now, and free their memory."""
        change = ADDED if self._store.is_dense else self._remove_redundancy(worth=self.dim)
        self._store.trim()
        return change

    def _forget(self, factor: float) -> Change:
        self._account.forget(factor, self.row_stats.mass)
        self._store.scale(factor)
        return Change(rebuilt=True)

    def _add_gram(self, gram: Matrix) -> None:
        self._store.become_dense().add_full(gram)

    # -- merge and files ----------------------------------------------------------------------------

    def _absorb(self, other: Self) -> None:
        self._account.add(other._account)
        self._store.add_matrix_of(other._store)
        self._ingest(other._store.buffer.rows)

    def _state(self) -> tuple[Scalars, Arrays]:
        store, drift = self._store, self._account.drift
        return {"limit": store.limit, "most_rows": store.most_rows, "drift": drift}, store.arrays()

    def _restore(self, scalars: Scalars, arrays: Arrays) -> None:
        self._store.most_rows = int(scalars["most_rows"])
        self._account.drift = float(scalars.get("drift", 0.0))  # files of 0.6 have none
        self._store.restore(int(scalars["limit"]), arrays)
