"""What principal component analysis learns from a stream: a sketch of the centred scatter."""

from typing import Any, NamedTuple

import numpy as np

from sketchbandit.arrays import Matrix, Vector
from sketchbandit.libraries import is_foreign
from sketchbandit.linalg import inner
from sketchbandit.sketch import BulkReader, Sketch, spectrum
from sketchbandit.sketch.gathering import device_norms_sq, device_rows, pieces
from sketchbandit.sketch.rows import read_rows
from sketchbandit.sklearn.centring import Centring, dense_chunks, most_scatter

_ROWS_AT_ONCE = 8192  # rows of a tensor


class Principal(NamedTuple):
    """The sketch, and its leading directions."""

    sketch: Sketch
    components: Matrix
    scatter: Vector
    """The scatter along each direction, a lower bound."""


class LearnedScatter:
    """The centred scatter of the stream so far. Principal directions are computed when they are needed."""

    def __init__(self, sketch: Sketch, components: int) -> None:
        self.centring = Centring(sketch.dim)
        self.components = components
        self._bulk = BulkReader(sketch)
        self._principal: Principal | None = None

    @property
    def count(self) -> int:
        """The number of rows seen."""
        return self.centring.count

    @property
    def sketch(self) -> Sketch:
        """The sketch of the centred rows."""
        return self.principal.sketch

    def update(self, X: Any) -> None:
        """Learn from further rows, of numpy or of another library."""
        if is_foreign(X):
            self._update_on_device(X)
            return
        self._bulk.check_room(most_scatter(X, self.centring.mean))  # nothing is refused after this
        self._principal = None
        for (rows,) in dense_chunks(X):
            with self.centring.unless_it_fails():
                self._bulk.update(self.centring.centred(rows))

    def _update_on_device(self, X: Any) -> None:
        library, rows = device_rows(X, len(self.centring.mean))
        norms_sq = device_norms_sq(library, rows)
        if library.widest != library.xp.float64 or not np.isfinite(norms_sq).all():
            host = library.to_host(rows).astype(np.float64)
            read_rows(host, host.shape[1], host.dtype)  # raises with the reason if a row cannot be used
            self.update(host)
            return
        mean = self.centring.mean
        self._bulk.check_room(2.0 * (float(norms_sq.sum()) + len(norms_sq) * inner(mean, mean)))
        self._principal = None
        for piece in pieces(rows, _ROWS_AT_ONCE):
            with self.centring.unless_it_fails():
                wide = library.cast(piece, library.widest)
                self._bulk.update(self.centring.centred_on_device(library, wide))

    @property
    def principal(self) -> Principal:
        """The principal directions, computed once after the last ``update``."""
        if self._principal is None:
            sketch = self._bulk.finish()
            found = spectrum(sketch, self.components)
            self._principal = Principal(sketch, *_complete(found.directions, found.sigma_sq, self.components))
        return self._principal


def _complete(directions: Matrix, scatter: Vector, count: int) -> tuple[Matrix, Vector]:
    """``count`` orthonormal directions whose largest entries are positive. Missing ones are filled in."""
    there = int(np.count_nonzero(scatter > np.finfo(np.float64).eps ** 2 * scatter[:1].sum()))
    full = np.zeros(count)
    full[:there] = scatter[:there]
    directions = directions[:there]
    if there < count:
        extra = np.random.default_rng(0).standard_normal((count - there, directions.shape[1]))
        basis = np.linalg.qr(np.concatenate([directions, extra]).T)[0].T
        directions = np.concatenate([directions, basis[there:]])
    largest = directions[np.arange(count), np.abs(directions).argmax(axis=1)]
    return directions * np.sign(largest)[:, np.newaxis], full
