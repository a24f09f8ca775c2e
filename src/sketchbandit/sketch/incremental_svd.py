"""Incremental SVD with a certificate."""

import math

import numpy as np
from numpy.typing import DTypeLike

from sketchbandit.arrays import Scalars
from sketchbandit.sketch.checks import check_count, check_real
from sketchbandit.sketch.shrinking import ShrinkingSketch


class IncrementalSVD(ShrinkingSketch):
    """Incremental SVD with a certified error, by shrinking the tail (Desai, Ghashami, Phillips 2016).

    Plain incremental SVD keeps the leading directions and drops the rest. This is excellent on most streams
    and arbitrarily wrong on some, without notice. Here the last ``tail`` of the ``size`` directions is
    shrunk as in Frequent Directions, which certifies the loss:

        S'S ⪯ X'X ⪯ S'S + e I,        e <= mass / ceil(tail · size).

    With the default tail this bound is five times that of Frequent Directions. The actual error is usually
    smaller, because the leading directions stay as they are.

    Parameters
    ----------
    dim : int
        Length of a row.
    size : int
        The sketch size: at most size - 1 rows after a shrink, up to 2·size in between.
    tail : float
        The fraction of directions that is shrunk. 1 is Frequent Directions.
    compensation : float
        alpha = compensation · e, as for ``FrequentDirections``.
    dtype : dtype
        float64, or float32 for half the memory.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((1000, 40)) * 0.8 ** np.arange(40)
    >>> sketch = IncrementalSVD(40, size=20)
    >>> change = sketch.update(X)
    >>> true_error = np.linalg.norm(X.T @ X - sketch.covariance(), 2)
    >>> bool(true_error <= sketch.error_bound <= sketch.mass / sketch.guarantee)
    True

    """

    kind = "incremental-svd"

    def __init__(
        self,
        dim: int,
        *,
        size: int = 50,
        tail: float = 0.2,
        compensation: float = 0.0,
        dtype: DTypeLike = np.float64,
    ) -> None:
        self._tail = check_real("tail", tail, above=0.0, at_most=1.0)
        size = check_count("size", size, at_least=2)
        super().__init__(dim, size, size - math.ceil(self._tail * size), compensation, dtype)

    @property
    def tail(self) -> float:
        """The fraction of directions that is shrunk."""
        return self._tail

    def _settings(self) -> Scalars:
        return {
            "dim": self.dim,
            "size": self.size,
            "tail": self.tail,
            "compensation": self.compensation,
            "dtype": self.dtype.name,
        }
