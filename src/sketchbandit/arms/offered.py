"""The arms of a store as one request offers them: with a context, a subset, scaled."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from sketchbandit.arms.sets import DenseArms, OfRows, OfView, dense_arms, norm_sq_of
from sketchbandit.arms.store import Store, joined, make_store
from sketchbandit.array_api import Array, Library
from sketchbandit.arrays import AnyArray, Dtype, Matrix, Vector
from sketchbandit.kernels.backend import AS_IS, BOUND, COLUMNS, CONSTANT, HEAD, KIND, PLAIN, ROWS, View
from sketchbandit.linalg import inner, product


@dataclass(frozen=True, eq=False)
class OfferedArms:
    """K arms z, each made of a row x of a store. Nothing of size K x dim is formed unless a scaling needs it.

    Of a context u: "product" is z = x·u entry by entry, "concatenate" [u, x], "outer" all u_i·x_j.
    ``places``: the rows that are offered, in order; None: all. ``lens``: the scaling, as views have it.
    """

    store: Store
    context: Vector | None = None
    interaction: str | None = None
    places: AnyArray | None = None
    lens: Vector = field(default_factory=lambda: PLAIN)
    view: ClassVar[None] = None
    """The loops for dense arms cannot read them."""
    matrix: ClassVar[None] = None
    """They are not sparse."""

    def __len__(self) -> int:
        return len(self.store) if self.places is None else len(self.places)

    @property
    def dim(self) -> int:
        """The number of features of an arm before scaling."""
        width = self.store.width
        if self.context is None or self.interaction == "product":
            return width
        size = len(self.context)
        return width + size if self.interaction == "concatenate" else width * size

    @property
    def library(self) -> Library:
        """The array library and the device of the arms."""
        return self.store.library

    def through(self, lens: Vector) -> "OfferedArms":
        """The same arms, with another scaling."""
        return replace(self, lens=lens)

    # -- on the host ----------------------------------------------------------------------------------

    @property
    def on_host(self) -> DenseArms:
        """The same arms in the memory of the host."""
        return self.some(slice(None))

    def some(self, which: AnyArray | slice) -> DenseArms:
        """The set with exactly these arms, on the host."""
        return dense_arms(View(self.raw_rows(which), self.lens))

    def raw_rows(self, which: AnyArray | slice) -> AnyArray:
        """Some arms on the host, before scaling."""
        places = which if self.places is None else self.places[which]
        rows, context = self.store.to_host(places), self.context
        if context is None:
            return rows
        return with_context(rows.astype(np.float64, copy=False), context, self.interaction)

    @property
    def raw(self) -> "OfferedArms":
        """The arms before scaling, for the sample of a warm-up."""
        return self

    @property
    def shape(self) -> tuple[int, int]:
        """The shape (K, dim)."""
        return len(self), self.dim

    @property
    def dtype(self) -> np.dtype[np.float64]:
        """The dtype of the arms on the host."""
        return np.dtype(np.float64)

    def __getitem__(self, which: int | AnyArray | slice) -> AnyArray:
        """Some of the arms before scaling, on the host."""
        if isinstance(which, int):
            one: AnyArray = self.raw_rows(slice(which, which + 1))[0]
            return one
        return self.raw_rows(which)

    def vector(self, index: int) -> Vector:
        """One arm, in float64."""
        return self.some(slice(index, index + 1)).vector(0)

    def row(self, index: int, dtype: Dtype) -> AnyArray:
        """One arm (1, dim) in the dtype in which a sketch stores it."""
        return self.some(slice(index, index + 1)).row(0, dtype)

    def norm_sq(self, index: int) -> float:
        """|z|² of one arm."""
        return norm_sq_of(self.vector(index))

    # -- on their device ------------------------------------------------------------------------------

    @property
    def is_linear(self) -> bool:
        """Whether z'v is linear in x, up to the length of z if arms are scaled to length one."""
        return not len(self.lens) or self.lens[KIND] != COLUMNS

    def folded(self, vector: Vector) -> tuple[Vector, float]:
        """w and c with z'v = x'w + c, for arms without scaling."""
        context, width = self.context, self.store.width
        if context is None:
            return vector[:width], 0.0
        if self.interaction == "product":
            return context * vector[:width], 0.0
        if self.interaction == "concatenate":
            size = len(context)
            return vector[size : size + width], inner(context, vector[:size])
        return product(context, vector[: len(context) * width].reshape(len(context), width)), 0.0

    def times(self, vector: Vector) -> Vector:
        """z'v of every arm, on the host."""
        return self._to_host(self.products(vector))

    def norms_sq(self) -> Vector:
        """|z|² of every arm, on the host."""
        return self._to_host(self.squares())

    def scan(self, vector: Vector) -> tuple[Vector, Vector]:
        """z'v and |z|² of every arm, on the host."""
        return self.times(vector), self.norms_sq()

    def quadratics(self, of_view: OfView, of_rows: OfRows, norms_sq: Vector) -> Vector:
        """x'A^-1 x of every arm, on the host."""
        del of_view, norms_sq
        return self._to_host(self.by_piece(lambda rows: of_rows(self.library, rows)))

    def products(self, vector: Vector) -> Array:
        """z'v of every arm, in the widest dtype, on their device."""
        if not self.is_linear:
            wide = self._put(vector)
            return self.by_piece(lambda rows: self.library.product(rows, wide))
        weights, shared = self.folded(vector)
        found = self.taken(self.store.products(weights)) + shared
        if not len(self.lens):
            return found
        if self.lens[KIND] == ROWS:
            found = found / self._lengths()
        constant = float(self.lens[CONSTANT])
        return found + constant * float(vector[-1]) if constant else found

    def squares(self) -> Array:
        """|z|² of every arm, in the widest dtype, on their device."""
        xp = self.library.xp
        if len(self.lens) and self.lens[KIND] == ROWS:
            return self.raw_squares() * 0.0 + (1.0 + float(self.lens[CONSTANT]) ** 2)
        return self.by_piece(lambda rows: xp.sum(rows * rows, axis=1))

    def raw_squares(self) -> Array:
        """|z|² before scaling."""
        xp = self.library.xp
        return replace(self, lens=PLAIN).by_piece(lambda rows: xp.sum(rows * rows, axis=1))

    def _lengths(self) -> Array:
        lengths = self.library.xp.sqrt(self.raw_squares())
        return self.library.xp.where(lengths > 0.0, lengths, self.library.xp.ones_like(lengths))

    def pieces(self) -> list[AnyArray | slice]:
        """Slices of arms that are worked on at a time."""
        width = self.dim
        if self.places is None:
            return list(self.store.pieces(width))
        step = self.store.pieces(width)[0].stop
        return [self.places[start : start + step] for start in range(0, len(self.places), step)]

    def rows(self, which: Array | slice) -> Array:
        """Some arms z, in the widest dtype, on their device. ``which`` are rows of the store."""
        library = self.library
        xp, rows = library.xp, self.store.rows(which, library.widest)
        if self.context is not None:
            context = self._put(self.context)
            if self.interaction == "product":
                rows = rows * context
            elif self.interaction == "concatenate":
                rows = xp.concat([xp.broadcast_to(context, (rows.shape[0], len(self.context))), rows], axis=1)
            else:
                rows = xp.reshape(context[None, :, None] * rows[:, None, :], (rows.shape[0], self.dim))
        return rows if not len(self.lens) else self._scaled(rows)

    def _scaled(self, rows: Array) -> Array:
        xp, lens, dim = self.library.xp, self.lens, self.dim
        if lens[KIND] == COLUMNS:
            bound = float(lens[BOUND])
            rows = (rows - self._put(lens[HEAD : HEAD + dim])) * self._put(lens[HEAD + dim :])
            rows = xp.clip(rows, -bound, bound)
        elif lens[KIND] != AS_IS:
            lengths = xp.sqrt(xp.sum(rows * rows, axis=1))
            rows = rows / xp.where(lengths > 0.0, lengths, xp.ones_like(lengths))[:, None]
        if lens[CONSTANT]:
            more = xp.ones_like(rows[:, :1]) * float(lens[CONSTANT])
            rows = xp.concat([rows, more], axis=1)
        return rows

    def by_piece(self, compute: Callable[[Array], Array]) -> Array:
        """Apply ``compute`` to all arms in the widest dtype, one piece at a time; shape (K,)."""
        return joined(self.library, [compute(self.rows(which)) for which in self.pieces()])

    def rows_at(self, indices: Array) -> Array:
        """The arms z at some indices. ``indices`` is an array on their device."""
        if self.places is not None:
            places = self.places if self.library.on_host else self.library.put(self.places)
            indices = self.library.xp.take(places, indices, axis=0)
        return self.rows(indices)

    def taken(self, values: Array) -> Array:
        """The values of the arms on offer, from the values of all arms."""
        if self.places is None:
            return values
        if self.library.on_host:
            return values[self.places]
        return self.library.xp.take(values, self.library.put(self.places), axis=0)

    def _put(self, vector: Vector) -> Array:
        return self.library.put(np.asarray(vector, dtype=np.float64), self.library.widest)

    def _to_host(self, values: Array) -> Vector:
        return self.library.to_host(values).astype(np.float64, copy=False)


def with_context(rows: Matrix, context: Vector, interaction: str | None) -> Matrix:
    """The arms that rows x and a context u become: x·u entry by entry, [u, x], or all u_i·x_j.

    >>> with_context(np.array([[1.0, 2.0]]), np.array([3.0, 5.0]), "outer")
    array([[ 3.,  6.,  5., 10.]])
    """
    count, width = rows.shape
    if interaction == "product":
        return rows * context
    if interaction == "concatenate":
        made = np.empty((count, len(context) + width))
        made[:, : len(context)] = context
        made[:, len(context) :] = rows
        return made
    return np.multiply(context[:, np.newaxis], rows[:, np.newaxis, :]).reshape(count, -1)


def offered_array(arms: Array) -> OfferedArms:
    """An array of another library as a set of arms."""
    return OfferedArms(make_store(arms, half=False))
