"""Centred rows from a stream, without a second pass."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from scipy import sparse

from sketchbandit.arrays import Matrix, Vector
from sketchbandit.libraries import Library
from sketchbandit.linalg import inner, row_norms_sq

_CHUNK_ELEMENTS = 1 << 20  # 8 MiB of float64


def dense_chunks(X: Any, *others: Vector) -> Iterator[tuple[Matrix, ...]]:
    """Rows of X, dense float64, one chunk at a time, with the matching entries of ``others``."""
    step = max(1, _CHUNK_ELEMENTS // X.shape[1])
    for start in range(0, X.shape[0], step):
        piece = X[start : start + step]
        rows = piece.toarray() if sparse.issparse(piece) else piece
        yield rows.astype(np.float64, copy=False), *(other[start : start + step] for other in others)


def mass_of(X: Any) -> float:
    """The sum of all squares, without a copy; inf if it overflows."""
    with np.errstate(over="ignore"):
        if sparse.issparse(X):
            return float(row_norms_sq(X.data[np.newaxis])[0])
        return float(sum(row_norms_sq(rows).sum() for (rows,) in dense_chunks(X)))


def most_scatter(X: Any, mean: Vector) -> float:
    """An upper bound on what the rows of X add to a scatter centred at ``mean``."""
    return 2.0 * (mass_of(X) + X.shape[0] * inner(mean, mean))


class Centring:
    """The means of a stream, and its rows centred as if the means had been known from the start.

    With n rows of mean mu seen, and a batch of m rows of mean nu to come,

        sum over all of (x - mean)(x - mean)'
            = the same of the n rows + the same of the batch + n·m/(n + m) (nu - mu)(nu - mu)'.

    So the rows x - nu of the batch and the one row sqrt(n·m/(n + m)) (nu - mu) add to a sketch exactly what
    the batch adds to the centred scatter, and its certificate stays what it is.

    Examples
    --------
    >>> centring = Centring(1)
    >>> centring.centred(np.array([[1.0], [3.0]])).ravel().tolist()
    [-1.0, 1.0]
    >>> rows = centring.centred(np.array([[5.0]]))
    >>> centring.mean.tolist(), round(float(2.0 + (rows**2).sum()), 9)  # (1, 3, 5): scatter 4 + 0 + 4
    ([3.0], 8.0)

    """

    def __init__(self, dim: int) -> None:
        self.count = 0
        self.mean: Vector = np.zeros(dim)

    @contextmanager
    def unless_it_fails(self) -> Iterator[None]:
        """Go back to mean and count as they were if the sketch does not take the rows."""
        count, mean = self.count, self.mean
        try:
            yield
        except BaseException:
            self.count, self.mean = count, mean
            raise

    def centred(self, rows: Matrix) -> Matrix:
        """Rows that add what the given rows add to the centred scatter."""
        m = len(rows)
        mean = rows.mean(axis=0)
        shift = self._move(mean, m)
        added = np.empty((m + len(shift), rows.shape[1]))
        np.subtract(rows, mean, out=added[:m])
        added[m:] = shift
        return added

    def centred_on_device(self, library: Library, rows: Any) -> Any:
        """The same for float64 rows of another library, on their device."""
        mean = library.xp.mean(rows, axis=0)
        shift = self._move(library.to_host(mean), rows.shape[0])
        return library.xp.concat([rows - mean[None, :], library.put(shift)], axis=0)

    def _move(self, mean: Vector, m: int) -> Matrix:
        """Include the mean of m rows. Return at most one row, for the shift."""
        n, shift = self.count, mean - self.mean
        self.mean = self.mean + shift * (m / (n + m))
        self.count = n + m
        return np.sqrt(n * m / (n + m)) * shift[np.newaxis] if n else np.empty((0, len(mean)))
