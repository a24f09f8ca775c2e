"""Arms in the three forms that the service takes, and their bytes in the journal.

Many arms are read from the journal in slices, so no single call keeps other threads waiting. ``slowly`` may
add pauses between the slices.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from sketchbandit.arrays import AnyArray
from sketchbandit_service.problems import Invalid
from sketchbandit_service.types import Matrix, Vector

Slowly = Callable[[Iterable[slice]], Iterable[slice]]
"""Goes through slices of work: ``iter``, or something that pauses in between."""

_DENSE, _SPARSE = b"D", b"S"
_TOGETHER = 20_000  # numbers read in one call; it takes a millisecond


def slices(count: int, width: int) -> Iterator[slice]:
    """``count`` rows of ``width`` numbers in slices of about a millisecond."""
    step = max(1, _TOGETHER // max(1, width))
    return (slice(start, min(start + step, count)) for start in range(0, count, step))


def from_sparse_rows(
    indices: Sequence[Sequence[int]],
    values: Sequence[Sequence[float]],
    dim: int,
    name: Callable[[int], str] = "arm {}".format,
) -> sparse.csr_array:
    """The CSR matrix whose rows have these entries. ``name`` gives the name of a row for messages."""
    counts, others = (
        np.fromiter(map(len, part), dtype=np.int64, count=len(part)) for part in (indices, values)
    )

    def refuse(bad: AnyArray, why: str) -> None:
        if len(bad):
            raise Invalid(f"{name(int(bad[0]))} {why}")

    if len(uneven := np.flatnonzero(counts != others)):
        refuse(uneven, f"has {counts[uneven[0]]} indices and {others[uneven[0]]} values")
    ends = np.concatenate([[0], np.cumsum(counts)])
    rows = np.repeat(np.arange(len(counts)), counts)
    columns, data = _numbers(indices, ends[-1], np.int64, -1), _numbers(values, ends[-1], np.float64, np.inf)
    refuse(rows[~np.isfinite(data)], "contains NaN, inf or a number that is not finite here")
    refuse(rows[(columns < 0) | (columns >= dim)], f"has an index outside 0..{dim - 1}")
    order = np.lexsort((columns, rows))
    columns = columns[order]
    refuse(rows[1:][(np.diff(columns) == 0) & (np.diff(rows) == 0)], "has an index twice")
    return _csr(data[order], columns, ends, dim)


def _numbers(
    lists: Sequence[Sequence[float]], count: int, kind: type[np.int64] | type[np.float64], too_large: float
) -> AnyArray:
    """All numbers of the lists. If one does not fit, all are converted one by one."""
    try:
        return np.fromiter(chain.from_iterable(lists), kind, count)
    except OverflowError:
        most = np.iinfo(np.int64).max if kind is np.int64 else np.finfo(np.float64).max
        fitting = (each if abs(each) <= most else too_large for each in chain.from_iterable(lists))
        return np.fromiter(fitting, kind, count)


def _row_at(ends: NDArray[np.int64], entry: int) -> int:
    return int(np.searchsorted(ends, entry, side="right")) - 1


def from_named(features: Sequence[Mapping[str, float | str]], dim: int) -> Matrix:
    """Named features, hashed to ``dim`` columns. A string value is the feature "name=value" with value 1."""
    return sparse.csr_array(_hasher(dim).transform(features))


@lru_cache(maxsize=64)
def _hasher(dim: int) -> Any:
    from sklearn.feature_extraction import FeatureHasher  # noqa: PLC0415  (a second to import, seldom needed)

    return FeatureHasher(dim)


def joined(parts: Sequence[Matrix]) -> Matrix:
    """Matrices stacked below each other. The result is sparse if any of them is."""
    if all(isinstance(part, np.ndarray) for part in parts):
        return np.concatenate(parts)
    held = [_as_csr(part) for part in parts]
    if len(held) == 1:
        return held[0]
    counts = np.concatenate([np.diff(part.indptr) for part in held])
    ends = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
    data, columns = (np.concatenate([getattr(part, of) for part in held]) for of in ("data", "indices"))
    return _csr(data, columns, ends, held[0].shape[1])


def _as_csr(part: Matrix) -> sparse.csr_array:
    return sparse.csr_array(np.atleast_2d(part)) if isinstance(part, np.ndarray) else part


def _csr(data: AnyArray, columns: AnyArray, ends: AnyArray, dim: int) -> sparse.csr_array:
    kind = np.int32 if ends[-1] <= np.iinfo(np.int32).max else np.int64
    indices, pointers = columns.astype(kind, copy=False), ends.astype(kind, copy=False)
    numbers = data.astype(np.float64, copy=False)
    return sparse.csr_array((numbers, indices, pointers), shape=(len(ends) - 1, dim))


def check(matrix: Matrix, magnitude: float, name: str | None = None) -> None:
    """Refuse NaN, inf, and arms so long that sums may overflow. ``name`` is for a single arm."""
    if isinstance(matrix, np.ndarray) and np.vdot(matrix, matrix) <= magnitude**2:  # noqa: TID251  (quick)
        return  # even all of them together are not too long
    with np.errstate(over="ignore", invalid="ignore"):
        squares = (
            np.einsum("ij,ij->i", matrix, matrix) if isinstance(matrix, np.ndarray) else _row_squares(matrix)
        )
    if not squares.max(initial=0.0) <= magnitude**2:  # catches NaN too
        at = int(np.flatnonzero(~(squares <= magnitude**2))[0])
        called = name or f"arm {at}"
        if np.isfinite(squares[at]):
            raise Invalid(f"{called} has length {squares[at] ** 0.5:g}; the limit is {magnitude:g}")
        raise Invalid(f"{called} contains NaN, inf or a number that is too large")


def longest_row(matrix: NDArray[np.float64]) -> float:
    """The length of the longest row."""
    return float(np.sqrt(np.einsum("ij,ij->i", matrix, matrix).max(initial=0.0)))


def _row_squares(matrix: sparse.csr_array) -> NDArray[np.float64]:
    return np.asarray(matrix.power(2).sum(axis=1), dtype=np.float64).ravel()


def encode(vector: Vector) -> bytes:
    """The bytes of an arm, without any loss."""
    if isinstance(vector, np.ndarray):
        return _DENSE + vector.astype("<f8", copy=False).tobytes()
    return _SPARSE + bytes(vector.indices.astype("<i4").tobytes() + vector.data.astype("<f8").tobytes())


def decode(payload: bytes, dim: int) -> Vector:
    """Read an arm that ``encode`` wrote. Raises DamagedArm, a ValueError, for other bytes."""
    if payload[:1] == _DENSE and len(payload) == 1 + 8 * dim:  # fast, because every reward needs it
        return np.frombuffer(payload, dtype="<f8", offset=1).astype(np.float64)
    made = decode_rows([payload], dim)
    return made[0] if isinstance(made, np.ndarray) else made


def encode_rows(matrix: Matrix) -> Iterator[bytes]:
    """``encode`` of every row."""
    if isinstance(matrix, np.ndarray):
        yield from (_DENSE + row.astype("<f8", copy=False).tobytes() for row in matrix)
        return
    columns, data = matrix.indices.astype("<i4").tobytes(), matrix.data.astype("<f8").tobytes()
    for start, stop in pairwise(matrix.indptr.tolist()):
        yield _SPARSE + columns[4 * start : 4 * stop] + data[8 * start : 8 * stop]


class DamagedArm(ValueError):
    """Bytes that do not hold an arm. ``place`` says which one of several."""

    def __init__(self, place: int, payload: bytes, dim: int) -> None:
        super().__init__(f"{len(payload)} bytes do not hold an arm of dimension {dim}")
        self.place = place


def decode_rows(payloads: Sequence[bytes], dim: int, slowly: Slowly = iter) -> Matrix:
    """Read arms that ``encode`` wrote into one matrix, sparse if any is.

    Raises DamagedArm for other bytes.
    """
    for at, payload in enumerate(payloads):
        size, kind = len(payload) - 1, payload[:1]
        if not (size == 8 * dim if kind == _DENSE else kind == _SPARSE and size % 12 == 0):
            raise DamagedArm(at, payload, dim)
    kinds = {payload[:1] for payload in payloads}
    if kinds == {_SPARSE}:
        return _sparse_from(payloads, dim)
    if _SPARSE in kinds:
        return joined([decode_rows([payload], dim) for payload in payloads])
    made = np.empty((len(payloads), dim))
    for some in slowly(slices(len(payloads), dim)):
        raw = np.frombuffer(b"".join(payloads[some]), dtype=np.uint8).reshape(-1, 1 + 8 * dim)
        made[some] = np.ascontiguousarray(raw[:, 1:]).view("<f8")
    return made


def _sparse_from(payloads: Sequence[bytes], dim: int) -> Matrix:
    counts = [(len(payload) - 1) // 12 for payload in payloads]
    pairs = list(zip(payloads, counts, strict=True))
    columns = np.frombuffer(b"".join(payload[1 : 1 + 4 * count] for payload, count in pairs), dtype="<i4")
    data = np.frombuffer(b"".join(payload[1 + 4 * count :] for payload, count in pairs), dtype="<f8")
    ends = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
    if len(columns) and not (columns.min() >= 0 and columns.max() < dim):
        at = _row_at(ends, int(np.flatnonzero((columns < 0) | (columns >= dim))[0]))
        raise DamagedArm(at, payloads[at], dim)
    return _csr(data.copy(), columns.copy(), ends, dim)


def encode_all(matrix: Matrix) -> bytes:
    """All arms of a decision, each after its length."""
    if not isinstance(matrix, np.ndarray):
        return b"".join(len(row).to_bytes(4, "little") + row for row in encode_rows(matrix))
    count, dim = matrix.shape
    made = np.empty((count, 5 + 8 * dim), dtype=np.uint8)
    made[:, :5] = np.frombuffer((1 + 8 * dim).to_bytes(4, "little") + _DENSE, dtype=np.uint8)
    made[:, 5:] = np.ascontiguousarray(matrix, dtype="<f8").view(np.uint8)
    return made.tobytes()


def decode_all(payload: bytes, dim: int) -> list[Vector]:
    """The arms that ``encode_all`` wrote, one by one."""
    matrix = decode_matrix(payload, dim)
    return list(matrix) if isinstance(matrix, np.ndarray) else [matrix[[i]] for i in range(matrix.shape[0])]


def decode_matrix(payload: bytes, dim: int) -> Matrix:
    """The matrix that ``encode_all`` wrote."""
    length, head = 5 + 8 * dim, (1 + 8 * dim).to_bytes(4, "little") + _DENSE
    if len(payload) % length == 0:
        records = np.frombuffer(payload, dtype=np.uint8).reshape(-1, length)
        if (records[:, :5] == np.frombuffer(head, dtype=np.uint8)).all():
            return np.ascontiguousarray(records[:, 5:]).view("<f8").astype(np.float64)
    return decode_rows(list(_parts_of(payload)), dim)


def _parts_of(payload: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(payload):
        length = int.from_bytes(payload[at : at + 4], "little")
        yield payload[at + 4 : at + 4 + length]
        at += 4 + length


def nbytes(vector: Vector) -> int:
    """The memory of an arm."""
    return int(
        vector.nbytes if isinstance(vector, np.ndarray) else vector.data.nbytes + vector.indices.nbytes
    )
