"""The laws themselves. Each test method states one; see the package docstring for how to inherit them."""

import copy
import gc
import tracemalloc
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import DTypeLike
from safetensors.numpy import save as to_safetensors
from scipy import sparse

from sketchbandit.errors import FileError, InputError, MergeError, SketchBanditError
from sketchbandit.loading import load
from sketchbandit.sketch import Sketch
from sketchbandit.testing.oracles import assert_bracketed, snapshot
from sketchbandit.testing.streams import Stream, make_rows, streams

if TYPE_CHECKING:
    from sketchbandit.arrays import AnyArray

# Inherited property tests run once per subclass: that is their purpose, not an accident.
inherited = settings(suppress_health_check=[HealthCheck.differing_executors], deadline=None)


class Laws:
    """Where a subclass says which sketch it tests."""

    same_to_the_bit = True
    """Whether reading a stream in blocks equals reading it row by row to the bit, not only to rounding."""

    def make(self, dim: int, size: int, dtype: DTypeLike = np.float64) -> Any:
        """A fresh sketch; to be overridden."""
        raise NotImplementedError("a class of laws needs a make(self, dim, size, dtype) method")

    def load(self, path: Path) -> Sketch:
        """Read a saved sketch; override where loading needs more than the path."""
        loaded: Sketch = load(path)
        return loaded


class CovarianceLaws(Laws):
    """The certificate is honest at every moment."""

    @inherited
    @given(stream=streams())
    def test_bracket_at_every_step(self, stream: Stream) -> None:
        """S'S ⪯ X'X ⪯ S'S + e I after every single row, and e and alpha never fall."""
        sketch = self.make(stream.dim, stream.size)
        covariance, mass, before = np.zeros((stream.dim, stream.dim)), 0.0, (0.0, 0.0)
        for row in stream.rows:
            sketch.update(row)
            covariance += np.outer(row, row)
            mass += float(row @ row)
            assert_bracketed(covariance, sketch, mass)
            assert sketch.error_bound >= before[0]
            assert sketch.alpha >= before[1]
            before = sketch.error_bound, sketch.alpha

    @inherited
    @given(stream=streams())
    def test_guarantee_at_every_step(self, stream: Stream) -> None:
        """E, its rounding apart, is at most mass / guarantee, where the sketch promises one."""
        sketch = self.make(stream.dim, stream.size)
        for row in stream.rows:
            sketch.update(row)
            if sketch.guarantee:
                assert sketch.error_bound - sketch.rounding <= sketch.mass / sketch.guarantee * (1 + 1e-12)

    @inherited
    @given(
        size=st.integers(2, 6), dim=st.integers(1, 12), seed=st.integers(0, 999), scale=st.integers(-150, 150)
    )
    def test_exact_rank_is_exact(self, size: int, dim: int, seed: int, scale: int) -> None:
        """A stream of rank exact_rank is kept without loss and without a certificate, whatever its scale."""
        sketch = self.make(dim, size)
        rank = min(sketch.exact_rank, dim)
        rows = make_rows("gaussian", 60, rank, seed) @ make_rows("gaussian", rank, dim, seed + 1)
        rows *= 10.0**scale
        sketch.update(rows)
        if rank:
            assert sketch.error_bound == 0.0
            assert_bracketed(rows.T @ rows, sketch, sketch.mass)

    @inherited
    @given(stream=streams())
    def test_covariance_is_the_estimate(self, stream: Stream) -> None:
        """covariance() = S'S + alpha I, with alpha counted once."""
        sketch = self.make(stream.dim, stream.size)
        sketch.update(stream.rows)
        rows = sketch.rows
        expected = rows.T @ rows + sketch.alpha * np.eye(stream.dim)
        assert np.allclose(sketch.covariance(), expected, rtol=0.0, atol=1e-11 * sketch.mass)

    @inherited
    @given(stream=streams(extreme=False))
    def test_float32_keeps_the_bracket(self, stream: Stream) -> None:
        """With dtype=float32 the bracket holds to that precision, on the rows as float32 holds them."""
        sketch = self.make(stream.dim, stream.size, np.float32)
        sketch.update(stream.rows)
        rows = stream.rows.astype(np.float32).astype(np.float64)
        assert sketch.dtype == np.float32
        assert_bracketed(rows.T @ rows, sketch, sketch.mass, tolerance=1e-5)

    @inherited
    @given(stream=streams())
    def test_compress_keeps_the_bracket(self, stream: Stream) -> None:
        """compress() may shrink, with a certificate, and never adds rows."""
        sketch = self.make(stream.dim, stream.size)
        sketch.update(stream.rows)
        before, alpha = np.array(sketch.rows), sketch.alpha
        change = sketch.compress()
        assert len(sketch.rows) <= len(before)
        assert change.rebuilt or (np.array_equal(sketch.rows, before) and sketch.alpha == alpha)
        assert_bracketed(stream.rows.T @ stream.rows, sketch, sketch.mass)


class InputLaws(Laws):
    """Rows mean the same however they come, and what cannot be used changes nothing."""

    @inherited
    @given(stream=streams(), cuts=st.lists(st.integers(0, 50), max_size=4))
    def test_blocks_equal_single_rows(self, stream: Stream, cuts: list[int]) -> None:
        """update(matrix) gives the sketch that one row after the other gives."""
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
        """CSR rows give the sketch that the same dense rows give, to the bit."""
        rows = np.where(np.random.default_rng(0).random(stream.rows.shape) < 0.4, stream.rows, 0.0)
        dense, from_sparse = self.make(stream.dim, stream.size), self.make(stream.dim, stream.size)
        dense.update(rows)
        from_sparse.update(sparse.csr_array(rows))
        assert snapshot(dense) == snapshot(from_sparse)

    @inherited
    @given(stream=streams())
    def test_change_tells_what_happened(self, stream: Stream) -> None:
        """Unless rebuilt, the old rows stand and ``appended`` new ones follow; what else it says is true."""
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
        """They are accepted, and change nothing but the count."""
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
        """Rows that cannot be used raise, and the sketch is bitwise what it was."""
        sketch = self.make(3, 2)
        sketch.update(make_rows("gaussian", 7, 3, 0))
        before = snapshot(sketch)
        with pytest.raises((ValueError, TypeError)) as caught:
            sketch.update(bad)
        assert isinstance(caught.value, SketchBanditError)
        assert snapshot(sketch) == before

    @pytest.mark.parametrize("dtype", [np.float64, np.float32])
    def test_nbytes_is_what_memory_holds(self, dtype: DTypeLike) -> None:
        """nbytes is within 10 % of what tracemalloc sees the sketch hold."""
        rows = make_rows("gaussian", 3000, 300, 0)
        warm = self.make(300, 20, dtype)  # imports and caches are not the sketch's
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
        """Nobody writes into a sketch from outside."""
        sketch = self.make(3, 2)
        sketch.update(np.ones(3))
        with pytest.raises(ValueError, match="read-only"):
            sketch.rows[0, 0] = 7.0

    def test_lists_and_integers(self) -> None:
        """Lists, integers, booleans, other sparse formats and strided views are taken for what they mean."""
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
            assert snapshot(sketch) == snapshot(expected)

    def _assert_same(self, one: Sketch, other: Sketch) -> None:
        if self.same_to_the_bit:
            assert snapshot(one) == snapshot(other)
        else:
            assert np.allclose(one.rows, other.rows, rtol=1e-9, atol=1e-12 * np.sqrt(one.mass))


class MergeLaws(Laws):
    """Merging two parts of a stream is as good as reading it whole."""

    def make_part(self, dim: int, size: int, part: int) -> Any:
        """The sketch of one part of a stream; override where parts must differ, e.g. in their seed."""
        del part
        return self.make(dim, size)

    @inherited
    @given(stream=streams(), cut=st.integers(0, 50))
    def test_merge_is_honest_in_either_order(self, stream: Stream, cut: int) -> None:
        """Certificates add (and the merge's own shrinkage), counts and masses add, the bracket holds."""
        parts = np.split(stream.rows, [min(cut, len(stream.rows))])
        covariance = stream.rows.T @ stream.rows
        for first, second in ((0, 1), (1, 0)):
            one = self.make_part(stream.dim, stream.size, 0)
            one.update(parts[first])
            other = self.make_part(stream.dim, stream.size, 1)
            other.update(parts[second])
            untouched, least = snapshot(other), one.error_bound + other.error_bound
            change = one.merge(other)
            assert change.rebuilt, "whoever keeps alpha must be told"
            assert snapshot(other) == untouched
            assert one.count == len(stream.rows)
            assert np.isclose(one.mass, np.vdot(stream.rows, stream.rows), rtol=1e-12)
            assert np.allclose(
                one.covariance(),
                one.rows.T @ one.rows + one.alpha * np.eye(stream.dim),
                rtol=0.0,
                atol=1e-11 * one.mass,
            )
            if np.isfinite(least):
                assert one.error_bound >= least
                assert_bracketed(covariance, one, one.mass)
                if one.guarantee:
                    assert one.error_bound <= one.mass / one.guarantee * (1 + 1e-12)

    @inherited
    @given(stream=streams(max_count=30))
    def test_merged_sketch_goes_on(self, stream: Stream) -> None:
        """After a merge the sketch reads on and stays honest."""
        one, other = self.make_part(stream.dim, stream.size, 0), self.make_part(stream.dim, stream.size, 1)
        for sketch in (one, other):
            sketch.update(stream.rows)
        one.merge(other)
        one.update(stream.rows)
        if np.isfinite(one.error_bound):
            assert_bracketed(3.0 * (stream.rows.T @ stream.rows), one, one.mass)

    def test_unlike_sketches_do_not_merge(self) -> None:
        """Another dim, dtype or class is refused, and nothing changes; so is a mass that would overflow."""
        sketch = self.make_part(3, 2, 0)
        sketch.update(make_rows("gaussian", 9, 3, 0))
        before = snapshot(sketch)
        others = [self.make_part(4, 2, 1), self.make(3, 2, np.float32), "a string", None]
        for other in others:
            with pytest.raises(MergeError):
                sketch.merge(other)
        assert snapshot(sketch) == before
        huge, other_huge = self.make_part(1, 2, 0), self.make_part(1, 2, 1)
        for part in (huge, other_huge):
            part.update([1.2e154])
        before = snapshot(huge)
        with pytest.raises(InputError, match="overflow"):
            huge.merge(other_huge)
        assert snapshot(huge) == before


class FileLaws(Laws):
    """Load then continue = never stopped, and a file that is not whole is refused."""

    @inherited
    @given(stream=streams(), cut=st.integers(0, 50))
    def test_load_then_continue(self, stream: Stream, cut: int) -> None:
        """A sketch saved and loaded in mid-stream ends bitwise like one that never was."""
        unbroken = self.make(stream.dim, stream.size)
        unbroken.update(stream.rows[:cut])
        with TemporaryDirectory() as folder:
            path = Path(folder) / "sketch.safetensors"
            unbroken.save(path)
            resumed = self.load(path)
            assert [p.name for p in Path(folder).iterdir()] == [path.name]
        assert type(resumed) is type(unbroken)
        assert snapshot(resumed) == snapshot(unbroken)
        for row in stream.rows[cut:]:
            unbroken.update(row)
            resumed.update(row)
        assert snapshot(resumed) == snapshot(unbroken)
        assert np.array_equal(resumed.rows, unbroken.rows)

    def test_saving_replaces_the_old_file(self, tmp_path: Path) -> None:
        """Saving twice to one path leaves the second sketch."""
        sketch = self.make(5, 3)
        sketch.save(tmp_path / "s")
        sketch.update(np.ones((4, 5)))
        sketch.save(tmp_path / "s")
        assert self.load(tmp_path / "s").count == 4

    def test_damaged_files_are_refused(self, tmp_path: Path) -> None:
        """A file cut anywhere, or with any byte changed, raises FileError."""
        sketch = self.make(4, 2)
        sketch.update(make_rows("gaussian", 9, 4, 0))
        whole = tmp_path / "whole"
        sketch.save(whole)
        content = whole.read_bytes()
        broken = tmp_path / "broken"
        random = np.random.default_rng(0)
        for cut in {0, 1, 8, len(content) - 1, *random.integers(0, len(content), 20).tolist()}:
            broken.write_bytes(content[:cut])
            with pytest.raises(FileError):
                self.load(broken)
        for at in random.integers(0, len(content), 60).tolist():
            changed = bytearray(content)
            changed[at] ^= 1 << int(random.integers(0, 7))
            broken.write_bytes(bytes(changed))
            with pytest.raises(FileError):
                self.load(broken)

    def test_foreign_and_newer_files_are_refused(self, tmp_path: Path) -> None:
        """A safetensors file of another program, of a newer format or of an unknown kind raises FileError."""
        path = tmp_path / "foreign"
        arrays: dict[str, AnyArray] = {"rows": np.zeros((1, 3))}
        ours = {"format": "sketchbandit", "format_version": "2", "kind": "no-such-kind"}
        others = [{**ours, "format_version": version} for version in ("1", "99", "x")]
        for metadata in (None, {"format": "pt"}, *others, ours):
            path.write_bytes(to_safetensors(arrays, metadata=metadata))
            with pytest.raises(FileError):
                self.load(path)
        with pytest.raises(FileNotFoundError):
            self.load(tmp_path / "absent")


class SketchLaws(CovarianceLaws, InputLaws, MergeLaws, FileLaws):
    """All of them."""

    @inherited
    @given(stream=streams())
    def test_copies_are_independent(self, stream: Stream) -> None:
        """A deep copy goes its own way, and merging a sketch with itself doubles the stream."""
        sketch = self.make(stream.dim, stream.size)
        sketch.update(stream.rows)
        before = snapshot(sketch)
        other = copy.deepcopy(sketch)
        other.merge(other)
        assert snapshot(sketch) == before
        assert other.count == 2 * sketch.count
        assert_bracketed(2.0 * (stream.rows.T @ stream.rows), other, other.mass)
