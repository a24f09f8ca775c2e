"""Reading a whole matrix, rather than a stream, in any number of pieces: its rows, or its centred rows."""

import copy
import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Self

import numpy as np
from scipy import sparse

from sketchbandit.array_api import Array, Library, is_foreign
from sketchbandit.arrays import Arrays, Matrix, Rows, Scalars, Vector, taken_from, under
from sketchbandit.linalg import add_rows_to_covariance, inner, row_norms_sq
from sketchbandit.sketch.accounts import RowStats
from sketchbandit.sketch.base import SKETCHES, Sketch
from sketchbandit.sketch.device_gram import device_norms_sq, pieces
from sketchbandit.sketch.row_input import RowBatch, device_rows, read_rows, row_source
from sketchbandit.thread_safety import SharedLock, both_locks, holds_the_lock, thread_safe

_ROWS_AT_ONCE = 4096  # rows in one product, so that adding up the products costs little
_DEVICE_ROWS_AT_ONCE = 8192
_CHUNK_ELEMENTS = 1 << 20  # 8 MiB of float64: the rows that are centred at a time


@thread_safe
class BulkReader:
    """Makes a sketch of a matrix of many rows, read in pieces, by several readers if need be.

    If dim is at most about 16·size, one product X'X (dim² flop per row) is faster than the shrinks of a
    stream, and loses nothing on the way. So the rows are summed up in X'X, and one shrink at the end makes
    the sketch of it. Its error bound is

        e = sigma_size²,    the smallest that any sketch of that size can certify.

    Otherwise the rows go to the sketch itself. Readers of different pieces can be merged. ``finish`` returns
    the sketch.

    Parameters
    ----------
    sketch : Sketch
        The sketch to start from: a fresh one, or one that has seen other rows. It stays as it is.

    Examples
    --------
    >>> import sketchbandit as sb
    >>> X = np.random.default_rng(0).standard_normal((5000, 40)) * 0.8 ** np.arange(40)
    >>> bulk = BulkReader(sb.FrequentDirections(40, size=20))
    >>> bulk.update(X)
    >>> sketch = bulk.finish()
    >>> error = np.linalg.norm(X.T @ X - sketch.covariance(), 2)
    >>> bool(np.isclose(sketch.error_bound, np.linalg.svd(X, compute_uv=False)[19] ** 2)), sketch.count
    (True, 5000)

    """

    _scratch = ("_room",)

    def __init__(self, sketch: Sketch) -> None:
        self._sketch = copy.deepcopy(sketch)
        self._covariance: Matrix | None = None
        self._room: Matrix | None = None
        if sketch.dim <= sketch.gram_up_to_dim:
            self._covariance = np.zeros((sketch.dim, sketch.dim))
        self._row_stats = RowStats(sketch.dtype)
        self._lock = SharedLock()

    @property
    def dim(self) -> int:
        """Length of a row."""
        return self._sketch.dim

    @property
    def count(self) -> int:
        """The number of rows read."""
        return self._sketch.count + self._row_stats.count

    @property
    def mass(self) -> float:
        """The sum of the squared norms of the rows read."""
        return self._sketch.mass + self._row_stats.mass

    @property
    def gathers(self) -> bool:
        """Whether rows are summed up in X'X."""
        return self._covariance is not None

    def check_room(self, mass: float) -> None:
        """Raise if rows of this mass would overflow."""
        self._sketch.row_stats.check(self._row_stats.mass + mass)

    def update(self, rows: object) -> None:
        """Add rows (n, dim): dense, sparse or on a device.

        If a row cannot be used, this raises, and nothing has changed.
        """
        covariance, sketch = self._covariance, self._sketch
        if is_foreign(rows):  # the sketch sums these up on their device
            sketch.update(rows)
            return
        batch = read_rows(sketch.column_names.align(rows), sketch.dim, sketch.dtype)
        self.check_room(batch.mass)
        for chunk, norms_sq in batch.chunks():
            if covariance is None:
                sketch.take(chunk, norms_sq)
                continue
            for start in range(0, len(chunk), _ROWS_AT_ONCE):
                add_rows_to_covariance(covariance, chunk[start : start + _ROWS_AT_ONCE], self._product_room())
            self._row_stats.add_rows(norms_sq)
        sketch.column_names.remember(rows)

    def _product_room(self) -> Matrix:
        """Memory for a product, kept as long as the reader reads."""
        if self._room is None:
            self._room = np.empty((self.dim, self.dim))
        return self._room

    def forget(self, factor: float) -> None:
        """Multiply the weights of all rows read so far by this factor, as ``Sketch.forget`` does."""
        self._sketch.forget(factor)  # this checks the factor
        self._row_stats.forget(factor)
        if self._covariance is not None:
            self._covariance *= factor

    @holds_the_lock
    def merge(self, other: "BulkReader") -> None:
        """Add what another reader has read."""
        with both_locks(self, other):
            self.check_room(other.mass)
            self._sketch.merge(other._sketch)
            if self._covariance is not None and other._covariance is not None:
                self._covariance += other._covariance
            self._row_stats.add(other._row_stats)

    def finish(self) -> Sketch:
        """The sketch of everything read. It is a copy, so reading can go on."""
        sketch = copy.deepcopy(self._sketch)
        if self._covariance is not None:
            sketch.add_gram(self._covariance, self._row_stats)
        return sketch

    def dump(self) -> tuple[Scalars, Arrays]:
        """JSON values and arrays from which ``undump`` makes the same reader."""
        content, arrays = self._sketch.dump()  # copies
        scalars = {
            "sketch": {"kind": self._sketch.kind, "content": content},
            **self._row_stats.dump(),
        }
        arrays = under("sketch", arrays)
        if self._covariance is not None:
            arrays["covariance"] = self._covariance.copy()
        return scalars, arrays

    @classmethod
    def undump(cls, scalars: Scalars, arrays: Arrays) -> Self:
        """Return the reader that ``dump`` described."""
        saved = scalars["sketch"]
        parts = taken_from("sketch", arrays)
        bulk = cls(SKETCHES.of_kind(saved["kind"]).undump(saved["content"], parts))
        bulk._covariance = arrays.get("covariance")
        bulk._row_stats.restore({"nonzero": scalars.get("taken"), **scalars})  # files of 0.7 call it taken
        return bulk


def dense_chunks(X: Rows, *others: Vector) -> Iterator[tuple[Matrix, ...]]:
    """Rows of X, dense float64, one chunk at a time, with the matching entries of ``others``."""
    step = max(1, _CHUNK_ELEMENTS // X.shape[1])
    for start in range(0, X.shape[0], step):
        piece = X[start : start + step]
        rows = piece.toarray() if sparse.issparse(piece) else piece
        yield rows.astype(np.float64, copy=False), *(other[start : start + step] for other in others)


def mass_of(X: Rows) -> float:
    """The sum of all squares, without a copy; inf if it overflows."""
    with np.errstate(over="ignore"):
        if sparse.issparse(X):
            return float(row_norms_sq(X.data[np.newaxis])[0])
        return float(sum(row_norms_sq(rows).sum() for (rows,) in dense_chunks(X)))


def most_scatter(X: Rows, mean: Vector) -> float:
    """An upper bound on what the rows of X add to a scatter centred at ``mean``."""
    return 2.0 * (mass_of(X) + float(X.shape[0]) * inner(mean, mean))


class Centring:
    """The means of a stream, and its rows centred as if the means had been known from the start.

    With n rows of mean mu seen, and a batch of m rows of mean nu to come,

        sum over all of (x - mean)(x - mean)'
            = the same of the n rows + the same of the batch + n·m/(n + m) (nu - mu)(nu - mu)'.

    The last term is y y' with y = sqrt(n·m/(n + m)) (nu - mu). The m rows x - nu sum to zero. So they are an
    orthogonal transform (a Householder reflection) of m rows of which the first is zero: the others are

        x_i - nu - (x_1 - nu) / (sqrt(m) + 1),        i = 2, ..., m.

    With y as the first row, m rows add to a sketch exactly what the batch adds to the centred scatter. The
    error bound of the sketch stays what it is.

    Examples
    --------
    >>> centring = Centring(1)
    >>> float((centring.centred(np.array([[1.0], [3.0]])) ** 2).sum().round(9))  # 1 + 1
    2.0
    >>> rows = centring.centred(np.array([[5.0]]))
    >>> centring.mean.tolist(), round(float(2.0 + (rows**2).sum()), 9)  # (1, 3, 5): scatter 4 + 0 + 4
    ([3.0], 8.0)

    """

    def __init__(self, dim: int) -> None:
        self.count = 0
        self.mean: Vector = np.zeros(dim)

    @contextmanager
    def unless_it_fails(self) -> Iterator[None]:
        """Go back to mean and count as they were if the sketch does not take the rows."""
        count, mean = self.count, self.mean
        try:
            yield
        except BaseException:
            self.count, self.mean = count, mean
            raise

    def centred(self, rows: Matrix) -> Matrix:
        """Rows, as many as given, that add what the given ones add to the centred scatter."""
        mean = rows.mean(axis=0)
        centred: Matrix = rows - mean
        centred -= centred[0] / (math.sqrt(len(rows)) + 1.0)
        centred[0] = self.move(mean, len(rows))
        return centred

    def centred_on_device(self, library: Library, rows: Array) -> Array:
        """The same for float64 rows of another library, on their device."""
        mean = library.xp.mean(rows, axis=0)
        first = rows[0, :] - mean
        others = rows[1:, :] - (mean + first / (math.sqrt(rows.shape[0]) + 1.0))[None, :]
        moved = self.move(library.to_host(mean), rows.shape[0])
        return library.xp.concat([library.put(moved[np.newaxis]), others], axis=0)

    def move(self, mean: Vector, m: int) -> Vector:
        """Include m rows of this mean. Return the row that the shift of the mean adds to the scatter."""
        n, shift = self.count, mean - self.mean
        self.mean = self.mean + shift * (m / (n + m))
        self.count = n + m
        return math.sqrt(n * m / (n + m)) * shift


class CentredReader:
    """A ``BulkReader`` of rows less the mean of all rows, which is learned on the way.

    The sketch is that of the centred scatter: with Xc the rows less their mean, S'S <= Xc'Xc <= S'S + e I.

    Parameters
    ----------
    sketch : Sketch
        A fresh sketch. It stays as it is.

    Examples
    --------
    >>> import sketchbandit as sb
    >>> X = np.random.default_rng(0).standard_normal((5000, 40)) * 0.8 ** np.arange(40) + 9.0
    >>> reader = CentredReader(sb.FrequentDirections(40, size=20))
    >>> for rows in np.array_split(X, 7):
    ...     reader.update(rows)
    >>> sketch = reader.finish()
    >>> error = np.linalg.norm(4999 * np.cov(X.T) - sketch.covariance(), 2)
    >>> bool(error <= sketch.error_bound * (1 + 1e-9)), sketch.count, float(reader.mean[0].round(1))
    (True, 5000, 9.0)

    """

    def __init__(self, sketch: Sketch) -> None:
        self._centring = Centring(sketch.dim)
        self._bulk = BulkReader(sketch)

    @property
    def count(self) -> int:
        """The number of rows read."""
        return self._centring.count

    @property
    def mean(self) -> Vector:
        """The mean of all rows read."""
        return self._centring.mean

    def update(self, rows: object) -> None:
        """Add rows (n, dim): dense, sparse or on a device.

        If a row cannot be used, this raises, and nothing has changed.
        """
        if is_foreign(rows):
            self._update_on_device(rows)
            return
        source = row_source(rows, len(self.mean))
        self._check_room(RowBatch(source, np.dtype(np.float64)).mass, source.shape[0])
        for (piece,) in dense_chunks(source):
            with self._centring.unless_it_fails():
                self._bulk.update(self._centring.centred(piece))

    def _update_on_device(self, rows: Array) -> None:
        library, rows = device_rows(rows, len(self.mean))
        norms_sq = device_norms_sq(library, rows)
        if library.widest != library.xp.float64 or not np.isfinite(norms_sq).all():
            self.update(library.to_host(rows))  # this raises with the reason if a row cannot be used
            return
        self._check_room(float(norms_sq.sum()), len(norms_sq))
        for piece in pieces(rows, _DEVICE_ROWS_AT_ONCE):
            with self._centring.unless_it_fails():
                wide = library.cast(piece, library.widest)
                self._bulk.update(self._centring.centred_on_device(library, wide))

    def _check_room(self, mass: float, count: int) -> None:
        """Raise if so many rows of this mass could overflow. What passes is not refused later."""
        self._bulk.check_room(2.0 * (mass + count * inner(self.mean, self.mean)))

    def merge(self, other: "CentredReader") -> None:
        """Add what another reader has read."""
        if not other.count:
            return
        with self._centring.unless_it_fails():
            moved = self._centring.move(other.mean, other.count)
            self._bulk.check_room(other._bulk.mass + inner(moved, moved))
            self._bulk.update(moved)
            self._bulk.merge(other._bulk)

    def finish(self) -> Sketch:
        """The sketch of the centred rows. It is a copy, so reading can go on."""
        sketch = self._bulk.finish()
        sketch.row_stats.count = self.count  # a merge added one row for the shift of the mean
        return sketch

    def dump(self) -> tuple[Scalars, Arrays]:
        """JSON values and arrays from which ``undump`` makes the same reader."""
        scalars, arrays = self._bulk.dump()
        return {**scalars, "centred": self.count}, {**arrays, "mean": self.mean.copy()}

    @classmethod
    def undump(cls, scalars: Scalars, arrays: Arrays) -> Self:
        """Return the reader that ``dump`` described."""
        reader = cls.__new__(cls)
        reader._bulk = BulkReader.undump(scalars, arrays)
        reader._centring = Centring(reader._bulk.dim)
        reader._centring.count, reader._centring.mean = int(scalars["centred"]), arrays["mean"]
        return reader
