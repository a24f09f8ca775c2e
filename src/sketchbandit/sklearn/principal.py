"""What principal component analysis learns from a stream: a sketch of the centred scatter."""

from typing import Any, NamedTuple

import numpy as np

from sketchbandit.arrays import Matrix, Vector
from sketchbandit.sketch import Sketch, spectrum
from sketchbandit.sketch.bulk_reader import CentredReader


class Principal(NamedTuple):
    """The sketch, and its leading directions."""

    sketch: Sketch
    components: Matrix
    scatter: Vector
    """The scatter along each direction, a lower bound."""


class LearnedScatter:
    """The centred scatter of the stream so far. Principal directions are computed when they are needed."""

    def __init__(self, sketch: Sketch, components: int) -> None:
        self.components = components
        self._reader = CentredReader(sketch)
        self._principal: Principal | None = None

    @property
    def count(self) -> int:
        """The number of rows seen."""
        return self._reader.count

    @property
    def mean(self) -> Vector:
        """The mean of all rows seen."""
        return self._reader.mean

    @property
    def sketch(self) -> Sketch:
        """The sketch of the centred rows."""
        return self.principal.sketch

    def update(self, X: Any) -> None:
        """Learn from further rows, of numpy or of another library."""
        self._reader.update(X)
        self._principal = None

    @property
    def principal(self) -> Principal:
        """The principal directions, computed once after the last ``update``."""
        if self._principal is None:
            sketch = self._reader.finish()
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
