"""Frequent Directions and its robust variants."""

import numpy as np
from numpy.typing import DTypeLike

from sketchbandit.arrays import Scalars
from sketchbandit.sketch.shrinking import ShrinkingSketch


class FrequentDirections(ShrinkingSketch):
    """Frequent Directions (Liberty 2013), with a buffer: O(dim · size) time per row, O(dim · size) memory.

    At every moment S'S ⪯ X'X ⪯ S'S + e I. The error bound e is at most Delta of the paper's eq. (spectral
    error),

        e <= min over k < size of |X - X_k|_F² / (size - k)    (k = 0: e <= mass / size).

    Parameters
    ----------
    dim : int
        Length of a row.
    size : int
        l, the sketch size. Up to 2·l rows are held; the most recent ones are not shrunk yet.
    compensation : float
        alpha = compensation · e. 0 is FD. 0.5 is the RFD of Luo et al. (2019). 1 is the paper's "RFD" (the
        SCFD of Chen et al. 2021): then S'S + alpha I dominates X'X.
    dtype : dtype
        float64, or float32 for half the memory.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((1000, 40)) * 0.8 ** np.arange(40)
    >>> sketch = FrequentDirections(40, size=20)
    >>> change = sketch.update(X)
    >>> true_error = np.linalg.norm(X.T @ X - sketch.covariance(), 2)
    >>> bool(true_error <= sketch.error_bound <= sketch.mass / sketch.size)
    True
    >>> sketch.count, sketch.rows.shape[0] < 40
    (1000, True)

    """

    kind = "frequent-directions"

    def __init__(
        self, dim: int, *, size: int = 50, compensation: float = 0.0, dtype: DTypeLike = np.float64
    ) -> None:
        super().__init__(dim, size, 0, compensation, dtype)

    def _settings(self) -> Scalars:
        return {
            "dim": self.dim,
            "size": self.size,
            "compensation": self.compensation,
            "dtype": self.dtype.name,
        }
