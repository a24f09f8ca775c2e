"""Rows from any input, checked before they are used; and the names of their columns."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from numbers import Real
from typing import Protocol, TypeGuard, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from sketchbandit.array_api import Array, Library, check_real_dtype, library_of
from sketchbandit.arrays import AnyArray, Dtype, Rows, Vector
from sketchbandit.errors import InputError, InputTypeError, RowError
from sketchbandit.linalg import row_norms_sq

Name = str | int
Given = TypeVar("Given")

_CHUNK_ELEMENTS = 1 << 22  # 32 MiB of float64: the most that is converted or made dense at a time


class RowBatch:
    """Checked rows. ``chunks()`` yields them as dense C-ordered arrays with their squared norms.

    Input that already has the dtype and the layout is not copied. Otherwise (sparse rows, another dtype, a
    strided view) one chunk is copied at a time.
    """

    def __init__(self, source: Rows, dtype: Dtype, noun: str = "rows") -> None:
        self._source = source
        self._dtype = dtype
        self._sparse = sparse.issparse(source)
        self._count, dim = source.shape
        flags = None if self._sparse else source.flags  # arrays from a network may be unaligned
        ready = flags is not None and source.dtype == dtype and flags.c_contiguous and flags.aligned
        self._step = max(self._count, 1) if ready else max(1, _CHUNK_ELEMENTS // dim)
        self._only_chunk: AnyArray | None = None
        with np.errstate(over="ignore", invalid="ignore"):  # values that are not finite are reported below
            if self._count <= self._step:
                self._only_chunk = self._dense(0)
            norms_sq = self._sparse_norms_sq() if self._sparse else self._dense_norms_sq()
            self.mass = float(norms_sq.sum())
        if not self.mass < np.inf and not np.isfinite(norms_sq).all():
            raise complaint(source, int(np.flatnonzero(~np.isfinite(norms_sq))[0]), dtype, noun[:-1])
        self._norms_sq = None if self._sparse else norms_sq

    def __len__(self) -> int:
        return int(self._count)

    def chunks(self) -> Iterator[tuple[AnyArray, Vector]]:
        """Dense chunks and the squared norms of their rows, in order."""
        for start in range(0, self._count, self._step):
            rows = self._dense(start)
            known = self._norms_sq
            yield rows, row_norms_sq(rows) if known is None else known[start : start + self._step]

    def _dense(self, start: int) -> AnyArray:
        if self._only_chunk is not None:
            return self._only_chunk
        piece = self._source[start : start + self._step]
        return np.require(piece.toarray() if self._sparse else piece, self._dtype, ["C", "A"])

    def _dense_norms_sq(self) -> Vector:
        if self._only_chunk is not None:
            return row_norms_sq(self._only_chunk)
        starts = range(0, self._count, self._step)
        return np.concatenate([row_norms_sq(self._dense(start)) for start in starts])

    def _sparse_norms_sq(self) -> Vector:
        """Squared norms from the stored entries: equal to those of dense rows up to rounding."""
        squares = self._source.astype(self._dtype).astype(np.float64).power(2)
        return np.asarray(squares.sum(axis=1)).ravel()


def read_rows(rows: object, dim: int, dtype: Dtype, noun: str = "rows") -> RowBatch:
    """``rows`` as a RowBatch: a vector (dim,), a matrix (n, dim), nested lists or a scipy sparse matrix."""
    return RowBatch(row_source(rows, dim, noun), dtype, noun)


def row_source(rows: object, dim: int, noun: str = "rows") -> Rows:
    """``rows`` as a real (n, dim) numpy array or canonical CSR matrix. Entries are not checked."""
    source = _sparse_source(rows) if sparse.issparse(rows) else _dense_source(rows, dim, noun)
    if source.dtype.kind not in "fiub":
        hint = _not_numbers(rows) if source.dtype.kind == "O" else ""
        raise InputTypeError(f"{noun} must be real numbers, got an array of dtype {source.dtype}{hint}")
    if source.ndim != 2:
        raise InputError(f"{noun} must be a vector or a matrix, got {source.ndim} dimensions {source.shape}")
    if source.shape[1] != dim:
        raise InputError(f"{noun} have length {source.shape[1]}, but dim is {dim}")
    return source


def device_rows(rows: Array, dim: int) -> tuple[Library, Array]:
    """The library of the rows, and the rows as a matrix (n, dim). The entries are not checked."""
    library = library_of(rows)
    check_real_dtype(rows, "rows")
    detach: Callable[[], Array] | None = getattr(rows, "detach", None)  # torch's: no gradients from here on
    rows = rows if detach is None else detach()
    if rows.ndim == 1 and rows.shape[0] == dim:
        rows = library.xp.reshape(rows, (1, dim))
    if rows.ndim != 2:
        raise InputError(f"rows must be a vector or a matrix, got {rows.ndim} dimensions {tuple(rows.shape)}")
    if rows.shape[1] != dim:
        raise InputError(f"rows have length {rows.shape[1]}, but dim is {dim}")
    return library, rows


def complaint(source: Rows, at: int, dtype: Dtype, noun: str = "row") -> RowError:
    """The error for a row that cannot be used: it contains NaN or inf, or is too long."""
    given = source[[at]].data if sparse.issparse(source) else source[at]
    bad = given[~np.isfinite(given)]
    if len(bad):
        return RowError(noun, at, f"contains {bad[0]}; {noun}s must be finite")
    return RowError(
        noun,
        at,
        f"is too long: its largest entry is {np.abs(given).max():g}, and it or its squared norm overflows "
        f"{dtype}; rescale the {noun}s",
    )


class Frame(Protocol):
    """A DataFrame, or one row of it: what is used of it."""

    ndim: int
    columns: Iterable[object]
    dtypes: Iterable[object]

    def astype(self, kind: type, /) -> ArrayLike:
        """Convert all entries."""

    def __iter__(self) -> Iterator[object]:
        """The entries of a row."""

    def __getitem__(self, columns: list[Name], /) -> "Frame":
        """Some columns, in this order."""


def _dense_source(rows: object, dim: int, noun: str) -> AnyArray:
    if isinstance(rows, np.ma.MaskedArray) and np.ma.getmaskarray(rows).any():
        raise InputError(f"{noun} have masked entries; fill them first, for instance {noun}.filled(0.0)")
    try:
        array = np.asarray(rows)
    except ValueError as error:  # ragged nested lists
        raise InputError(f"{noun} do not form a matrix: {error}") from error
    if array.dtype == object and _has_only_numbers(rows):
        with suppress(TypeError, ValueError):  # a missing value; the array is refused below
            array = np.asarray(rows.astype(float), dtype=np.float64)
    if array.ndim != 1:
        return array
    return array[np.newaxis] if array.size else np.empty((0, dim))  # [] is an empty batch


def _has_only_numbers(rows: object) -> TypeGuard[Frame]:
    """Whether a DataFrame, or a row of one, holds only numbers, of several kinds, including booleans."""
    if not hasattr(rows, "dtypes"):
        return False
    frame = cast("Frame", rows)
    if frame.ndim == 1:
        return all(isinstance(value, (Real, np.bool_)) for value in frame)
    return all(getattr(dtype, "kind", "O") in "fiub" for dtype in frame.dtypes)


def _not_numbers(rows: object) -> str:
    """A hint: which columns of a DataFrame are not numbers, and what to do."""
    if not hasattr(rows, "columns") or not hasattr(rows, "dtypes"):
        return "; convert it first, for instance with rows.astype(float) or frame.to_numpy(float)"
    kinds = zip(rows.columns, rows.dtypes, strict=True)
    bad = [name for name, dtype in kinds if getattr(dtype, "kind", "O") not in "fiub"]
    which = f" (column {', '.join(map(repr, bad[:3]))}{', ...' if len(bad) > 3 else ''})" if bad else ""
    return f"{which}; turn these into numbers first, fill missing values, and then use frame.astype(float)"


def _sparse_source(rows: Rows) -> Rows:
    if rows.ndim == 1:
        rows = rows.reshape(1, -1)
    rows = rows.tocsr()
    if not rows.has_canonical_format:  # duplicate entries add up
        rows = rows.copy()
        rows.sum_duplicates()
    return rows


class ColumnNames:
    """The column names, once known. Later rows are put into this order.

    Names are strings and integers. Names 0, 1, ... are positions, and carry no other information.

    Examples
    --------
    >>> import pandas as pd
    >>> columns = ColumnNames()
    >>> frame = pd.DataFrame({"age": [20.0], "price": [3.0]})
    >>> columns.remember(frame)
    >>> columns.names
    ('age', 'price')
    >>> columns.align(frame[["price", "age"]]).to_numpy().tolist()
    [[20.0, 3.0]]

    """

    def __init__(self, names: Iterable[Name] | None = None) -> None:
        self.names: tuple[Name, ...] | None = None if names is None else tuple(names)

    def align(self, rows: Given) -> Given:
        """The rows with their columns in the known order. Rows without names are returned as they are."""
        if type(rows) is np.ndarray:
            return rows
        given = _names_of(rows)
        if given is None or given == self.names:
            return rows
        positions = tuple(range(len(given)))
        if set(given) == set(positions):
            return rows if given == positions else _columns_of(rows, positions)
        if self.names is None:
            return rows
        if len(given) == len(self.names) and set(given) == set(self.names):
            return _columns_of(rows, self.names)
        missing = [name for name in self.names if name not in given]
        unknown = [name for name in given if name not in self.names]
        twice = [name for name in dict.fromkeys(given) if given.count(name) > 1]
        what = [
            f"{', '.join(map(repr, names[:3]))} {said}"
            for names, said in ((missing, "missing"), (unknown, "unknown"), (twice, "there twice"))
            if names
        ]
        raise InputError(
            f"the columns differ from those before: {'; '.join(what)}; give the columns that `columns` "
            "names, in any order, or an array in that order"
        )

    def remember(self, rows: object) -> None:
        """Remember the names, if the rows have any and none are known. Call it after the rows were taken."""
        if self.names is None and type(rows) is not np.ndarray:
            names = _names_of(rows) or ()
            tell_something = len(set(names)) == len(names) and set(names) != set(range(len(names)))
            self.names = names if tell_something else None

    def merged(self, other: "ColumnNames") -> "ColumnNames":
        """The names of two parts. If both have names, they must be equal and in the same order."""
        if self.names and other.names and self.names != other.names:
            raise InputError(
                "cannot merge: the two have learned from different columns, or from another order of them: "
                f"{self.names[:3]} ... here, {other.names[:3]} ... there"
            )
        return ColumnNames(self.names or other.names)


def _columns_of(rows: Given, names: tuple[Name, ...]) -> Given:
    return cast("Given", cast("Frame", rows)[list(names)])


def _names_of(rows: object) -> tuple[Name, ...] | None:
    """The column names of a DataFrame, or the index of a Series; None if it has no usable names."""
    names = getattr(rows, "columns", None)
    if names is None and getattr(rows, "ndim", None) == 1 and not isinstance(rows, np.ndarray):
        names = getattr(rows, "index", None)
    if names is None or callable(names):
        return None
    listed = tuple(names)
    return listed if listed and all(isinstance(name, (str, int)) for name in listed) else None
