"""Laws about rows: their formats, their batches, and the changes that updates report."""

import gc
import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import DTypeLike
from scipy import sparse

from sketchbandit.errors import SketchBanditError
from sketchbandit.sketch import Sketch
from sketchbandit.testing.laws.base import Laws, inherited
from sketchbandit.testing.oracles import assert_identical, snapshot
from sketchbandit.testing.streams import Stream, make_rows, streams


class InputLaws(Laws):
    """Rows mean the same in every format, and bad rows change nothing."""

    @inherited
    @given(stream=streams(), cuts=st.lists(st.integers(0, 50), max_size=4))
    def test_blocks_equal_single_rows(self, stream: Stream, cuts: list[int]) -> None:
        """update(matrix) gives the same sketch as one row after another."""
        single, blocks = self.make(stream.dim, stream.size), self.make(stream.dim, stream.size)
        for row in stream.rows:
            single.update(row)
        for block in np.split(stream.rows, sorted(min(cut, len(stream.rows)) for cut in cuts)):
            blocks.update(block)
        assert (single.count, single.mass) == (blocks.count, blocks.mass)
        self._assert_same(single, blocks)

    @inherited
    @given(stream=streams())
    def test_sparse_equals_dense(self, stream: Stream) -> None:
        """CSR rows give the same sketch as dense rows, to the bit."""
        rows = np.where(np.random.default_rng(0).random(stream.rows.shape) < 0.4, stream.rows, 0.0)
        dense, from_sparse = self.make(stream.dim, stream.size), self.make(stream.dim, stream.size)
        dense.update(rows)
        from_sparse.update(sparse.csr_array(rows))
        assert_identical(dense, from_sparse)

    @inherited
    @given(stream=streams())
    def test_change_tells_what_happened(self, stream: Stream) -> None:
        """Unless rebuilt, the old rows stay and ``appended`` new ones follow. Other fields are true too."""
        sketch = self.make(stream.dim, stream.size)
        for start in range(0, len(stream.rows), 2):
            before, alpha = np.array(sketch.rows), sketch.alpha
            given_rows = stream.rows[start : start + 2]
            change = sketch.update(given_rows)
            rows, slack = sketch.rows, 1e-11 * sketch.mass
            if not change.rebuilt:
                assert len(rows) == len(before) + change.appended
                assert np.array_equal(rows[: len(before)], before)
                assert change.additive
            if change.additive:
                grown = before.T @ before + given_rows.T @ given_rows
                assert np.allclose(rows.T @ rows, grown, rtol=0.0, atol=slack)
                assert sketch.alpha == alpha
            if change.orthogonal:
                products = rows @ rows.T
                assert np.allclose(products, np.diag(np.diag(products)), rtol=0.0, atol=slack)
            assert np.array_equal(np.concatenate(sketch.parts), rows) or sketch.is_dense

    @inherited
    @given(stream=streams(), extra=st.integers(0, 3))
    def test_zero_rows_and_empty_batches(self, stream: Stream, extra: int) -> None:
        """Zero rows are accepted, and change only the count."""
        with_zeros, without = self.make(stream.dim, stream.size), self.make(stream.dim, stream.size)
        for row in stream.rows:
            without.update(row)
            with_zeros.update(np.zeros((extra, stream.dim)))
            with_zeros.update(row)
        assert with_zeros.count == without.count + extra * len(stream.rows)
        assert with_zeros.mass == without.mass
        assert np.array_equal(with_zeros.rows, without.rows)

    @pytest.mark.parametrize(
        "bad",
        [
            np.array([1.0, np.nan, 0.0]),
            np.array([[1.0, 2.0, 3.0], [np.inf, 0.0, 0.0]]),
            np.array([1e200, 0.0, 0.0]),
            np.full((2, 3), 1e154),
            np.zeros(4),
            np.zeros((2, 2)),
            np.zeros((2, 2, 3)),
            np.array(1.0),
            np.array([1, "a", None], dtype=object),
            np.array([1j, 0, 0]),
            np.array(["1", "2", "3"]),
            [[1.0, 2.0, 3.0], [1.0]],
            sparse.csr_array([[0.0, np.nan, 1.0]]),
            sparse.csr_array([[0.0, 1.0]]),
            None,
            "abc",
        ],
        ids=lambda bad: type(bad).__name__,
    )
    def test_bad_rows_change_nothing(self, bad: Any) -> None:
        """Rows that cannot be used raise, and the sketch is the same as before, to the bit."""
        sketch = self.make(3, 2)
        sketch.update(make_rows("gaussian", 7, 3, 0))
        before = snapshot(sketch)
        with pytest.raises((ValueError, TypeError)) as caught:
            sketch.update(bad)
        assert isinstance(caught.value, SketchBanditError)
        assert snapshot(sketch) == before

    @pytest.mark.parametrize("dtype", [np.float64, np.float32])
    def test_nbytes_is_what_memory_holds(self, dtype: DTypeLike) -> None:
        """nbytes is within 10 % of what tracemalloc measures."""
        rows = make_rows("gaussian", 3000, 300, 0)
        warm = self.make(300, 20, dtype)  # imports and caches do not belong to the sketch
        warm.update(rows)
        del warm
        gc.collect()
        tracemalloc.start()
        try:
            before = tracemalloc.get_traced_memory()[0]
            sketch = self.make(300, 20, dtype)
            sketch.update(rows)
            gc.collect()
            held = tracemalloc.get_traced_memory()[0] - before
        finally:
            tracemalloc.stop()
        assert abs(sketch.nbytes - held) <= 0.1 * held, f"nbytes {sketch.nbytes}, held {held}"

    def test_rows_are_read_only(self) -> None:
        """Arrays returned by a sketch cannot be used to write into it."""
        sketch = self.make(3, 2)
        sketch.update(np.ones(3))
        with pytest.raises(ValueError, match="read-only"):
            sketch.rows[0, 0] = 7.0

    def test_lists_and_integers(self) -> None:
        """Lists, integers, booleans, other sparse formats and strided views are accepted."""
        expected = self.make(3, 2)
        expected.update(np.array([[1.0, 0.0, 2.0], [0.0, 1.0, 0.0]]))
        for same in (
            [[1, 0, 2], [0, 1, 0]],
            np.array([[1, 0, 2], [0, 1, 0]]),
            np.array([[1, 0, 2], [0, 1, 0]], order="F", dtype=np.float32),
            sparse.coo_array([[1, 0, 2], [0, 1, 0]]),
            sparse.csc_matrix([[1, 0, 2], [0, 1, 0]]),
        ):
            sketch = self.make(3, 2)
            sketch.update(same)
            assert_identical(sketch, expected)

    def _assert_same(self, one: Sketch, other: Sketch) -> None:
        if self.same_to_the_bit:
            assert_identical(one, other)
        else:
            assert np.allclose(one.rows, other.rows, rtol=1e-9, atol=1e-12 * np.sqrt(one.mass))
