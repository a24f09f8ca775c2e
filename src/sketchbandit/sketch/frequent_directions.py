"""Frequent Directions and its robust variants, and incremental SVD."""

import math
from typing import Self

import numpy as np
from numpy.typing import DTypeLike

from sketchbandit.array_api import Array
from sketchbandit.arrays import Arrays, Matrix, Scalars
from sketchbandit.linalg import factor_of_covariance, shrink, storing_error
from sketchbandit.sketch.accounts import NO_CHANGE, Change
from sketchbandit.sketch.checks import check_count, check_real
from sketchbandit.sketch.device_gram import DeviceGram, DeviceRows, truncated_eigh
from sketchbandit.sketch.row_store import BufferedSketch

_GRAM_TIMES_SIZE = 16
MOST_IN_GRAM = 2048  # columns: 32 MiB, and about a second for the eigenvectors


def gram_up_to(size: int) -> int:
    """The measured dim up to which one product (dim² flop per row) is cheaper than the shrinks."""
    return min(_GRAM_TIMES_SIZE * size, MOST_IN_GRAM)


class FrequentDirections(BufferedSketch):
    """Frequent Directions (Liberty 2013), with a buffer: O(dim · size) time per row, O(dim · size) memory.

    At every moment S'S ⪯ X'X ⪯ S'S + e I. The error bound e is at most Delta of the paper's eq. (spectral
    error),

        e <= min over k < size of |X - X_k|_F² / (size - k)    (k = 0: e <= mass / size).

    Up to 2·size rows are held. Then s = sigma_size² is taken from the whole spectrum, which leaves at most
    size - 1 rows. e is the sum of all s so far.

    Parameters
    ----------
    dim : int
        Length of a row.
    size : int
        l, the sketch size. Up to 2·l rows are held; the most recent ones are not shrunk yet.
    compensation : float
        alpha = compensation · e. 0 is FD. 0.5 is the RFD of Luo et al. (2019). 1 is the paper's "RFD" (the
        SCFD of Chen et al. 2021): then S'S + alpha I dominates X'X.
    dtype : dtype
        float64, or float32 for half the memory.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((1000, 40)) * 0.8 ** np.arange(40)
    >>> sketch = FrequentDirections(40, size=20)
    >>> change = sketch.update(X)
    >>> true_error = np.linalg.norm(X.T @ X - sketch.covariance(), 2)
    >>> bool(true_error <= sketch.error_bound <= sketch.mass / sketch.size)
    True
    >>> sketch.count, sketch.rows.shape[0] < 40
    (1000, True)

    """

    kind = "frequent-directions"
    _takes_products = True
    _head = 0
    """The number of leading directions that a shrink leaves as they are."""

    def __init__(
        self, dim: int, *, size: int = 50, compensation: float = 0.0, dtype: DTypeLike = np.float64
    ) -> None:
        super().__init__(dim, dtype, compensation)
        self._size = check_count("size", size, at_least=2)
        # No stream has a rank above dim, so a longer buffer would only hold redundant rows.
        self._store.buffer.limit = 2 * min(self._size, self.dim)
        self._on_device = DeviceRows()

    # -- what it tells ------------------------------------------------------------------------------

    @property
    def size(self) -> int:
        """The sketch size l: after a shrink at most l - 1 rows are left."""
        return self._size

    @property
    def compensation(self) -> float:
        """The share of the error bound that alpha gives back."""
        return self._account.compensation

    @property
    def guarantee(self) -> float:
        """error_bound - rounding <= mass / guarantee: a shrink by s takes s from so many directions."""
        return float(self._size - self._head)

    @property
    def exact_rank(self) -> int:
        """Streams of a rank below size are never shrunk."""
        return min(self._size - 1, self.dim)

    @property
    def gram_up_to_dim(self) -> int:
        """The measured dim up to which one product (dim² flop per row) is cheaper than the shrinks."""
        return gram_up_to(self._size)

    # -- the stream ---------------------------------------------------------------------------------

    def _make_room(self) -> Change:
        buffer = self._store.buffer
        done = shrink(buffer.writable(), self._size, head=self._head, products=buffer.known_products)
        # float32 rows are orthogonal only up to their own precision.
        orthogonal = buffer.is_float64
        buffer.truncate(done.kept, orthogonal=orthogonal)
        return Change(0, True, lossless=self._account.charge(done), orthogonal=orthogonal)

    def _compress(self) -> Change:
        """Shrink now, to at most size - 1 rows, and free the memory of the buffer."""
        change = self._make_room() if len(self._store.buffer) >= self._size else NO_CHANGE
        self._store.buffer.trim()
        return change

    def _forget(self, factor: float) -> Change:
        self._account.forget(factor, self.row_stats.mass)
        self._store.buffer.scale(math.sqrt(factor))
        self._account.charge_rounding(storing_error(self._store.buffer.rows, self.dtype))
        return Change(rebuilt=True)

    # -- many rows at once --------------------------------------------------------------------------

    def _add_gram(self, gram: Matrix) -> None:
        rows, remainder = factor_of_covariance(gram)
        if len(self._store.buffer):
            rows = np.concatenate([rows, self._store.buffer.rows])
        done = shrink(rows, self._size, head=self._head)
        kept = rows[: done.kept]
        self._store.buffer.hold(kept)
        self._account.charge(done)
        self._account.charge_rounding(remainder + storing_error(kept, self.dtype))

    def _update_foreign(self, rows: Array) -> Change:
        return self._on_device.update(self, rows, self._add_device_gram)

    def _add_device_gram(self, summed: DeviceGram) -> None:
        """Add the rows whose X'X is on a device, and their row_stats: all or nothing."""
        rows, amount, rounding = truncated_eigh(
            summed.library, summed.gram, self._store.buffer.rows, self._size, self._head
        )
        # only now: the device may run out of memory for the eigenvectors
        self.row_stats.add(summed.row_stats)
        self._store.buffer.hold(rows)
        # What rounding adds to the spectrum does not count as shrinkage.
        account = self._account
        room = max(0.0, self.row_stats.mass / self.guarantee - (account.error - account.rounding))
        account.error += min(amount, room)
        rounding += summed.rounding + max(0.0, amount - room)
        account.charge_rounding(rounding + storing_error(rows, self.dtype))

    # -- merge and files ----------------------------------------------------------------------------

    def _absorb(self, other: Self) -> None:
        self._account.add(other._account)
        self._ingest(other._store.buffer.rows)

    def _state(self) -> tuple[Scalars, Arrays]:
        return self._account.dump(), self._store.buffer.arrays()

    def _restore(self, scalars: Scalars, arrays: Arrays) -> None:
        self._account.restore(scalars)
        self._store.buffer.restore(arrays)


class IncrementalSVD(FrequentDirections):
    """Incremental SVD with a certified error, by shrinking the tail (Desai, Ghashami, Phillips 2016).

    Plain incremental SVD keeps the leading directions and drops the rest. This is excellent on most streams
    and arbitrarily wrong on some, without notice. Here the last ``tail`` of the ``size`` directions is
    shrunk as in Frequent Directions, which certifies the loss:

        S'S ⪯ X'X ⪯ S'S + e I,        e <= mass / ceil(tail · size).

    With the default tail this bound is five times that of Frequent Directions. The actual error is usually
    smaller, because the leading directions stay as they are.

    Parameters
    ----------
    dim : int
        Length of a row.
    size : int
        The sketch size: at most size - 1 rows after a shrink, up to 2·size in between.
    tail : float
        The fraction of directions that is shrunk. 1 is Frequent Directions.
    compensation : float
        alpha = compensation · e, as for ``FrequentDirections``.
    dtype : dtype
        float64, or float32 for half the memory.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((1000, 40)) * 0.8 ** np.arange(40)
    >>> sketch = IncrementalSVD(40, size=20)
    >>> change = sketch.update(X)
    >>> true_error = np.linalg.norm(X.T @ X - sketch.covariance(), 2)
    >>> bool(true_error <= sketch.error_bound <= sketch.mass / sketch.guarantee)
    True

    """

    kind = "incremental-svd"

    def __init__(
        self,
        dim: int,
        *,
        size: int = 50,
        tail: float = 0.2,
        compensation: float = 0.0,
        dtype: DTypeLike = np.float64,
    ) -> None:
        super().__init__(dim, size=size, compensation=compensation, dtype=dtype)
        self._tail = check_real("tail", tail, above=0.0, at_most=1.0)
        self._head = self._size - math.ceil(self._tail * self._size)

    @property
    def tail(self) -> float:
        """The fraction of directions that is shrunk."""
        return self._tail
