"""Where a sketch holds its rows: in a buffer, or in S'S once that is smaller."""

import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from sketchbandit.arrays import AnyArray, Arrays, Matrix, Vector
from sketchbandit.linalg import PackedSymmetric, covariance_of, factor_of_covariance, row_norms_sq
from sketchbandit.linalg.panels import gram
from sketchbandit.sketch.change import NO_CHANGE, Change

_FIRST_ALLOCATION = 16  # rows
_MUCH = 1.25  # times the limit: more memory than this is freed
_NONE: Matrix = np.empty((0, 0))
_MOST_PENDING = 32  # rows that are added to a matrix together: enough for full BLAS speed


class RowBuffer:
    """Up to ``limit`` rows of length ``dim``. Memory is allocated as rows come: the array doubles.

    A row x may come with its products Sx with all rows S before it. These are kept until the rows change.
    """

    def __init__(self, dim: int, limit: int, dtype: np.dtype[Any]) -> None:
        self.limit = limit
        self._dim = dim
        self._array: AnyArray = np.empty((0, dim), dtype)
        self._count = 0
        self._view: AnyArray | None = None  # a view of the rows held; None if it is out of date
        self._products: Matrix = _NONE  # of the rows from the first with products on, and zeros
        self._first = 0  # the first row with products, if there are any

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
            view.flags.writeable = False
            self._view = view
        return view

    @property
    def nbytes(self) -> int:
        """Bytes allocated, used or not."""
        return self._array.nbytes + self._products.nbytes

    @property
    def is_float64(self) -> bool:
        """Whether rows are held in float64."""
        return self._array.dtype == np.float64

    def writable(self) -> AnyArray:
        """The rows held, to be changed in place."""
        return self._array[: self._count]

    def products(self) -> Matrix | None:
        """SS', if rows came with their products. Only those of the rows before them are computed."""
        if not len(self._products):
            return None
        count, first = self._count, self._first
        products = np.zeros((count, count))
        products[first:] = self._products[: count - first, :count]
        products += products.T
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):  # a shrink looks at the diagonal
            products[:first, :first] = gram(self._array[:first])
            products[np.diag_indices(count)] = row_norms_sq(self._array[:count])
        return products

    def append(self, rows: AnyArray, products: Vector | None = None) -> bool:
        """Add rows at the end, for which there must be room. Return whether the buffer is full now.

        ``products`` are those of a single row, if they are known.
        """
        count = self._count
        end = count + len(rows)
        if end > len(self._array):
            self._reallocate(min(self.limit, max(end, 2 * len(self._array), _FIRST_ALLOCATION)))
        if products is not None and count:  # the first row has none
            if not len(self._products):
                self._first, self._products = count, np.zeros((self.limit - count, self.limit))
            self._products[count - self._first, :count] = products
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

    def restart(self, limit: int, dtype: np.dtype[Any]) -> None:
        """Hold no rows, and later up to ``limit`` of this dtype."""
        self.limit = limit
        self._array = np.empty((0, self._dim), dtype)
        self.truncate(0)

    def truncate(self, count: int) -> None:
        """Drop all rows except the first ``count``, and the products."""
        self._count = count
        self._view = None
        self._products = _NONE

    def scale(self, root: float) -> None:
        """Multiply every row, in float64 before it is stored."""
        rows, self._products = self.writable(), _NONE
        np.multiply(rows, np.float64(root), out=rows, casting="same_kind")

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
        if len(self._array) > _MUCH * limit:
            self._reallocate(limit)

    def _reallocate(self, allocated: int) -> None:
        array = np.empty((allocated, self._dim), self._array.dtype)
        array[: self._count] = self._array[: self._count]
        self._array = array
        self._view = None

    def arrays(self) -> Arrays:
        """The arrays that ``restore`` needs."""
        if not len(self._products):
            return {"rows": self.rows}
        return {"rows": self.rows, "products": self._products[: self._count - self._first]}

    def restore(self, arrays: Arrays) -> None:
        """Hold what ``arrays`` returned."""
        self.append(arrays["rows"])
        if "products" in arrays:
            known = arrays["products"]
            self._first = self._count - len(known)
            self._products = np.zeros((self.limit - self._first, self.limit))
            self._products[: len(known)] = known

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_view": None}  # a copied view would be a separate array


class HybridStore:
    """S as rows in a buffer, and S'S as a triangle once that takes less memory.

    Rows then wait in a buffer of 32, which are added to the triangle together. Both are float64, whatever the
    dtype of the rows, because they sum up a long stream. The sketch appends rows to ``buffer`` in either
    case. When that is full, it calls ``flush`` if there is a matrix, else it makes room, or ``become_dense``.
    """

    def __init__(self, dim: int, dtype: np.dtype[Any]) -> None:
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
