"""Reading a whole matrix, rather than a stream: many rows at once, in any number of pieces."""

import copy
from typing import Any, Self

import numpy as np

from sketchbandit.array_api import is_foreign
from sketchbandit.arrays import Arrays, Matrix, Scalars, taken_from, under
from sketchbandit.linalg import add_rows_to_covariance
from sketchbandit.sketch.base import Sketch
from sketchbandit.sketch.row_stats import RowStats
from sketchbandit.sketch.rows import read_rows
from sketchbandit.thread_safety import Shared, both_locks, holds_the_lock

_ROWS_AT_ONCE = 4096  # rows in one product, so that adding up the products costs little


class BulkReader(Shared):
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

    def __init__(self, sketch: Sketch) -> None:
        self._sketch = copy.deepcopy(sketch)
        self._covariance: Matrix | None = None
        self._room: Matrix | None = None
        if sketch.dim <= sketch.gram_up_to_dim:
            self._covariance = np.zeros((sketch.dim, sketch.dim))
        self._row_stats = RowStats(sketch.dtype)
        self._lock = self._make_lock()

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

    def update(self, rows: Any) -> None:
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
                add_rows_to_covariance(covariance, chunk[start : start + _ROWS_AT_ONCE], self._scratch())
            self._row_stats.add_rows(norms_sq)
        sketch.column_names.remember(rows)

    def _scratch(self) -> Matrix:
        """Memory for a product, kept as long as the reader reads."""
        if self._room is None:
            self._room = np.empty((self.dim, self.dim))
        return self._room

    def _unlocked(self) -> dict[str, Any]:
        return {**super()._unlocked(), "_room": None}

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
        bulk = cls(Sketch.of_kind(saved["kind"]).undump(saved["content"], parts))
        bulk._covariance = arrays.get("covariance")
        bulk._row_stats.restore({"nonzero": scalars.get("taken"), **scalars})  # files of 0.7 call it taken
        return bulk
