"""Rows of other array libraries, summed up in X'X on their device."""

import math
from typing import Any

import numpy as np

from sketchbandit.array_api import Library, check_real_dtype, dtype_name, library_of
from sketchbandit.arrays import AnyArray, Vector
from sketchbandit.errors import InputError
from sketchbandit.sketch.row_stats import RowStats

MOST_DIM = 16384  # 2 GiB of float64
_FEW_ROWS, _SHORT = 64, 1024
"""How many rows wait for a product: at least and at most. float32 rounds sums of so many rows only little."""
_ELEMENTS = 1 << 25  # 256 MiB of float64: the most that is converted at a time
_MOST_SUMS = 512  # float32 sums before the gathered rows go into the sketch
_UNIT = {"float64": 2.0**-53, "float32": 2.0**-24}
_TINY = {"float64": 2.0**-1022, "float32": 2.0**-126}
_MOST_SHORT_MASS = 2.0**120  # limit for the mass of rows with float32 products
_COARSE_SUMS = 4.0  # times the unit: hardware that rounds factors does not round sums to nearest


def device_rows(rows: Any, dim: int) -> tuple[Library, Any]:
    """The library of the rows, and the rows as a matrix (n, dim). The entries are not checked."""
    library = library_of(rows)
    check_real_dtype(rows, "rows")
    rows = rows.detach() if library.name == "torch" else rows
    if rows.ndim == 1 and rows.shape[0] == dim:
        rows = library.xp.reshape(rows, (1, dim))
    if rows.ndim != 2:
        raise InputError(f"rows must be a vector or a matrix, got {rows.ndim} dimensions {tuple(rows.shape)}")
    if rows.shape[1] != dim:
        raise InputError(f"rows have length {rows.shape[1]}, but dim is {dim}")
    return library, rows


def pieces(rows: Any, most: int) -> list[Any]:
    """The rows in pieces of at most ``most``."""
    count = rows.shape[0]
    return [rows] if count <= most else [rows[at : at + most, :] for at in range(0, count, most)]


def device_norms_sq(library: Library, rows: Any) -> Vector:
    """The squared norms of the rows, as a numpy vector. They are not finite if a row is not."""
    norms_sq = []
    for piece in pieces(rows, max(1, _ELEMENTS // rows.shape[1])):
        wide = library.cast(piece, library.widest)
        norms_sq.append(library.to_host(library.xp.sum(wide * wide, axis=1)).astype(np.float64))
    return np.concatenate(norms_sq)


class Gathering:
    """X'X of rows that came as arrays of another library, on their device. A few rows wait uncombined.

    Products of up to 8192 rows are computed in float64 if that is as fast as float32, or if rows are float64.
    Otherwise products of 1024 rows are computed in float32, and added up in the widest dtype. All rounding is
    bounded. A product of n rows of mass m with unit roundoff u is off by at most n·u/(1 - n·u)·m in any
    direction, whatever the order of its sums. A sum of products is off by u times the mass so far.
    """

    def __init__(self, library: Library, dim: int, dtype: np.dtype[Any]) -> None:
        self.library = library
        self.row_stats = RowStats(dtype)
        self.rounding = 0.0
        self._dim = dim
        self._gram: Any = None
        self._waiting: list[Any] = []
        self._masses: list[Vector] = []
        self._sums = 0
        self._mass = 0.0  # of the rows in the gram matrix
        self._enough = max(_FEW_ROWS, min(_SHORT, dim // 4))

    def is_for(self, library: Library) -> bool:
        """Whether rows of this library and device can be added."""
        return library.name == self.library.name and str(library.device) == str(self.library.device)

    def has_room(self, rows: Any, mass: float) -> bool:
        """Whether the rows can be added without overflow."""
        widest, double = self.library.widest, self.library.xp.float64
        narrow = widest != double or self._product_dtype(rows) != double
        return self.row_stats.mass + mass < (_MOST_SHORT_MASS if narrow else math.inf)

    @property
    def is_full(self) -> bool:
        """Whether float32 has summed up enough."""
        return self.library.widest != self.library.xp.float64 and self._sums >= _MOST_SUMS

    def add(self, rows: Any, norms_sq: Vector) -> None:
        """Add finite rows (n, dim) with these squared norms: all of them, or none if memory runs out."""
        before = {**vars(self), "_waiting": [*self._waiting], "_masses": [*self._masses]}
        try:
            self._add(rows, norms_sq)
        except BaseException:
            vars(self).update(before)
            raise
        self.row_stats.add_rows(norms_sq)

    def _add(self, rows: Any, norms_sq: Vector) -> None:
        library, xp = self.library, self.library.xp
        dtype = self._product_dtype(rows)
        if self._waiting and self._waiting[0].dtype != dtype:
            self._multiply_waiting()
        most = min(8192, max(_FEW_ROWS, _ELEMENTS // self._dim)) if dtype == xp.float64 else _SHORT
        if rows.shape[0] + sum(map(len, self._masses)) < self._enough:
            given = library.cast(rows, dtype)
            self._waiting.append(xp.asarray(given, copy=True) if given is rows else given)
            self._masses.append(norms_sq)
        else:
            self._multiply_waiting()
            for at, piece in enumerate(pieces(rows, most)):
                self._multiply(library.cast(piece, dtype), norms_sq[at * most : (at + 1) * most])

    def _product_dtype(self, rows: Any) -> Any:
        library, xp = self.library, self.library.xp
        in_double = dtype_name(rows) == "float64" or library.doubles_are_fast
        return xp.float64 if in_double else xp.float32

    def _multiply_waiting(self) -> None:
        if self._waiting:
            self._multiply(self.library.xp.concat(self._waiting, axis=0), np.concatenate(self._masses))
            self._waiting, self._masses = [], []

    def _multiply(self, rows: Any, norms_sq: Vector) -> None:
        library, name = self.library, dtype_name(rows)
        product = library.cast(library.product(rows.T, rows), library.widest)
        self._gram = product if self._gram is None else self._gram + product
        self._sums += 1
        coarse, mass, count = library.product_unit(rows.dtype), float(norms_sq.sum()), len(norms_sq)
        sums = count * _UNIT[name] * (_COARSE_SUMS if coarse else 1.0)
        below = _TINY[name] * (count * self._dim + 2.0 * math.sqrt(count * self._dim * mass))
        self.rounding += mass * ((1.0 + coarse) ** 2 / (1.0 - sums) - 1.0) + below
        self._mass += mass
        self.rounding += 1.001 * _UNIT[dtype_name(product)] * self._mass

    @property
    def gram(self) -> Any:
        """X'X on the device, including the rows that wait."""
        self._multiply_waiting()
        return self._gram

    def drop_first(self) -> None:
        """Forget the rows that have waited longest: they are in the sketch."""
        del self._waiting[0], self._masses[0]

    @property
    def waiting(self) -> list[AnyArray] | None:
        """The waiting rows as numpy arrays, if there are no others; else None."""
        return None if self._gram is not None else [self.library.to_host(rows) for rows in self._waiting]
