"""Arms in the three forms that the service takes, and their bytes in the journal."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from sketchbandit.service.problems import Invalid

Vector = Any
"""One arm: a float64 array (dim,), or a CSR matrix (1, dim)."""
Matrix = Any
"""Arms: a float64 array (K, dim), or a CSR matrix."""

_DENSE, _SPARSE = b"D", b"S"


def from_sparse(indices: Sequence[int], values: Sequence[float], dim: int, at: str) -> Vector:
    """The vector with these entries."""
    if len(indices) != len(values):
        raise Invalid(f"{at} has {len(indices)} indices and {len(values)} values")
    columns = np.asarray(indices, dtype=np.int32)
    if len(columns) and not (columns.min() >= 0 and columns.max() < dim):
        raise Invalid(f"{at} has an index outside 0..{dim - 1}")
    if len(np.unique(columns)) != len(columns):
        raise Invalid(f"{at} has an index twice")
    order = np.argsort(columns)
    return _row(columns[order], np.asarray(values, dtype=np.float64)[order], dim)


def from_named(features: Sequence[Mapping[str, float | str]], dim: int) -> Matrix:
    """Named features hashed to ``dim`` columns: a text value is the feature "name=value" with value 1."""
    hashed = _hasher(dim).transform(features)
    return sparse.csr_array(hashed)


@lru_cache(maxsize=64)
def _hasher(dim: int) -> Any:
    from sklearn.feature_extraction import FeatureHasher  # noqa: PLC0415  (a second to import, seldom needed)

    return FeatureHasher(dim)


def stack(rows: Sequence[Vector]) -> Matrix:
    """Several arms as one matrix: sparse if any of them is."""
    if all(isinstance(row, np.ndarray) for row in rows):
        return np.array(rows)
    return sparse.vstack(
        [sparse.csr_array(np.atleast_2d(r)) if isinstance(r, np.ndarray) else r for r in rows]
    )


def check(matrix: Matrix, magnitude: float, name: str | None = None) -> None:
    """Refuse NaN, inf and arms so long that sums could overflow; ``name`` is what a single one is called."""
    with np.errstate(over="ignore", invalid="ignore"):
        squares = (
            np.einsum("ij,ij->i", matrix, matrix) if isinstance(matrix, np.ndarray) else _row_squares(matrix)
        )
    if not squares.max(initial=0.0) <= magnitude**2:  # NaN ends here too
        at = int(np.flatnonzero(~(squares <= magnitude**2))[0])
        called = name or f"arm {at}"
        if np.isfinite(squares[at]):
            raise Invalid(f"{called} has length {squares[at] ** 0.5:g}; the limit is {magnitude:g}")
        raise Invalid(f"{called} contains NaN, inf or a number that is too large")


def _row_squares(matrix: Any) -> NDArray[np.float64]:
    return np.asarray(matrix.power(2).sum(axis=1), dtype=np.float64).ravel()


def _row(columns: NDArray[np.int32], data: NDArray[np.float64], dim: int) -> Vector:
    ends = np.array([0, len(columns)], dtype=np.int32)
    return sparse.csr_array((data, columns, ends), shape=(1, dim))


def encode(vector: Vector) -> bytes:
    """The bytes of an arm, exact."""
    if isinstance(vector, np.ndarray):
        return _DENSE + vector.astype("<f8", copy=False).tobytes()
    return _SPARSE + bytes(vector.indices.astype("<i4").tobytes() + vector.data.astype("<f8").tobytes())


def decode(payload: bytes, dim: int) -> Vector:
    """The arm that ``encode`` wrote; ValueError if these are not its bytes."""
    kind, body = payload[:1], payload[1:]
    if kind == _DENSE and len(body) == 8 * dim:
        return np.frombuffer(body, dtype="<f8").astype(np.float64)
    if kind == _SPARSE and len(body) % 12 == 0:
        count = len(body) // 12
        columns = np.frombuffer(body, dtype="<i4", count=count).astype(np.int32)
        data = np.frombuffer(body, dtype="<f8", offset=4 * count).astype(np.float64)
        if not count or (columns.min() >= 0 and columns.max() < dim):
            return _row(columns, data, dim)
    raise ValueError(f"{len(payload)} bytes do not hold an arm of dimension {dim}")


def encode_all(matrix: Matrix) -> bytes:
    """All arms of a decision: each with its length before it."""
    count = int(matrix.shape[0])
    rows = (encode(matrix[i] if isinstance(matrix, np.ndarray) else matrix[[i]]) for i in range(count))
    return b"".join(len(row).to_bytes(4, "little") + row for row in rows)


def decode_all(payload: bytes, dim: int) -> list[Vector]:
    """The arms that ``encode_all`` wrote."""
    found, at = [], 0
    while at < len(payload):
        length = int.from_bytes(payload[at : at + 4], "little")
        found.append(decode(payload[at + 4 : at + 4 + length], dim))
        at += 4 + length
    return found


def nbytes(vector: Vector) -> int:
    """What keeping an arm costs."""
    return int(
        vector.nbytes if isinstance(vector, np.ndarray) else vector.data.nbytes + vector.indices.nbytes
    )
