"""Rows of other array libraries, summed up in X'X on their device until a sketch takes them in."""

import math
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from sketchbandit.array_api import HOST, Array, DType, Library, dtype_name
from sketchbandit.arrays import AnyArray, Dtype, Matrix, Vector
from sketchbandit.linalg import oriented, row_norms_sq
from sketchbandit.sketch.accounts import NO_CHANGE, Change, RowStats
from sketchbandit.sketch.base import Sketch
from sketchbandit.sketch.row_input import device_rows, read_rows
from sketchbandit.thread_safety import SharedLock

_MOST_DIM = 16384  # 2 GiB of float64
_FEW_ROWS, _SHORT = 64, 1024
"""How many rows wait for a product: at least and at most. float32 rounds sums of so many rows only little."""
_ELEMENTS = 1 << 25  # 256 MiB of float64: the most that is converted at a time
_MOST_SUMS = 512  # float32 sums before the gathered rows go into the sketch
_UNIT = {"float64": 2.0**-53, "float32": 2.0**-24}
_TINY = {"float64": 2.0**-1022, "float32": 2.0**-126}
_MOST_SHORT_MASS = 2.0**120  # limit for the mass of rows with float32 products
_COARSE_SUMS = 4.0  # times the unit: hardware that rounds factors does not round sums to nearest


def pieces(rows: Array, most: int) -> list[Array]:
    """The rows in pieces of at most ``most``."""
    count = rows.shape[0]
    return [rows] if count <= most else [rows[at : at + most, :] for at in range(0, count, most)]


def device_norms_sq(library: Library, rows: Array) -> Vector:
    """The squared norms of the rows, as a numpy vector. They are not finite if a row is not."""
    norms_sq = []
    for piece in pieces(rows, max(1, _ELEMENTS // rows.shape[1])):
        wide = library.cast(piece, library.widest)
        norms_sq.append(library.to_host(library.xp.sum(wide * wide, axis=1)).astype(np.float64))
    return np.concatenate(norms_sq)


class DeviceGram:
    """X'X of rows that came as arrays of another library, on their device. A few rows wait uncombined.

    Products of up to 8192 rows are computed in float64 if that is as fast as float32, or if rows are float64.
    Otherwise products of 1024 rows are computed in float32, and added up in the widest dtype. All rounding is
    bounded. A product of n rows of mass m with unit roundoff u is off by at most n·u/(1 - n·u)·m in any
    direction, whatever the order of its sums. A sum of products is off by u times the mass so far.
    """

    def __init__(self, library: Library, dim: int, dtype: Dtype) -> None:
        self.library = library
        self.row_stats = RowStats(dtype)
        self.rounding = 0.0
        self._dim = dim
        self._gram: Array | None = None
        self._waiting: list[Array] = []
        self._masses: list[Vector] = []
        self._sums = 0
        self._mass = 0.0  # of the rows in the gram matrix
        self._enough = max(_FEW_ROWS, min(_SHORT, dim // 4))

    def is_for(self, library: Library) -> bool:
        """Whether rows of this library and device can be added."""
        return library.name == self.library.name and str(library.device) == str(self.library.device)

    def has_room(self, rows: Array, mass: float) -> bool:
        """Whether the rows can be added without overflow."""
        widest, double = self.library.widest, self.library.xp.float64
        narrow = widest != double or self._product_dtype(rows) != double
        return self.row_stats.mass + mass < (_MOST_SHORT_MASS if narrow else math.inf)

    @property
    def is_full(self) -> bool:
        """Whether float32 has summed up enough."""
        return self.library.widest != self.library.xp.float64 and self._sums >= _MOST_SUMS

    def add(self, rows: Array, norms_sq: Vector) -> None:
        """Add finite rows (n, dim) with these squared norms: all of them, or none if memory runs out."""
        before = {**vars(self), "_waiting": [*self._waiting], "_masses": [*self._masses]}
        try:
            self._add(rows, norms_sq)
        except BaseException:
            vars(self).update(before)
            raise
        self.row_stats.add_rows(norms_sq)

    def _add(self, rows: Array, norms_sq: Vector) -> None:
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

    def _product_dtype(self, rows: Array) -> DType:
        library, xp = self.library, self.library.xp
        in_double = dtype_name(rows) == "float64" or library.doubles_are_fast
        return xp.float64 if in_double else xp.float32

    def _multiply_waiting(self) -> None:
        if self._waiting:
            self._multiply(self.library.xp.concat(self._waiting, axis=0), np.concatenate(self._masses))
            self._waiting, self._masses = [], []

    def _multiply(self, rows: Array, norms_sq: Vector) -> None:
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
    def gram(self) -> Array:
        """X'X on the device, including the rows that wait."""
        self._multiply_waiting()
        assert self._gram is not None  # noqa: S101  (for the type checker: there are rows)
        return self._gram

    def drop_first(self) -> None:
        """Forget the rows that have waited longest: they are in the sketch."""
        del self._waiting[0], self._masses[0]

    @property
    def waiting(self) -> list[AnyArray] | None:
        """The waiting rows as numpy arrays, if there are no others; else None."""
        return None if self._gram is not None else [self.library.to_host(rows) for rows in self._waiting]


class DeviceRows:
    """Rows on a device, up to dim = 16384, that a sketch was given and has not taken in yet.

    They are summed up in X'X on the device. They go into the sketch as soon as its lock is taken, which every
    public call does: every read, copy, merge and save. So each read after new rows costs a shrink, and may
    lose something.
    """

    def __init__(self) -> None:
        self._summed: DeviceGram | None = None

    def update(self, sketch: Sketch, rows: Array, add: Callable[[DeviceGram], None]) -> Change:
        """Do ``sketch.update``. ``add`` puts X'X and its row_stats into the sketch: all or nothing."""
        library, rows = device_rows(rows, sketch.dim)
        if not rows.shape[0]:
            return NO_CHANGE
        if sketch.dim > _MOST_DIM:
            return sketch.update(library.to_host(rows))
        if sketch.dtype == np.float32 and dtype_name(rows) == "float64":
            rows = library.cast(rows, library.xp.float32)
        norms_sq = device_norms_sq(library, rows)
        if not np.isfinite(norms_sq).all():  # on the device: raise with the reason, or take them in float64
            rows = library.to_host(rows)
            read_rows(rows, sketch.dim, sketch.dtype)
            return sketch.update(rows)
        lock = sketch._lock
        assert isinstance(lock, SharedLock)  # noqa: S101  (for the type checker)
        lock.acquire()  # plainly: the rows before stay on the device
        try:
            fits, is_first = self._sum_up(sketch, library, rows, norms_sq)
            if is_first:
                lock.put_off(partial(self._take_in, sketch, add))
        finally:
            lock.release()
        return Change(rebuilt=True) if fits else sketch.update(library.to_host(rows))

    def _sum_up(self, sketch: Sketch, library: Library, rows: Array, norms_sq: Vector) -> tuple[bool, bool]:
        """Add rows to those that were summed up. Return whether they fit into float32, and are the first."""
        mass, summed = float(norms_sq.sum()), self._summed
        sketch.row_stats.check(mass + (summed.row_stats.mass if summed else 0.0))
        if summed is not None and (summed.is_full or not summed.is_for(library)):
            with sketch._lock:
                summed = None
        is_first = summed is None
        summed = summed or DeviceGram(library, sketch.dim, sketch.dtype)
        if not summed.has_room(rows, mass):
            return False, False
        summed.add(rows, norms_sq)
        self._summed = summed
        return True, is_first

    def _take_in(self, sketch: Sketch, add: Callable[[DeviceGram], None]) -> None:
        """Put the rows into the sketch."""
        summed = self._summed
        if summed is None:
            return
        few = summed.waiting
        if few is None:
            add(summed)
        else:
            for rows in few:
                for chunk, norms_sq in read_rows(rows, sketch.dim, sketch.dtype).chunks():
                    sketch.take(chunk, norms_sq)
                summed.drop_first()  # what is broken off here goes on with the next
        self._summed = None


class Cut(NamedTuple):
    """Rows S with -rounding·I ⪯ C - S'S ⪯ (amount + rounding)·I."""

    rows: Matrix
    amount: float
    rounding: float


def truncated_eigh(library: Library, gram: Array, rows: AnyArray, size: int, head: int) -> Cut:
    """At most size - 1 rows for C = gram + rows'rows: its spectrum minus the size-th eigenvalue, as in FD.

    The first ``head`` eigenvalues stay as they are. The eigenvectors are computed on the device of the
    matrix, or by numpy if the device has no float64. They are not trusted. Their error is measured as

        |C - V diag V'|_F    and    |V'V - I|_F,

    and is part of the rounding.
    """
    if library.widest != library.xp.float64:
        gram, library = library.to_host(gram).astype(np.float64), HOST
    xp, dim = library.xp, gram.shape[0]
    kept_mass = 0.0
    if len(rows):
        wide = rows.astype(np.float64)
        kept_mass = float(row_norms_sq(wide).sum())
        given = library.put(wide)
        gram = gram + library.product(given.T, given)
    exponent = _exponent(float(xp.max(xp.abs(gram))))
    gram = (gram + gram.T) * (0.5 * 2.0 ** (-2 * exponent))  # scaled, so that its squares do not overflow
    found = xp.linalg.eigh(gram)
    ascending, vectors = found[0], found[1]
    residual = _norm(library, gram - library.product(vectors * ascending[None, :], vectors.T))
    identity = library.put(np.eye(dim))
    skew = _norm(library, library.product(vectors.T, vectors) - identity)

    values = library.to_host(ascending)[::-1]
    amount = max(0.0, float(values[size - 1])) if size <= dim else 0.0
    left = values[: size - 1].copy()
    left[head:] -= amount
    count = int(np.count_nonzero(left > 0.0))  # these are the leading ones: the values descend
    directions = library.to_host(vectors[:, dim - count :])[:, ::-1].T if count else np.empty((0, dim))
    below = max(0.0, -float(values[-1]))
    summed = (dim + 16) * _UNIT["float64"] * float(np.abs(values).sum())
    rounding = 1.001 * (residual + skew * (amount + below) + below + summed)
    kept = np.ldexp(np.sqrt(left[:count])[:, np.newaxis] * oriented(directions), exponent)
    amount, rounding = (float(np.ldexp(part, 2 * exponent)) for part in (amount, rounding))
    return Cut(np.ascontiguousarray(kept), amount, rounding + (len(rows) + 2) * _UNIT["float64"] * kept_mass)


def _exponent(largest: float) -> int:
    """The binary exponent of the square root of a number, limited so that squaring can be undone."""
    return int(np.clip(np.frexp(largest)[1] // 2, -500, 500))


def _norm(library: Library, matrix: Array) -> float:
    """|matrix|_F."""
    return float(np.sqrt(float(library.xp.sum(matrix * matrix))))
