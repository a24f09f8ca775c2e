"""Arms as the service reads, stacks and writes them: many at once are the same as one by one."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from sketchbandit_service import vectors
from sketchbandit_service.problems import Invalid
from sketchbandit_service.vectors import (
    DamagedArm,
    decode,
    decode_all,
    decode_rows,
    encode,
    encode_all,
    encode_rows,
    from_named,
    from_sparse_rows,
    joined,
)

DIM = 7
entries = st.dictionaries(st.integers(0, DIM - 1), st.floats(-1e6, 1e6), max_size=DIM)
dense_row = st.lists(st.floats(-1e6, 1e6), min_size=DIM, max_size=DIM).map(np.array)
row = st.one_of(dense_row, entries.map(lambda e: from_sparse_rows([list(e)], [list(e.values())], DIM)))


def as_array(matrix: Any) -> Any:
    """As a dense matrix."""
    return matrix.toarray() if sparse.issparse(matrix) else np.atleast_2d(matrix)


def as_written_before(rows: list[Any]) -> bytes:
    """What journals hold of the arms of a decision."""
    return b"".join(len(encode(row)).to_bytes(4, "little") + encode(row) for row in rows)


@given(st.lists(entries, min_size=1, max_size=9))
def test_sparse_rows_at_once_are_those_one_by_one(rows: list[dict[int, float]]) -> None:
    """The same entries, in the order of their columns, whatever order they came in."""
    made = from_sparse_rows([list(r) for r in rows], [list(r.values()) for r in rows], DIM)
    expected = np.zeros((len(rows), DIM))
    for at, one in enumerate(rows):
        expected[at, list(one)] = list(one.values())
    np.testing.assert_array_equal(made.toarray(), expected)
    assert made.has_sorted_indices
    assert made.has_canonical_format
    assert made.nnz == sum(map(len, rows))


@given(st.lists(row, min_size=1, max_size=9))
def test_what_is_stacked_and_written_comes_back(rows: list[Any]) -> None:
    """Dense, sparse or mixed: the rows in their order, to the bit, in the bytes that journals have."""
    matrix = joined([np.atleast_2d(r) if isinstance(r, np.ndarray) else r for r in rows])
    np.testing.assert_array_equal(as_array(matrix), np.concatenate([as_array(r) for r in rows]))
    assert sparse.issparse(matrix) == any(sparse.issparse(r) for r in rows)
    split = [matrix[i] if isinstance(matrix, np.ndarray) else matrix[[i]] for i in range(len(rows))]
    assert list(encode_rows(matrix)) == [encode(one) for one in split]
    assert encode_all(matrix) == as_written_before(split)
    assert [encode(one) for one in decode_all(encode_all(matrix), DIM)] == [encode(one) for one in split]
    again = decode_rows([encode(one) for one in rows], DIM)
    np.testing.assert_array_equal(as_array(again), as_array(matrix))
    assert sparse.issparse(again) == sparse.issparse(matrix)


@pytest.mark.parametrize(
    ("indices", "values", "message"),
    [
        ([[0], [0, 1]], [[1.0], [1.0]], "arm 1 has 2 indices and 1 values"),
        ([[0], [], [1, DIM]], [[1.0], [], [1.0, 2.0]], r"arm 2 has an index outside 0\.\.6"),
        ([[0], [-1]], [[1.0], [1.0]], r"arm 1 has an index outside 0\.\.6"),
        ([[0], [2**70, -(2**70)]], [[1.0], [1.0, 1.0]], r"arm 1 has an index outside 0\.\.6"),
        ([[5], [], [5, 2, 5]], [[1.0], [], [1.0, 2.0, 3.0]], "arm 2 has an index twice"),
        ([[5], [5, 5]], [[1.0], [1.0, 2.0]], "arm 1 has an index twice"),
    ],
)
def test_bad_entries_are_refused_with_their_arm(indices: Any, values: Any, message: str) -> None:
    """The first arm that is wrong is named."""
    with pytest.raises(Invalid, match=message):
        from_sparse_rows(indices, values, DIM)


@pytest.mark.parametrize(
    "payload", [b"", b"X", b"D", b"D" + bytes(8), b"S" + bytes(11), b"S\xff\xff\xff\xff" + bytes(8)]
)
def test_bytes_that_hold_no_arm_are_refused(payload: bytes) -> None:
    """By the place of the arm, where there are several."""
    with pytest.raises(ValueError, match="bytes do not hold an arm of dimension 7"):
        decode(payload, DIM)
    with pytest.raises(DamagedArm) as caught:
        decode_rows([b"S", payload], DIM)
    assert caught.value.place == 1


def test_many_are_read_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever goes through the slices sees each, and may rest; the result is that of one slice."""
    monkeypatch.setattr(vectors, "_TOGETHER", 10)
    seen: list[int] = []

    def slowly(slices: Any) -> Any:
        for some in slices:
            seen.append(some.start)
            yield some

    rows = [np.full(DIM, float(i)) for i in range(25)]
    np.testing.assert_array_equal(decode_rows([encode(one) for one in rows], DIM, slowly), np.array(rows))
    assert seen == list(range(25))  # one of seven numbers is more than half of ten


def test_named_features_at_once_are_those_one_by_one() -> None:
    """Each is hashed by itself."""
    named: list[dict[str, float | str]] = [{f"feature {i % 5}": float(i), "kind": "x"} for i in range(10)]
    alone = np.concatenate([as_array(from_named([one], 50)) for one in named])
    np.testing.assert_array_equal(as_array(from_named(named, 50)), alone)
