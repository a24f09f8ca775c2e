"""The matrices that experiments read, by name."""

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits

Matrix = NDArray[np.float64]


def gaussian(count: int, dim: int, seed: int) -> Matrix:
    """Independent N(0, I) rows, l2-normalised: the paper's synthetic matrix."""
    return normalised(np.random.default_rng(seed).standard_normal((count, dim)))


def digits(count: int, seed: int) -> Matrix:
    """``count`` rows of the 8x8 digits that ship inside scikit-learn, in random order, l2-normalised."""
    rows = normalised(load_digits().data)
    return rows[np.random.default_rng(seed).permutation(len(rows))[:count]]


def normalised(rows: Matrix) -> Matrix:
    """The rows divided by their l2 norms, zero rows dropped."""
    norms = np.linalg.norm(rows, axis=1)
    result: Matrix = rows[norms > 0] / norms[norms > 0, np.newaxis]
    return result
