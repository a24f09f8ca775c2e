"""Gaussian random projection of the rows."""

import math
from typing import Self

import numpy as np
from numpy.typing import DTypeLike

from sketchbandit.arrays import AnyArray, Arrays, Scalars
from sketchbandit.errors import MergeError
from sketchbandit.sketch.accounts import Change
from sketchbandit.sketch.base import Sketch, read_only
from sketchbandit.sketch.checks import check_count


class RandomProjection(Sketch):
    """S = G X, where G has independent N(0, 1/size) entries. S'S is an unbiased estimate of X'X.

    Nothing is certified (``error_bound`` is inf): the estimate is right on average, but maybe not on a given
    stream. Sketches to be merged need different seeds, because equal draws would correlate the two and bias
    the sum. Blocks of rows and single rows give the same sketch up to rounding, but not to the bit.

    Parameters
    ----------
    dim : int
        Length of a row.
    size : int
        The number of rows of S.
    seed : int
        Seed of the entries of G.
    dtype : dtype
        float64, or float32 for half the memory.

    Examples
    --------
    >>> X = np.random.default_rng(1).standard_normal((300, 5))
    >>> estimates = []
    >>> for seed in range(400):
    ...     sketch = RandomProjection(5, size=10, seed=seed)
    ...     change = sketch.update(X)
    ...     estimates.append(sketch.covariance())
    >>> bool(np.allclose(np.mean(estimates, axis=0), X.T @ X, atol=25))
    True

    """

    kind = "random-projection"
    _differs_between_parts = frozenset({"seed"})

    def __init__(self, dim: int, *, size: int = 50, seed: int = 0, dtype: DTypeLike = np.float64) -> None:
        super().__init__(dim, dtype)
        self._size = check_count("size", size, at_least=2)
        self._seed = check_count("seed", seed, at_least=0)
        self._seeds_seen = {self._seed}
        self._random = np.random.default_rng(self._seed)
        self._rows: AnyArray = np.zeros((self._size, self.dim), self.dtype)

    @property
    def size(self) -> int:
        """The number of rows of S."""
        return self._size

    @property
    def seed(self) -> int:
        """The seed of the projection."""
        return self._seed

    @property
    def rows(self) -> AnyArray:
        """S, (size, dim): a read-only copy."""
        return read_only(self._rows.copy())

    @property
    def alpha(self) -> float:
        """Zero: nothing is compensated."""
        return 0.0

    @property
    def error_bound(self) -> float:
        """Infinite: nothing is certified."""
        return float("inf")

    @property
    def nbytes(self) -> int:
        """Bytes of S, the only array held."""
        return self._rows.nbytes

    def _ingest(self, rows: AnyArray) -> Change:
        # In blocks: the draws come in the same order as for one row after another.
        for start in range(0, len(rows), self._size):
            some = rows[start : start + self._size]
            draws = self._random.standard_normal((len(some), self._size)) / np.sqrt(self._size)
            self._rows += draws.astype(self.dtype, copy=False).T @ some
        return Change(rebuilt=True)

    def _forget(self, factor: float) -> Change:
        np.multiply(self._rows, np.float64(math.sqrt(factor)), out=self._rows, casting="same_kind")
        return Change(rebuilt=True)

    def _check_mergeable(self, other: Self) -> None:
        super()._check_mergeable(other)
        shared = self._seeds_seen & other._seeds_seen
        if shared:
            raise MergeError(
                f"cannot merge projections drawn from the same seed {min(shared)}: their errors are "
                "correlated, and the sum would be biased; give every part its own seed"
            )

    def _absorb(self, other: Self) -> None:
        self._rows += other._rows
        self._seeds_seen |= other._seeds_seen

    def _state(self) -> tuple[Scalars, Arrays]:
        scalars = {"seeds_seen": sorted(self._seeds_seen), "random": self._random.bit_generator.state}
        return scalars, {"rows": self._rows}

    def _restore(self, scalars: Scalars, arrays: Arrays) -> None:
        self._seeds_seen = set(scalars["seeds_seen"])
        self._random.bit_generator.state = scalars["random"]
        self._rows[:] = arrays["rows"]
