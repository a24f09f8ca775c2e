"""The rivals, each written with the care of our own code: a slow rival proves nothing."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import IncrementalPCA

import sketchbandit as sb

Matrix = NDArray[np.float64]
Run = Callable[[Matrix, int], tuple[Matrix, float]]
"""(stream, size) -> (rows S, certificate e); e is NaN where the rival has none."""


def ours(stream: Matrix, size: int) -> tuple[Matrix, float]:
    """sketchbandit.FrequentDirections."""
    sketch = sb.FrequentDirections(stream.shape[1], size=size)
    sketch.update(stream)
    return sketch.rows, sketch.error_bound


def numpy_gram(stream: Matrix, size: int) -> tuple[Matrix, float]:
    """Plain numpy FD with a 2·size buffer, shrunk through eigh of the Gram matrix."""

    def shrink(buffer: Matrix) -> float:
        sigma_sq, left = np.linalg.eigh(buffer @ buffer.T)
        sigma_sq = np.maximum(sigma_sq[::-1][:size], 0.0)
        amount = sigma_sq[size - 1]
        factors = np.sqrt(1.0 - amount / sigma_sq[: size - 1])
        buffer[: size - 1] = (left[:, ::-1][:, : size - 1] * factors).T @ buffer
        return float(amount)

    return _frequent_directions(stream, size, shrink)


def numpy_svd(stream: Matrix, size: int) -> tuple[Matrix, float]:
    """Plain numpy FD with a 2·size buffer, shrunk through an SVD."""

    def shrink(buffer: Matrix) -> float:
        _, sigma, right = np.linalg.svd(buffer, full_matrices=False)
        amount = sigma[size - 1] ** 2
        kept = np.sqrt(np.maximum(sigma[: size - 1] ** 2 - amount, 0.0))
        np.multiply(kept[:, np.newaxis], right[: size - 1], out=buffer[: size - 1])
        return float(amount)

    return _frequent_directions(stream, size, shrink)


def incremental_pca(stream: Matrix, size: int) -> tuple[Matrix, float]:
    """scikit-learn's IncrementalPCA in batches of 2·size: no certificate, and it centres the data."""
    model = IncrementalPCA(n_components=size)
    for start in range(0, len(stream) - 2 * size + 1, 2 * size):
        model.partial_fit(stream[start : start + 2 * size], check_input=False)
    return model.singular_values_[:, np.newaxis] * model.components_, float("nan")


def _frequent_directions(
    stream: Matrix, size: int, shrink: Callable[[Matrix], float]
) -> tuple[Matrix, float]:
    buffer = np.empty((2 * size, stream.shape[1]))
    held, taken, error = 0, 0, 0.0
    while taken < len(stream):
        some = stream[taken : taken + 2 * size - held]
        buffer[held : held + len(some)] = some
        held, taken = held + len(some), taken + len(some)
        if held == 2 * size:
            error += shrink(buffer)
            held = size - 1
    return buffer[:held], error
