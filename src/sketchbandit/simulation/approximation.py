"""Matrix approximation: a sketch reads rows, and its true error stands beside certificate and bound."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from sketchbandit import data
from sketchbandit.arrays import Matrix, Scalars
from sketchbandit.errors import InputError
from sketchbandit.linalg import covariance_error, fd_bound, normalised, row_norms_sq
from sketchbandit.simulation.specs import Spec
from sketchbandit.sketch import DyadicBlockSketch, FrequentDirections, Sketch


class Studied(NamedTuple):
    """A sketch, the paper's name for it, and the paper's bound on its error."""

    kind: Callable[..., Sketch]
    title: str
    bound_sign: str
    bound: Callable[[Spec, Matrix], float]


def _delta(contender: Spec, covariance: Matrix) -> float:
    """Delta_t of eq. (spectral error)."""
    spectrum = np.maximum(np.linalg.eigvalsh(covariance), 0.0)
    return fd_bound(spectrum, int(contender.get("size")))


SKETCHES = {
    "fd": Studied(FrequentDirections, title="FD", bound_sign="Δ", bound=_delta),
    "dbs": Studied(  # Thm. 1
        DyadicBlockSketch, title="DBS", bound_sign="2ε", bound=lambda dbs, _: 2.0 * float(dbs.get("epsilon"))
    ),
}


def matrix(environment: Spec, count: int, seed: int) -> Matrix:
    """``rows:data=gaussian,dim=500`` or ``rows:data=digits``: that many unit rows, in random order."""
    random = np.random.default_rng(seed)
    name = str(environment.get("data"))
    if name == "gaussian":
        rows = random.standard_normal((count, int(environment.get("dim", 500))))
    else:
        stored = data.load(name).features
        if not isinstance(stored, np.ndarray):
            raise InputError(f"{name} is sparse; its covariance would not fit: choose a dense data set")
        rows = stored.astype(np.float64)
        rows = rows[row_norms_sq(rows) > 0.0]
        rows = rows[random.permutation(len(rows))[:count]]
    return normalised(rows)


def measure(environment: Spec, contender: Spec, count: int, *, seed: int, points: int) -> Iterator[Scalars]:
    """Stream the matrix through the sketch; a row at each point."""
    rows = matrix(environment, count, seed)
    dim = rows.shape[1]
    studied = SKETCHES[contender.name]
    sketch = studied.kind(dim, **dict(contender.settings))
    covariance = np.zeros((dim, dim))
    every = max(1, len(rows) // points)
    for start in range(0, len(rows), every):
        block = rows[start : start + every]
        covariance += block.T @ block
        sketch.update(block)
        yield {
            "round": sketch.count,
            "error": covariance_error(covariance, sketch.rows),
            "certificate": sketch.error_bound,
            "bound": studied.bound(contender, covariance),
            "sketch_size": sketch.size,
            "sketch_rows": len(sketch.rows),
            "bytes": sketch.nbytes,
        }
