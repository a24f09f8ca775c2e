"""Where a sketch holds its rows: in a buffer, or in S'S once that is smaller. The base of those that do."""

import math
import sys
from abc import abstractmethod
from collections.abc import Callable

import numpy as np
from numpy.typing import DTypeLike

from sketchbandit.arrays import AnyArray, Arrays, Dtype, Matrix, Parts, Vector
from sketchbandit.linalg import PackedSymmetric, covariance_of, factor_of_covariance, row_norms_sq
from sketchbandit.linalg.products import gram
from sketchbandit.sketch.accounts import NO_CHANGE, ONE_APPENDED, Change, ErrorAccount
from sketchbandit.sketch.base import Sketch, read_only
from sketchbandit.thread_safety import needs_the_lock

_FIRST_ALLOCATION = 16  # rows
_MUCH = 1.25  # times the limit: more memory than this is freed
_NONE: Vector = np.empty(0)
_MOST_PENDING = 32  # rows that are added to a matrix together: enough for full BLAS speed


class RowBuffer:
    """Up to ``limit`` rows of length ``dim``. Memory is allocated as rows come: the array doubles.

    A row x may come with its products S x with all rows S before it. They are kept until the rows change, if
    rows are so long that this takes little memory, and save most of the work of SS'.
    """

    def __init__(self, dim: int, limit: int, dtype: Dtype) -> None:
        self.limit = limit
        self._dim = dim
        self._array: AnyArray = np.empty((0, dim), dtype)
        self._count = 0
        self._view: AnyArray | None = None  # a view of the rows held; None if it is out of date
        self._products: Vector = _NONE  # of the rows from the first with products on: S x and |x|² of each
        self._first = 0  # the first row with products, if there are any
        self._filled = 0  # the number of products, if there are any
        self._gram: Matrix | None = None  # SS' of the rows before it, once it was computed
        self.orthogonal = 0
        """The number of leading rows that are orthogonal to one another in float64."""
        self.share = 15
        """How many times the memory of the products the rows must take for products to be kept."""

    def __len__(self) -> int:
        return self._count

    @property
    def room(self) -> int:
        """The number of rows that still fit."""
        return self.limit - self._count

    @property
    def plain_room(self) -> int:
        """The number of rows that can come before the one that fills it."""
        return max(0, self.limit - self._count - 1)

    @property
    def rows(self) -> AnyArray:
        """The rows held, as a read-only view."""
        view = self._view
        if view is None:
            view = self._array[: self._count]
            view.setflags(write=False)
            self._view = view
        return view

    @property
    def nbytes(self) -> int:
        """Bytes allocated, used or not."""
        return self._array.nbytes + self._products.nbytes + (0 if self._gram is None else self._gram.nbytes)

    @property
    def is_float64(self) -> bool:
        """Whether rows are held in float64."""
        return self._array.dtype == np.float64

    def writable(self) -> AnyArray:
        """The rows held, to be changed in place."""
        return self._array[: self._count]

    def products(self) -> Matrix:
        """SS'. Products that are known, and zeros of orthogonal rows, are not computed again."""
        count = self._count
        first = self._first if len(self._products) else count
        of_first = self._gram
        if of_first is None or len(of_first) != first:
            # A shrink looks at the diagonal.
            with np.errstate(over="ignore", under="ignore", invalid="ignore"):
                rows = self._array[:first]
                of_first = np.diag(row_norms_sq(rows)) if first == self.orthogonal else gram(rows)
            self._gram = of_first if self._has_long_rows() else None
        if first == count:
            return of_first.copy()
        products = np.zeros((count, count))
        products[first:][np.tri(count - first, count, first, dtype=bool)] = self._known
        products += np.tril(products, -1).T
        products[:first, :first] = of_first
        return products

    @property
    def known_products(self) -> Matrix | None:
        """SS' if rows came with their products, else None."""
        return self.products() if len(self._products) else None

    @property
    def _known(self) -> Vector:
        """The products of the rows held, one after the other."""
        return self._products[: self._filled]

    def _has_long_rows(self) -> bool:
        """Whether products take little memory beside the rows."""
        return 4 * self.share * (self.limit + 1) <= self._dim * self._array.itemsize

    def append(self, rows: AnyArray, products: Vector | None = None, norm_sq: float = 0.0) -> bool:
        """Add rows at the end, for which there must be room. Return whether the buffer is full now.

        ``products`` and ``norm_sq`` are S x and |x|² of a single row x, if they are known.
        """
        count = self._count
        end = count + len(rows)
        if end > len(self._array):
            self._reallocate(min(self.limit, max(end, 2 * len(self._array), _FIRST_ALLOCATION)))
        if products is not None and (len(self._products) or (count and self._has_long_rows())):
            if not len(self._products):
                self._first = count
                self._products = np.empty(_triangle(self.limit) - _triangle(count))
                self._filled = 0
            start = self._filled
            self._products[start : start + count] = products
            self._products[start + count] = norm_sq
            self._filled = start + count + 1
        elif len(self._products):
            self._products = _NONE
        self._array[count:end] = rows
        self._count = end
        self._view = None
        return end >= self.limit

    def fill(self, rows: AnyArray, make_room: Callable[[], Change]) -> Change:
        """Add any number of rows. ``make_room`` is called whenever the buffer is full."""
        change = NO_CHANGE
        while len(rows):
            some = rows[: self.room]
            rows = rows[len(some) :]
            is_full = self.append(some)
            change = change.then(Change(len(some)))
            if is_full:
                change = change.then(make_room())
        return change

    def hold(self, rows: AnyArray) -> None:
        """Hold these rows instead of those before."""
        self.truncate(0)
        self.append(rows)

    def restart(self, limit: int, dtype: Dtype) -> None:
        """Hold no rows, and later up to ``limit`` of this dtype."""
        self.limit = limit
        self._array = np.empty((0, self._dim), dtype)
        self.truncate(0)

    def truncate(self, count: int, *, orthogonal: bool = False) -> None:
        """Drop all rows except the first ``count``, and the products."""
        self._count = count
        self._view = None
        self._products, self._gram = _NONE, None
        self.orthogonal = count if orthogonal else 0

    def scale(self, root: float) -> None:
        """Multiply every row, in float64 before it is stored."""
        rows, self._gram = self.writable(), None
        np.multiply(rows, np.float64(root), out=rows, casting="same_kind")
        if self.is_float64:
            self._products[: self._filled] *= root * root
        else:  # rounded rows have others
            self._products = _NONE

    def trim(self) -> None:
        """Free the memory that no row uses."""
        if len(self._array) > self._count:
            self._reallocate(self._count)

    def widen(self) -> None:
        """Hold rows in float64 from now on."""
        self._array = self._array.astype(np.float64)
        self._view = None

    def resize(self, limit: int) -> None:
        """Set the limit, and free memory that is far above it."""
        self.limit = limit
        if self._has_long_rows():
            self._reserve_products()
        else:
            self._products = _NONE
        if len(self._array) > _MUCH * limit:
            self._reallocate(limit)

    def _reserve_products(self) -> None:
        """Make room for the products of as many rows as fit, if there are any."""
        if len(self._products):
            known = self._known
            self._products = np.empty(_triangle(self.limit) - _triangle(self._first))
            self._products[: len(known)] = known

    def _reallocate(self, allocated: int) -> None:
        array = np.empty((allocated, self._dim), self._array.dtype)
        array[: self._count] = self._array[: self._count]
        self._array = array
        self._view = None

    def arrays(self) -> Arrays:
        """The arrays that ``restore`` needs."""
        arrays: Arrays = {"rows": self.rows}
        if len(self._products):
            arrays["products"] = self._known
        if self.orthogonal:
            arrays["orthogonal"] = np.array([self.orthogonal])
        return arrays

    def restore(self, arrays: Arrays) -> None:
        """Hold what ``arrays`` returned."""
        self.append(arrays["rows"])
        if "orthogonal" in arrays:  # files of 0.15 have none
            self.orthogonal = int(arrays["orthogonal"][0])
        if "products" in arrays:
            known = arrays["products"]
            self._first = (math.isqrt(8 * (_triangle(self._count) - len(known)) + 1) - 1) // 2
            self._products, self._filled = known, len(known)
            self._reserve_products()

    def __getstate__(self) -> dict[str, object]:
        return {**vars(self), "_view": None}  # a copied view would be a separate array


def _triangle(count: int) -> int:
    """The number of products of so many rows with themselves and the rows before."""
    return count * (count + 1) // 2


class HybridStore:
    """S as rows in a buffer, and S'S as a triangle once that takes less memory.

    Rows then wait in a buffer of 32, which are added to the triangle together. Both are float64, whatever the
    dtype of the rows, because they sum up a long stream. The sketch appends rows to ``buffer`` in either
    case. When that is full, it calls ``flush`` if there is a matrix, else it makes room, or ``become_dense``.
    """

    def __init__(self, dim: int, dtype: Dtype) -> None:
        self.most_rows = max(1, dim // 2)
        """The number of rows that a matrix is worth."""
        self.buffer = RowBuffer(dim, 0, dtype)
        self._triangle: PackedSymmetric | None = None
        self._dim, self._dtype = dim, dtype

    @property
    def is_dense(self) -> bool:
        """Whether S'S is held as a matrix."""
        return self._triangle is not None

    @property
    def plain_room(self) -> int:
        """The number of rows that can come and are only appended: no limit once there is a matrix."""
        return self.buffer.plain_room if self._triangle is None else sys.maxsize

    @property
    def rows(self) -> AnyArray:
        """S, without a copy if there are rows. With a matrix, a factor of it, in O(dim³)."""
        if self._triangle is None:
            return self.buffer.rows
        return np.concatenate([factor_of_covariance(self._triangle.full()).rows, self.buffer.rows])

    @property
    def nbytes(self) -> int:
        """Bytes of the rows, and of the triangle."""
        return self.buffer.nbytes + (0 if self._triangle is None else self._triangle.nbytes)

    def gram(self) -> Matrix:
        """S'S, a new array."""
        if self._triangle is None:
            return covariance_of(self.buffer.rows)
        gram = self._triangle.full()
        if len(self.buffer):
            gram += covariance_of(self.buffer.rows)
        return gram

    def become_dense(self) -> PackedSymmetric:
        """Turn the rows into a matrix, unless there is one. Return it."""
        if self._triangle is None:
            triangle = PackedSymmetric(self._dim)
            triangle.add_covariance(self.buffer.rows)
            self.buffer.restart(min(_MOST_PENDING, max(1, self._dim // 4)), np.dtype(np.float64))
            self._triangle = triangle
        return self._triangle

    def become_rows(self) -> None:
        """Drop the matrix. The buffer is empty, and its limit is to be set."""
        self._triangle = None
        self.buffer.restart(0, self._dtype)

    def flush(self) -> None:
        """Add the pending rows to the matrix, if there is one."""
        if self._triangle is not None:
            self._triangle.add_covariance(self.buffer.rows)
            self.buffer.truncate(0)

    def add_matrix_of(self, other: "HybridStore") -> None:
        """Add the matrix of another store, if it has one. The rows in its buffer are still to be added."""
        if other._triangle is not None:
            self.become_dense().add(other._triangle)
        elif other.buffer.is_float64 and not self.buffer.is_float64:
            self.buffer.widen()

    def scale(self, factor: float) -> None:
        """Multiply S'S by the factor."""
        self.buffer.scale(math.sqrt(factor))
        if self._triangle is not None:
            self._triangle.flat *= factor

    def trim(self) -> None:
        """Free the memory that no row uses."""
        self.flush()
        self.buffer.trim()

    # -- files ----------------------------------------------------------------------------------------

    @property
    def limit(self) -> int:
        """The number of rows it may hold; 0 once there is a matrix."""
        return self.buffer.limit if self._triangle is None else 0

    def arrays(self) -> Arrays:
        """The arrays that ``restore`` needs."""
        if self._triangle is None:
            return self.buffer.arrays()
        return {"triangle": self._triangle.flat, "pending": self.buffer.rows}

    def restore(self, limit: int, arrays: Arrays) -> None:
        """Set the ``limit`` and the ``arrays`` of a store."""
        if "triangle" in arrays:
            self.become_dense().flat[:] = arrays["triangle"]
            self.buffer.append(arrays["pending"])
            return
        self.buffer.limit = limit
        if arrays["rows"].dtype == np.float64 and not self.buffer.is_float64:
            self.buffer.widen()
        self.buffer.restore(arrays)


class BufferedSketch(Sketch):
    """A sketch that holds its rows in a store, and its losses in an account. Subclasses make room for more.

    Attributes
    ----------
    _store : HybridStore
        S, as rows or as S'S.
    _account : ErrorAccount
        alpha, e and rounding.

    """

    def __init__(
        self, dim: int, dtype: DTypeLike, compensation: float = 0.0, *, stored: DTypeLike | None = None
    ) -> None:
        super().__init__(dim, dtype)
        self._store = HybridStore(self.dim, self.dtype if stored is None else np.dtype(stored))
        self._account = ErrorAccount(compensation)

    @property
    def alpha(self) -> float:
        """compensation · e: X'X is estimated by S'S + alpha I."""
        return self._account.alpha

    @property
    def error_bound(self) -> float:
        """The error bound e: the sum of all shrinkage so far, plus what rounding may have taken."""
        return self._account.error

    @property
    def rounding(self) -> float:
        """The part of the error bound that is rounding. S'S may exceed X'X by as much."""
        return self._account.rounding

    @property
    def uncounted(self) -> float:
        """Rounding in float64 that the error bound leaves out: at most about 1e-11 of the mass."""
        return super().uncounted + self._account.lossy + self._account.drift

    @property
    def plain_room(self) -> int:
        """The free rows of the buffer minus one: the row that fills it is not only appended.

        No limit once the sketch is dense: the matrix takes rows in, and only ``rows`` are computed again.
        """
        return self._store.plain_room

    @property
    def is_dense(self) -> bool:
        """Whether S'S is held as a matrix rather than as rows."""
        return self._store.is_dense

    @property
    def rows(self) -> AnyArray:
        """S, shape (r, dim), including buffered rows: a read-only copy, in O(dim³) if the sketch is dense.

        It is float64 if the sketch holds a matrix, or rows for which float32 rounding would be too much.
        """
        return read_only(self._store.rows.copy())

    @needs_the_lock
    def views(self) -> Parts:
        """The buffer itself, unless the sketch is dense."""
        return (self._store.rows,)

    @needs_the_lock
    def row_products(self, *, orthogonal: bool = False) -> Matrix:
        """SS', of which the buffer knows parts. Not of a matrix."""
        store = self._store
        return super().row_products(orthogonal=orthogonal) if store.is_dense else store.buffer.products()

    def gram(self) -> Matrix:
        """S'S."""
        return self._store.gram()

    @property
    def nbytes(self) -> int:
        """Bytes of the rows, or of the covariance and its pending rows."""
        return self._store.nbytes

    # -- the stream ---------------------------------------------------------------------------------

    @abstractmethod
    def _make_room(self) -> Change:
        """Make room in the full buffer."""

    def _ingest_one(self, row: AnyArray, norm_sq: float) -> Change:
        del norm_sq
        return ONE_APPENDED.then(self._make_room()) if self._store.buffer.append(row) else ONE_APPENDED

    def _ingest_with_products(self, row: AnyArray, norm_sq: float, products: Vector) -> Change:
        known = None if self._store.is_dense else products
        is_full = self._store.buffer.append(row, known, norm_sq)
        return ONE_APPENDED.then(self._make_room()) if is_full else ONE_APPENDED

    def _ingest(self, rows: AnyArray) -> Change:
        return self._store.buffer.fill(rows, self._make_room)
