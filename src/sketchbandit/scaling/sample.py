"""The arms of a warm-up, as they came."""

from typing import Any

import numpy as np
from scipy import sparse

from sketchbandit.arrays import Arrays, Scalars

_MOST_OF_A_REQUEST = 50  # arms: what differs from request to request has to be seen as well


class Sample:
    """Arms that were offered, or learned from without that."""

    def __init__(self, dim: int) -> None:
        self.dim = dim
        self.count = 0
        self.learned = 0
        """Arms that rewards came for."""
        self._parts: list[Any] = []

    def add(self, arms: Any) -> None:
        """Rows of an array or of a CSR matrix; a copy is kept."""
        if arms.shape[0]:
            self._parts.append(arms.astype(np.float64))
            self.count += arms.shape[0]

    def add_request(self, arms: Any) -> None:
        """The arms of one request: of many, some that stand evenly apart."""
        self.add(arms[:: max(1, -(-arms.shape[0] // _MOST_OF_A_REQUEST))])

    def merge(self, other: "Sample") -> None:
        """Those of another too."""
        self._parts += other._parts
        self.count += other.count
        self.learned += other.learned

    @property
    def rows(self) -> Any:
        """All of them: an array, or a CSR matrix if some came as one."""
        return stacked(self._parts, self.dim)

    @property
    def nbytes(self) -> int:
        """Bytes of every array held."""
        return sum(held.nbytes for part in self._parts for held in as_arrays(part).values())

    # -- files --------------------------------------------------------------------------------------

    def dump(self) -> tuple[Scalars, Arrays]:
        """JSON values and arrays that ``undump`` turns into the same."""
        return {"dim": self.dim, "learned": self.learned}, as_arrays(self.rows)

    @classmethod
    def undump(cls, scalars: Scalars, arrays: Arrays) -> "Sample":
        """Those that ``dump`` described."""
        made = cls(int(scalars["dim"]))
        made.add(from_arrays(arrays, made.dim))
        made.learned = int(scalars["learned"])
        return made


def stacked(parts: list[Any], dim: int) -> Any:
    """Rows as they came, one below the other: a CSR matrix if any of them is one."""
    if any(sparse.issparse(part) for part in parts):
        return sparse.csr_array(sparse.vstack([sparse.csr_array(part) for part in parts]))
    return np.concatenate(parts) if parts else np.empty((0, dim))


def as_arrays(rows: Any) -> Arrays:
    """Arrays of which ``from_arrays`` makes the same rows."""
    if sparse.issparse(rows):
        return {name: getattr(rows, name) for name in ("data", "indices", "indptr")}
    return {"rows": rows}


def from_arrays(arrays: Arrays, dim: int) -> Any:
    """The rows of which ``as_arrays`` made arrays."""
    if "data" not in arrays:
        return arrays["rows"]
    parts = arrays["data"], arrays["indices"], arrays["indptr"]
    return sparse.csr_array(parts, shape=(len(parts[2]) - 1, dim))
