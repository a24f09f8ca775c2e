"""The arms of a warm-up, before scaling."""

from typing import Any

import numpy as np
from scipy import sparse

from sketchbandit.arrays import Arrays, Scalars

_MOST_OF_A_REQUEST = 50  # arms: requests differ from one another, so several have to be seen


class Sample:
    """Arms that were offered, or learned from without being offered."""

    def __init__(self, dim: int) -> None:
        self.dim = dim
        self.count = 0
        self.learned = 0
        """The number of arms with a reward."""
        self._parts: list[Any] = []

    def add(self, arms: Any) -> None:
        """Keep a copy of the rows of an array or of a CSR matrix."""
        if arms.shape[0]:
            self._parts.append(arms.astype(np.float64))
            self.count += arms.shape[0]

    def add_request(self, arms: Any) -> None:
        """Keep the arms of one request; if there are many, evenly spaced ones."""
        self.add(arms[:: max(1, -(-arms.shape[0] // _MOST_OF_A_REQUEST))])

    def merge(self, other: "Sample") -> None:
        """Add the arms of another sample."""
        self._parts += other._parts
        self.count += other.count
        self.learned += other.learned

    @property
    def rows(self) -> Any:
        """All arms: an array, or a CSR matrix if some came as one."""
        return stacked(self._parts, self.dim)

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays held."""
        return sum(held.nbytes for part in self._parts for held in as_arrays(part).values())

    # -- files --------------------------------------------------------------------------------------

    def dump(self) -> tuple[Scalars, Arrays]:
        """JSON values and arrays that ``undump`` turns into the same sample."""
        return {"dim": self.dim, "learned": self.learned}, as_arrays(self.rows)

    @classmethod
    def undump(cls, scalars: Scalars, arrays: Arrays) -> "Sample":
        """Return the sample that ``dump`` described."""
        made = cls(int(scalars["dim"]))
        made.add(from_arrays(arrays, made.dim))
        made.learned = int(scalars["learned"])
        return made


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
