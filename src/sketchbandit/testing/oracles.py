"""Slow, simple implementations to test against."""

import json

import numpy as np

from sketchbandit.arrays import Matrix
from sketchbandit.sketch import Sketch


def assert_bracketed(
    covariance: Matrix,
    sketch: "Sketch | UnbufferedFrequentDirections",
    mass: float,
    *,
    tolerance: float = 1e-11,
) -> None:
    """Assert S'S ⪯ X'X ⪯ S'S + e I, up to ``tolerance`` times the mass of the stream."""
    rows = np.asarray(sketch.rows, dtype=np.float64)
    assert np.isfinite(rows).all(), "the sketch holds NaN or inf"
    loss = np.linalg.eigvalsh(covariance - rows.T @ rows)
    slack = tolerance * mass
    assert loss[0] >= -slack, f"S'S exceeds X'X by {-loss[0]:g}, beyond rounding ({slack:g})"
    assert loss[-1] <= sketch.error_bound + slack, (
        f"X'X exceeds S'S by {loss[-1]:g}, but the certificate is {sketch.error_bound:g}"
    )


def assert_covariance_is_the_estimate(sketch: Sketch) -> None:
    """Assert gram() = S'S and covariance() = S'S + alpha I, up to rounding."""
    gram = sketch.rows.T @ sketch.rows
    assert np.allclose(sketch.gram(), gram, rtol=0.0, atol=1e-11 * sketch.mass)
    expected = gram + sketch.alpha * np.eye(sketch.dim)
    assert np.allclose(sketch.covariance(), expected, rtol=0.0, atol=1e-11 * sketch.mass)


def snapshot(sketch: Sketch) -> tuple[str, dict[str, bytes]]:
    """Everything that a sketch returns and would save, to be compared bit for bit.

    The values are read from the sketch itself, so that a file which omits something is found out.
    """
    scalars, arrays = sketch.dump()
    told = (sketch.count, sketch.mass, sketch.size, sketch.alpha, sketch.error_bound)
    saved = {name: array.tobytes() for name, array in arrays.items()}
    return json.dumps([scalars, told], sort_keys=True), {**saved, "rows told": sketch.rows.tobytes()}


def assert_identical(one: Sketch, other: Sketch) -> None:
    """Assert that two sketches return and would save the same, to the bit."""
    (numbers, arrays), (others, other_arrays) = snapshot(one), snapshot(other)
    differing = [
        name for name in arrays.keys() | other_arrays.keys() if arrays.get(name) != other_arrays.get(name)
    ]
    assert not differing, f"these arrays differ: {', '.join(sorted(differing))}"
    assert numbers == others, f"what is told or saved differs: {numbers} and {others}"


class UnbufferedFrequentDirections:
    """Algorithms FD and RFD of the paper to the letter, with an SVD for every row. Only an oracle."""

    def __init__(self, dim: int, *, size: int, compensation: float = 0.0) -> None:
        self.rows = np.zeros((size, dim))
        self.compensation = compensation
        self.error_bound = 0.0

    @property
    def alpha(self) -> float:
        """The counter of Algorithm RFD."""
        return self.compensation * self.error_bound

    def update(self, row: Matrix) -> None:
        """Put the row in place of the last one, which is zero, and subtract sigma_l² from the spectrum."""
        size, dim = self.rows.shape
        self.rows[-1] = row
        _, sigma, right = np.linalg.svd(self.rows, full_matrices=False)
        sigma_sq = np.zeros(size)
        sigma_sq[: len(sigma)] = sigma**2
        s = sigma_sq[size - 1]
        self.error_bound += float(s)
        self.rows = np.zeros((size, dim))
        self.rows[: len(sigma)] = np.sqrt(np.maximum(sigma_sq - s, 0.0))[: len(sigma), np.newaxis] * right
