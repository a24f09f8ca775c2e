"""The arms of a warm-up, before scaling."""

from typing import Any

import numpy as np
from scipy import sparse

from sketchbandit.arrays import Arrays, Scalars

MOST_OF_A_REQUEST = 50
"""Arms of one request that are kept, as long as few requests were seen."""
MOST = 400
"""Arms that are kept of many requests: at least two of each."""


class Sample:
    """Arms that were offered, or learned from without being offered, request by request.

    The more requests there are, the fewer arms of each are kept. So what differs between requests counts,
    however many arms one of them has.
    """

    def __init__(self, dim: int) -> None:
        self.dim = dim
        self.offered = 0
        """The number of arms offered."""
        self.learned = 0
        """The number of arms with a reward."""
        self._parts: list[Any] = []  # the arms kept of each request
        self._share = MOST_OF_A_REQUEST  # the most arms kept of one request

    @property
    def requests(self) -> int:
        """The number of requests seen."""
        return len(self._parts)

    def add(self, arms: Any) -> None:
        """Keep a copy of the rows (an array or a CSR matrix) of a request; of many, evenly spaced ones."""
        if arms.shape[0]:
            self.offered += arms.shape[0]
            self._parts.append(_thinned(arms, self._share, self.requests).astype(np.float64))
            self._thin()

    def merge(self, other: "Sample") -> None:
        """Add the requests of another sample."""
        self._parts += other._parts
        self.offered += other.offered
        self.learned += other.learned
        self._share = MOST_OF_A_REQUEST  # the other requests may have more arms than are kept here
        self._thin()

    def _thin(self) -> None:
        """Keep fewer arms of each request, if there are so many requests."""
        share = min(MOST_OF_A_REQUEST, max(2, MOST // (1 << (self.requests - 1).bit_length())))
        if share < self._share:
            self._share = share
            self._parts = [_thinned(part, share, place).copy() for place, part in enumerate(self._parts)]

    @property
    def rows(self) -> Any:
        """All arms kept: an array, or a CSR matrix if some came as one."""
        return stacked(self._parts, self.dim)

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays held."""
        return sum(held.nbytes for part in self._parts for held in as_arrays(part).values())

    # -- files --------------------------------------------------------------------------------------

    def dump(self) -> tuple[Scalars, Arrays]:
        """JSON values and arrays that ``undump`` turns into the same sample."""
        kept = [part.shape[0] for part in self._parts]
        return {"dim": self.dim, "offered": self.offered, "learned": self.learned, "kept": kept}, as_arrays(
            self.rows
        )

    @classmethod
    def undump(cls, scalars: Scalars, arrays: Arrays) -> "Sample":
        """Return the sample that ``dump`` described."""
        made = cls(int(scalars["dim"]))
        rows = from_arrays(arrays, made.dim)
        kept = scalars.get("kept", [1] * rows.shape[0])  # in files of 0.14 every arm counts as a request
        ends = np.cumsum(kept, dtype=np.intp).tolist()
        made._parts = [rows[end - count : end].copy() for count, end in zip(kept, ends, strict=True)]
        made.offered = int(scalars.get("offered", rows.shape[0]))
        made.learned = int(scalars["learned"])
        made._thin()
        return made


def _thinned(rows: Any, most: int, start: int) -> Any:
    """At most so many rows, evenly spaced. Where they start differs from request to request."""
    step = max(1, -(-rows.shape[0] // most))
    return rows[start % step :: step]


def stacked(parts: list[Any], dim: int) -> Any:
    """Concatenate rows; the result is a CSR matrix if any part is one."""
    if any(sparse.issparse(part) for part in parts):
        return sparse.csr_array(sparse.vstack([sparse.csr_array(part) for part in parts]))
    return np.concatenate(parts) if parts else np.empty((0, dim))


def as_arrays(rows: Any) -> Arrays:
    """Arrays from which ``from_arrays`` makes the same rows."""
    if sparse.issparse(rows):
        return {name: getattr(rows, name) for name in ("data", "indices", "indptr")}
    return {"rows": rows}


def from_arrays(arrays: Arrays, dim: int) -> Any:
    """The rows that ``as_arrays`` turned into arrays."""
    if "data" not in arrays:
        return arrays["rows"]
    parts = arrays["data"], arrays["indices"], arrays["indptr"]
    return sparse.csr_array(parts, shape=(len(parts[2]) - 1, dim))
