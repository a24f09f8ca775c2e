"""The properties that every sketch has."""

import math
from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from sketchbandit.arrays import AnyArray, Matrix, Parts, Scalars
from sketchbandit.html_repr import Facts, amount, certificate
from sketchbandit.linalg import SUM_ROUNDING, covariance_of
from sketchbandit.serialization import Stored
from sketchbandit.sketch.checks import check_count, check_dtype
from sketchbandit.sketch.columns import ColumnNames, Name
from sketchbandit.sketch.row_stats import RowStats
from sketchbandit.thread_safety import needs_the_lock


class Telling(Stored):
    """The properties of a sketch: what it holds, what it certifies, what it promises."""

    def __init__(self, dim: int, dtype: DTypeLike) -> None:
        self._dim = check_count("dim", dim, at_least=1)
        self._dtype = check_dtype(dtype)
        self.row_stats = RowStats(self._dtype)
        """Count and mass, for callers that hold the lock."""
        self.column_names = ColumnNames()
        self._lock = self._make_lock()

    @property
    def dim(self) -> int:
        """Length of a row."""
        return self._dim

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype in which rows are stored."""
        return self._dtype

    @property
    def columns(self) -> tuple[Name, ...] | None:
        """The column names, if rows came as a DataFrame; else None. Later rows are put into this order."""
        return self.column_names.names

    @property
    def count(self) -> int:
        """The number of rows seen, including zero rows."""
        return self.row_stats.count

    @property
    def effective_count(self) -> float:
        """The sum of the weights of the rows seen. This is their number, unless something was forgotten."""
        return self.row_stats.count - self.row_stats.forgotten

    @property
    def mass(self) -> float:
        """The sum of the squared norms of the rows seen, times their weights."""
        return self.row_stats.mass

    @property
    @abstractmethod
    def size(self) -> int:
        """The current sketch size l."""

    @property
    @abstractmethod
    def rows(self) -> AnyArray:
        """S, shape (r, dim), including buffered rows: a read-only copy."""

    @property
    def row_count(self) -> int:
        """The number of rows of S; dim if S'S is held as a matrix."""
        return self._dim if self.is_dense else sum(len(view) for view in self.views())

    @property
    def parts(self) -> Parts:
        """``rows`` in the pieces in which they are kept. Concatenated, they are S."""
        return tuple(read_only(view.copy()) for view in self.views())

    @needs_the_lock
    def views(self) -> Parts:
        """``parts`` without a copy. Only for callers that hold the lock, and valid until the next update."""
        return (self.rows,)

    @property
    def is_dense(self) -> bool:
        """Whether S'S is held as a matrix. Then ``covariance()`` is cheap and ``rows`` is not."""
        return False

    @property
    @abstractmethod
    def alpha(self) -> float:
        """The compensation on the diagonal: X'X is estimated by S'S + alpha I."""

    @property
    @abstractmethod
    def error_bound(self) -> float:
        """The certified error bound e: X'X exceeds S'S by at most e in every direction."""

    @property
    def rounding(self) -> float:
        """The part of ``error_bound`` that is rounding. S'S may exceed X'X by as much."""
        return 0.0

    @property
    def uncounted(self) -> float:
        """A bound on the float64 rounding that ``error_bound`` leaves out: 4·eps·mass, plus that of shrinks.

        It is left out because it is at most about 1e-11 of the mass.
        """
        return SUM_ROUNDING * self.row_stats.mass

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Bytes of all arrays held."""

    @property
    def guarantee(self) -> float:
        """The g with ``error_bound - rounding <= mass / g`` on every stream; 0 if nothing is promised."""
        return 0.0

    @property
    def error_limit(self) -> float:
        """What ``error_bound`` never exceeds, on any stream; inf if nothing is promised."""
        return float("inf")

    @property
    def error_order(self) -> float:
        """The p for which ``error_bound`` is O(t^p) on every stream; inf if nothing is promised."""
        return 0.0 if math.isfinite(self.error_limit) else math.inf

    @property
    def budget(self) -> float:
        """What ``error_bound`` may be by now; inf if nothing is promised."""
        return self.error_limit

    @property
    def exact_rank(self) -> int:
        """The largest rank of a stream that is kept without loss; 0 if nothing is promised."""
        return 0

    @property
    def lossless_room(self) -> int:
        """The number of rows that can come before anything may be lost; 0 if nothing is promised."""
        return 0

    @property
    def plain_room(self) -> int:
        """The number of rows that can come and are only appended, so that no ``Change`` is ``rebuilt``."""
        return 0

    @property
    def gram_up_to_dim(self) -> int:
        """The dim up to which it is better to sum up many rows in X'X first (``BulkReader``)."""
        return 0

    def gram(self) -> Matrix:
        """S'S as a dense (dim, dim) matrix, a new array. For small dim."""
        first, *others = self.views()
        gram = covariance_of(first)
        for rows in others:
            gram += covariance_of(rows)
        return gram

    def covariance(self) -> Matrix:
        """S'S + alpha I, the estimate of X'X, as a dense (dim, dim) matrix. For small dim."""
        covariance = self.gram()
        covariance[np.diag_indices_from(covariance)] += self.alpha
        return covariance

    @abstractmethod
    def _settings(self) -> Scalars:
        """The keyword arguments of the constructor, as JSON values."""

    def __repr__(self) -> str:
        settings = ", ".join(f"{name}={value!r}" for name, value in self._settings().items())
        kept = "S'S" if self.is_dense else self.row_count
        return (
            f"<{type(self).__name__}({settings}): {self.count} rows seen, {kept} kept, "
            f"error <= {self.error_bound:.4g}>"
        )

    def _facts(self) -> Facts:
        kept = "S'S, a full matrix" if self.is_dense else f"{self.row_count:,}"
        settings = ", ".join(f"{name}={value!r}" for name, value in self._settings().items())
        return [
            ("settings", settings),
            ("rows seen", f"{self.count:,}"),
            ("rows kept", kept),
            ("memory", amount(self.nbytes)),
            ("certificate", certificate(self.error_bound)),
        ]


def read_only(rows: AnyArray) -> AnyArray:
    """A view of the array that cannot be written to."""
    view = rows.view()
    view.flags.writeable = False
    return view
