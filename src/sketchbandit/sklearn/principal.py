"""What a principal component analysis learns from a stream: a sketch of the centred scatter."""

from typing import Any, NamedTuple

import numpy as np

from sketchbandit.arrays import Matrix, Vector
from sketchbandit.sketch import BulkReader, Sketch, spectrum
from sketchbandit.sklearn.centring import Centring, dense_chunks, most_scatter


class Principal(NamedTuple):
    """The sketch, and its leading directions."""

    sketch: Sketch
    components: Matrix
    scatter: Vector
    """Along each of them, at least."""


class LearnedScatter:
    """The centred scatter of the stream so far; its principal directions are computed when somebody asks."""

    def __init__(self, sketch: Sketch, components: int) -> None:
        self.centring = Centring(sketch.dim)
        self.components = components
        self._bulk = BulkReader(sketch)
        self._principal: Principal | None = None

    @property
    def count(self) -> int:
        """How many rows were seen."""
        return self.centring.count

    @property
    def sketch(self) -> Sketch:
        """Of the centred rows."""
        return self.principal.sketch

    def update(self, X: Any) -> None:
        """Learn from some more rows."""
        self._bulk.check_room(most_scatter(X, self.centring.mean))  # nothing is refused after that
        self._principal = None
        for (rows,) in dense_chunks(X):
            self._bulk.update(self.centring.centred(rows))

    @property
    def principal(self) -> Principal:
        """Computed once after the last ``update``."""
        if self._principal is None:
            sketch = self._bulk.finish()
            found = spectrum(sketch, self.components)
            self._principal = Principal(sketch, *_complete(found.directions, found.sigma_sq, self.components))
        return self._principal


def _complete(directions: Matrix, scatter: Vector, count: int) -> tuple[Matrix, Vector]:
    """``count`` orthonormal directions whose largest entries are positive; missing ones are made up."""
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
