"""Arms that stay where they are (device, memory or file), prepared once for screening."""

import math
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from sketchbandit.array_api import (
    HOST,
    Array,
    DType,
    Library,
    check_real_dtype,
    dtype_name,
    half_product,
    library_of,
    unit_of,
)
from sketchbandit.arrays import AnyArray, Matrix, Vector
from sketchbandit.errors import InputError, RowError
from sketchbandit.kernels import loops
from sketchbandit.linalg import length_of

Label = Callable[[int], Hashable]
"""The id of an arm, by its row."""
_NUMBERS = 1 << 24  # of a piece that is worked on at a time
UP = 1.0 + 2.0**-20
"""A factor above the rounding of a few operations in float32."""
HALF = 2.0**-20
"""Units of roundoff above this are those of half precision."""
_SHORTEST_SQUARE = 1e-28  # of an arm where float32 is all there is
_LEVELS = 127.0  # of an entry in eight bits, to either side
LEAST = 1e-30
"""Added to bounds: sums in float32 may lose as much where numbers are too small for it."""
BANDS = 16
"""The number of column bands whose lengths are kept, for bounds on arms that are multiplied by a context."""


class Coarse(NamedTuple):
    """A copy in fewer bits: bfloat16, or 8 bits with a step per row."""

    array: Array
    slack: Array
    """Upper bounds on |x - copy| of every arm, (K,) float32."""
    steps: Array | None = None


@dataclass(frozen=True, eq=False)
class Store:
    """Arms (K, width) of some library on its device. They are never written to.

    ``norms`` are upper bounds on |x|, ``bands`` upper bounds on |x_b|² for each band of columns. Both are
    float32, on the same device.
    """

    array: Array
    library: Library
    norms: Array
    bands: Array
    coarse: Coarse | None
    kept: dict[str, object] = field(default_factory=dict)
    """What those who read it keep with it, by name: buffers of a device."""

    @cached_property
    def width(self) -> int:
        """The number of stored features of an arm."""
        return int(self.array.shape[1])

    @cached_property
    def _count(self) -> int:
        return int(self.array.shape[0])

    def __len__(self) -> int:
        return self._count

    @property
    def on_host(self) -> AnyArray | None:
        """The arms, if they are an array of numpy."""
        return self.array if isinstance(self.array, np.ndarray) else None

    @cached_property
    def is_on_cuda(self) -> bool:
        """Whether they are a tensor of torch on a CUDA device."""
        return self.library.name == "torch" and self.library.kind == "cuda"

    @cached_property
    def longest(self) -> float:
        """At least the length of the longest arm."""
        return float(self.library.xp.max(self.norms))

    @property
    def nbytes(self) -> int:
        """Bytes of the arms, and of what was prepared for them."""
        count, width = len(self), self.width
        bits = 8 * np.dtype(np.float64).itemsize if dtype_name(self.array) == "float64" else 32
        bits = 16 if dtype_name(self.array) in ("bfloat16", "float16") else bits
        held = count * width * bits // 8 + 4 * count * (1 + BANDS)
        if self.coarse is not None:
            held += count * width * (1 if self.coarse.steps is not None else 2) + 8 * count
        return held

    def rows(self, which: Array | slice, dtype: DType = None) -> Array:
        """Some arms, on their device. ``which`` is a slice, or indices of numpy or of their library."""
        if isinstance(which, slice) or self.library.on_host:
            some = self.array[which, :]
        else:
            places = self.library.put(which) if isinstance(which, np.ndarray) else which
            some = self.library.xp.take(self.array, places, axis=0)
        return some if dtype is None else self.library.cast(some, dtype)

    def to_host(self, which: AnyArray | slice) -> AnyArray:
        """Some arms as float64 or float32 numpy arrays."""
        if isinstance(which, slice):
            found = self.library.to_host(self.rows(which))
        else:
            found = self.library.to_host(self.rows(self.library.padded(which)))[: len(which)]
        wide = found if found.dtype == np.float64 else found.astype(np.float32, copy=False)
        return np.ascontiguousarray(wide)

    def _parts(self) -> list[Array]:
        """All arrays that have an entry for every arm."""
        coarse = [] if self.coarse is None else [part for part in self.coarse if part is not None]
        return [self.array, self.norms, self.bands, *coarse]

    def _of_parts(self, parts: Iterable[Array]) -> "Store":
        array, norms, bands, *coarse = parts
        return Store(array, self.library, norms, bands, Coarse(*coarse) if coarse else None)

    def joined(self, more: "Store") -> "Store":
        """These arms, then those of another store."""
        pairs = zip(self._parts(), more._parts(), strict=True)
        return self._of_parts(joined(self.library, [*pair]) for pair in pairs)

    def taken(self, rows: AnyArray) -> "Store":
        """Some of the arms."""
        where = self.library.put(rows)
        return self._of_parts(self.library.xp.take(part, where, axis=0) for part in self._parts())

    def pieces(self, width: int) -> list[slice]:
        """Slices of arms to work on at a time, if each arm makes ``width`` numbers."""
        step, count = max(1, _NUMBERS // max(1, width)), len(self)
        return [slice(start, min(start + step, count)) for start in range(0, count, step)]

    def products(self, vector: Vector) -> Array:
        """x'v of every arm, (K,), in the widest dtype."""
        library, dtype = self.library, self.library.widest
        wide = library.put(vector, dtype)
        return joined(library, [library.product(self.rows(s, dtype), wide) for s in self.pieces(self.width)])

    def screen(self, vector: Vector) -> tuple[Array, float, float]:
        """A fast approximation of x'v of every arm, (K,) float32 or float64, with its error ``a`` and ``b``.

        Every value is off by at most a·norm + b·slack, whatever the order of the sums.
        """
        library, length, coarse = self.library, length_of(vector) * UP, self.coarse
        if coarse is not None and coarse.steps is not None:
            share = 1.02 * (self.width + 4) * 2.0**-24
            found: Array = _of_codes(coarse.array, coarse.steps, vector.astype(np.float32))
            return found, (share + 2.0**-23) * length, 1.02 * length
        if coarse is not None:
            found, unit = half_product(library, coarse.array, vector)
        elif unit_of(self.array) > HALF:
            found, unit = half_product(library, self.array, vector)
        else:
            found = self._rough(library.put(vector, self.array.dtype))
            unit = 3.0 * library.product_unit(self.array.dtype)
        share = 1.02 * (self.width + 4) * (2.0**-53 if dtype_name(found) == "float64" else 2.0**-24) + unit
        return found, (share + 2.0**-22) * length, 1.02 * length

    def _rough(self, vector: Array) -> Array:
        """x'v, summed in the dtype of the arms."""
        host = self.on_host
        compiled = None if host is None else loops(host.size)
        if host is None or compiled is None:
            return self.library.product(self.array, vector)
        products: AnyArray = np.empty(len(self), dtype=host.dtype)
        compiled.row_products(host, vector, products)
        return products

    @property
    def norms_share(self) -> float:
        """The relative excess of the square of ``norms`` over |x|², at most."""
        return 2.0**-17 + 2.2 * (self.width + 4) * unit_of(
            self.library.xp.zeros(1, dtype=self.library.widest)
        )

    def weighted_screen(self, vector: Vector, weights: Vector) -> tuple[Array, float, Array, Array]:
        """An approximation of x'v of every arm; its ``a`` as in ``screen``; and bounds on Σ (x_j·weights_j)².

        It takes one pass over the arms. The bounds are an upper and a lower one.
        """
        library, largest = self.library, float(np.abs(weights).max(initial=0.0)) or 1.0
        dtype = self.array.dtype if unit_of(self.array) <= HALF else library.xp.float32
        squared = np.square(weights / largest)
        unit = 3.0 * library.product_unit(dtype)
        rough, squares = self._in_one_pass(vector, squared, dtype)
        share = (
            2.2 * (self.width + 8) * (2.0**-53 if dtype_name(rough) == "float64" else 2.0**-24) + 2.0 * unit
        )
        lost = self.norms * self.norms * 1e-37 + self.width * 2.0**-126  # values too small for float32
        factor = largest * largest
        per_norm = (0.5 * share + unit + 2.0**-22) * length_of(vector) * UP
        return (
            rough,
            per_norm,
            (squares * (1.0 + share + 2.0**-22) + lost) * factor,
            (squares * (1.0 - share - 2.0**-22) - lost) * factor,
        )

    def _in_one_pass(self, vector: Vector, squared: Vector, dtype: DType) -> tuple[Array, Array]:
        library = self.library
        one, other = library.put(vector, dtype), library.put(squared, dtype)
        host = self.on_host
        compiled = None if host is None or host.dtype != dtype else loops(host.size)
        if host is not None and compiled is not None:
            made: AnyArray = np.empty((2, len(self)), host.dtype)
            compiled.weighted_products(host, one, other, *made)
            return made[0], made[1]
        found = []
        for some in self.pieces(self.width):
            rows = self.rows(some, dtype)
            found.append((library.product(rows, one), library.product(rows * rows, other)))
        return joined(library, [pair[0] for pair in found]), joined(library, [pair[1] for pair in found])

    def norms_of(self, weights: Vector | None) -> Array:
        """Upper bounds on the length of every arm with its entries multiplied by weights; (K,) float32."""
        if weights is None:
            return self.norms
        return self.norms_of_each(weights[np.newaxis])[0, :]

    def norms_of_each(self, weights: Matrix) -> Array:
        """The same for every row of weights, shape (rows, K)."""
        squares = np.zeros((len(weights), BANDS))
        for band, columns in enumerate(band_slices(self.width)):
            squares[:, band] = np.square(weights[:, columns]).max(axis=1, initial=0.0) * UP
        library = self.library
        products = library.product(library.put(squares, self.bands.dtype), self.bands.T)
        coarse = 1.0 + 3.0 * library.product_unit(self.bands.dtype) * 2.0
        return library.xp.sqrt(products * (UP * coarse)) * UP


def band_slices(width: int) -> list[slice]:
    """The columns of every band."""
    step = -(-width // BANDS)
    return [slice(start, min(start + step, width)) for start in range(0, width, step)]


def joined(library: Library, pieces: list[Array]) -> Array:
    """Concatenate arrays."""
    return pieces[0] if len(pieces) == 1 else library.xp.concat(pieces)


def make_store(arms: Array, *, half: bool, label: Label | None = None) -> Store:
    """Check and measure arms, without a copy. ``label`` maps a row to the id of the arm."""
    library = library_of(arms)
    check_real_dtype(arms)
    if arms.ndim != 2 or not arms.shape[1]:
        raise InputError(f"a catalogue needs arms (K, dim), got an array of shape {tuple(arms.shape)}")
    if not arms.shape[0]:
        raise InputError("there are no arms: a catalogue needs at least one arm")
    array = _contiguous(arms, library)
    try:
        nothing = library.xp.zeros(0, dtype=library.xp.float32)  # measured here
        bare = Store(array, library, nothing, nothing, None)
        squares = _band_squares(bare)
        lengths_sq = library.xp.sum(squares, axis=1)
        _check_finite(bare, lengths_sq, label)
        single = library.xp.float32
        norms = library.cast(library.xp.sqrt(lengths_sq), single) * UP + LEAST
        bare = replace(bare, norms=norms, bands=library.cast(squares, single) * UP + LEAST)
        return replace(bare, coarse=_coarse_copy(bare) if half else None)
    except (RuntimeError, MemoryError) as error:
        if "memory" not in str(error).lower() and not isinstance(error, MemoryError):
            raise
        raise InputError(
            f"{array.shape[0]:,} arms of {array.shape[1]:,} numbers leave no memory on {library.device} to "
            "prepare them; use fewer arms or a smaller dtype, or leave out half"
        ) from error


def _contiguous(arms: Array, library: Library) -> Array:
    if isinstance(arms, np.ndarray):
        return arms if arms.flags.c_contiguous and arms.flags.aligned else np.ascontiguousarray(arms)
    return library.contiguous(arms)


def _band_squares(store: Store) -> Array:
    """Upper bounds on |x_b|² of every band, (K, BANDS), in the widest dtype."""
    library, dtype = store.library, store.library.widest
    rise = 1.0 + (store.width + 4) * 1.01 * unit_of(library.xp.zeros(1, dtype=dtype))
    found = []
    for some in store.pieces(store.width):
        rows = store.rows(some, dtype)
        sums = [library.xp.sum(rows[:, band] * rows[:, band], axis=1) for band in band_slices(store.width)]
        sums += [library.xp.zeros_like(sums[0])] * (BANDS - len(sums))
        found.append(library.xp.stack(sums, axis=1) * rise)
    return joined(library, found)


def _check_finite(store: Store, lengths_sq: Array, label: Label | None) -> None:
    """Raise for arms that are not finite, or too long for the sums of a screen."""
    library = store.library
    host = library.to_host(lengths_sq)
    bad = np.flatnonzero(~(host < 1e37))  # NaN too
    if not len(bad):
        if library.widest != library.xp.float64:
            _check_short(store, np.flatnonzero(host < _SHORTEST_SQUARE), label)
        return
    at = int(bad[0])
    row = store.to_host(slice(at, at + 1))[0]
    which = "" if label is None else f" (id {label(at)!r})"
    wrong = row[~np.isfinite(row)]
    if len(wrong):
        raise RowError("arm", at, f"contains {wrong[0]}{which}; arms must be finite")
    raise RowError("arm", at, f"is too long{which}: its length is {math.sqrt(host[at]):g}; rescale the arms")


def _check_short(store: Store, short: AnyArray, label: Label | None) -> None:
    """Raise for arms, other than zero, whose squares float32 cannot hold, where there is no float64."""
    bad = short[store.to_host(short).any(axis=1)] if len(short) else short
    if len(bad):
        which = "" if label is None else f" (id {label(int(bad[0]))!r})"
        why = f"{store.library.name} has no float64 here, and float32 cannot hold its squared length"
        raise RowError("arm", int(bad[0]), f"is too short{which}: {why}; rescale the arms")


def _coarse_copy(store: Store) -> Coarse:
    """A coarse copy: 8 bits with numpy, bfloat16 with other libraries."""
    library, xp, dtype = store.library, store.library.xp, store.library.widest
    if store.on_host is not None:
        return _in_eight_bits(store, store.on_host)
    arrays, slacks = [], []
    for some in store.pieces(store.width):
        rows = store.rows(some, dtype)
        short = library.cast(rows, _bfloat16(library))
        off = rows - library.cast(short, dtype)
        arrays.append(short)
        slacks.append(library.cast(xp.sqrt(xp.sum(off * off, axis=1)), xp.float32) * UP)
    return Coarse(joined(library, arrays), joined(library, slacks))


def _in_eight_bits(store: Store, array: AnyArray) -> Coarse:
    count, compiled = len(store), loops(array.size)
    codes, steps = np.empty((count, store.width), np.int8), np.empty(count, np.float32)
    off_sq = np.empty(count)
    if compiled is not None:
        compiled.to_codes(array, _LEVELS, codes, steps, off_sq)
    for some in () if compiled is not None else store.pieces(store.width):
        rows = array[some].astype(np.float64, copy=False)
        steps[some] = step = np.maximum(np.abs(rows).max(axis=1) / _LEVELS, 1e-30).astype(np.float32)
        codes[some] = np.clip(np.rint(rows / step[:, np.newaxis]), -_LEVELS, _LEVELS)
        off = rows - codes[some] * step[:, np.newaxis].astype(np.float64)
        off_sq[some] = np.einsum("ij,ij->i", off, off)
    return Coarse(codes, np.sqrt(off_sq).astype(np.float32) * np.float32(UP), steps)


def _bfloat16(library: Library) -> DType:
    found = getattr(library.xp, "bfloat16", None)
    if found is None:
        raise InputError(f"{library.name} has no bfloat16 for the coarse copy; leave out half")
    return found


def _of_codes(codes: Array, given_steps: Array, vector: AnyArray) -> AnyArray:
    host, steps = HOST.to_host(codes), HOST.to_host(given_steps)
    products = np.empty(len(steps), dtype=np.float32)
    compiled = loops(host.size)
    if compiled is not None:
        compiled.coarse_products(host, steps, vector, products)
        return products
    step = max(1, _NUMBERS // max(1, host.shape[1]))
    for start in range(0, len(products), step):
        some = slice(start, start + step)
        products[some] = (host[some].astype(np.float32) @ vector) * steps[some]
    return products
