"""The laws of a sketch. Each test method states one. The package docstring says how to inherit them."""

import copy
import gc
import tracemalloc
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

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
from sketchbandit.testing.oracles import (
    assert_bracketed,
    assert_covariance_is_the_estimate,
    assert_identical,
    snapshot,
)
from sketchbandit.testing.streams import Stream, make_rows, streams

__all__ = ["CovarianceLaws", "FileLaws", "ForgetLaws", "InputLaws", "MergeLaws", "SketchLaws"]

# Inherited property tests run once per subclass: that is their purpose, not an accident.
inherited = settings(suppress_health_check=[HealthCheck.differing_executors], deadline=None)


class Laws:
    """A subclass says which sketch is tested, by its method ``make``."""

    same_to_the_bit = True
    """Whether blocks of rows and single rows give the same sketch to the bit, not only up to rounding."""

    def make(self, dim: int, size: int, dtype: DTypeLike = np.float64) -> Sketch:
        """Make a fresh sketch. Override this."""
        raise NotImplementedError("a class of laws needs a method make(self, dim, size, dtype)")

    def load(self, path: Path) -> Sketch:
        """Load a saved sketch. Override this if loading needs more than the path."""
        return load(path, Sketch)


class CovarianceLaws(Laws):
    """The error bound is honest at every moment."""

    @inherited
    @given(stream=streams())
    def test_bracket_at_every_step(self, stream: Stream) -> None:
        """S'S ⪯ X'X ⪯ S'S + e I after every single row, and e and alpha never decrease."""
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
        """The error bound without its rounding is at most mass / guarantee, if the sketch has a guarantee."""
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
        """A stream of rank exact_rank is kept without loss, and e stays 0, whatever the scale."""
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
        assert_covariance_is_the_estimate(sketch)

    @inherited
    @given(stream=streams(extreme=False))
    def test_float32_keeps_the_bracket(self, stream: Stream) -> None:
        """With dtype=float32 the bounds hold to that precision, for the rows as float32 stores them."""
        sketch = self.make(stream.dim, stream.size, np.float32)
        sketch.update(stream.rows)
        rows = stream.rows.astype(np.float32).astype(np.float64)
        assert sketch.dtype == np.float32
        assert_bracketed(rows.T @ rows, sketch, sketch.mass, tolerance=1e-5)

    @inherited
    @given(stream=streams())
    def test_compress_keeps_the_bracket(self, stream: Stream) -> None:
        """compress() may shrink, which is certified, but never adds rows."""
        sketch = self.make(stream.dim, stream.size)
        sketch.update(stream.rows)
        before, alpha = np.array(sketch.rows), sketch.alpha
        change = sketch.compress()
        assert len(sketch.rows) <= len(before)
        assert change.rebuilt or (np.array_equal(sketch.rows, before) and sketch.alpha == alpha)
        assert_bracketed(stream.rows.T @ stream.rows, sketch, sketch.mass)


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


class MergeLaws(Laws):
    """Merging two parts of a stream is as good as reading it whole."""

    def make_part(self, dim: int, size: int, part: int) -> Sketch:
        """Make the sketch of one part of a stream. Override this if parts must differ, e.g. in their seed."""
        del part
        return self.make(dim, size)

    def _pair(self, dim: int, size: int) -> tuple[Sketch, Sketch]:
        return self.make_part(dim, size, 0), self.make_part(dim, size, 1)

    @inherited
    @given(stream=streams(), cut=st.integers(0, 50))
    def test_merge_is_honest_in_either_order(self, stream: Stream, cut: int) -> None:
        """Error bounds add up (plus the shrinkage of the merge), counts and masses add up, the law holds."""
        parts = np.split(stream.rows, [min(cut, len(stream.rows))])
        covariance = stream.rows.T @ stream.rows
        for first, second in ((0, 1), (1, 0)):
            one, other = self._pair(stream.dim, stream.size)
            one.update(parts[first])
            other.update(parts[second])
            untouched, least = snapshot(other), one.error_bound + other.error_bound
            change = one.merge(other)
            assert change.rebuilt, "whoever keeps alpha must be told"
            assert snapshot(other) == untouched
            assert one.count == len(stream.rows)
            assert np.isclose(one.mass, np.vdot(stream.rows, stream.rows), rtol=1e-12)
            assert_covariance_is_the_estimate(one)
            if np.isfinite(least):
                assert one.error_bound >= least
                assert_bracketed(covariance, one, one.mass)
                if one.guarantee:
                    assert one.error_bound <= one.mass / one.guarantee * (1 + 1e-12)

    @inherited
    @given(stream=streams(max_count=30))
    def test_merged_sketch_goes_on(self, stream: Stream) -> None:
        """After a merge the sketch continues, and its error bound stays honest."""
        one, other = self._pair(stream.dim, stream.size)
        for sketch in (one, other):
            sketch.update(stream.rows)
        one.merge(other)
        one.update(stream.rows)
        if np.isfinite(one.error_bound):
            assert_bracketed(3.0 * (stream.rows.T @ stream.rows), one, one.mass)

    @inherited
    @given(stream=streams(max_count=30), factor=st.sampled_from([0.1, 0.5, 0.98]))
    def test_merged_parts_may_have_forgotten(self, stream: Stream, factor: float) -> None:
        """The rows of each part keep their weights."""
        one, other = self._pair(stream.dim, stream.size)
        for sketch, times in ((one, 1), (other, 2)):
            sketch.update(stream.rows)
            for _ in range(times):
                sketch.forget(factor)
        one.merge(other)
        weight = factor + factor * factor
        assert one.effective_count == pytest.approx(weight * len(stream.rows), rel=1e-9)
        if np.isfinite(one.error_bound):
            assert_bracketed(weight * (stream.rows.T @ stream.rows), one, one.mass)

    def test_unlike_sketches_do_not_merge(self) -> None:
        """Another dim, dtype or class is refused, as is a mass that would overflow; nothing changes."""
        sketch = self.make_part(3, 2, 0)
        sketch.update(make_rows("gaussian", 9, 3, 0))
        before = snapshot(sketch)
        others: list[Any] = [self.make_part(4, 2, 1), self.make(3, 2, np.float32), "a string", None]
        for other in others:
            with pytest.raises(MergeError):
                sketch.merge(other)
        assert snapshot(sketch) == before
        huge, other_huge = self._pair(1, 2)
        for part in (huge, other_huge):
            part.update([1.2e154])
        before = snapshot(huge)
        with pytest.raises(InputError, match="overflow"):
            huge.merge(other_huge)
        assert snapshot(huge) == before


class FileLaws(Laws):
    """Loading and continuing equals never having stopped, and an incomplete file is refused."""

    @inherited
    @given(stream=streams(), cut=st.integers(0, 50))
    def test_load_then_continue(self, stream: Stream, cut: int) -> None:
        """A sketch that is saved and loaded in mid-stream ends equal, to the bit, to one that was not."""
        unbroken = self.make(stream.dim, stream.size)
        unbroken.update(stream.rows[:cut])
        with TemporaryDirectory() as folder:
            path = Path(folder) / "sketch.safetensors"
            unbroken.save(path)
            resumed = self.load(path)
            assert [p.name for p in Path(folder).iterdir()] == [path.name]
        assert type(resumed) is type(unbroken)
        assert_identical(resumed, unbroken)
        for row in stream.rows[cut:]:
            unbroken.update(row)
            resumed.update(row)
        assert_identical(resumed, unbroken)
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
        sketch.save(tmp_path / "whole")
        content = (tmp_path / "whole").read_bytes()
        random = np.random.default_rng(0)
        for cut in {0, 1, 8, len(content) - 1, *random.integers(0, len(content), 20).tolist()}:
            self._assert_refused(tmp_path, content[:cut])
        for at in random.integers(0, len(content), 60).tolist():
            changed = bytearray(content)
            changed[at] ^= 1 << int(random.integers(0, 7))
            self._assert_refused(tmp_path, bytes(changed))

    def test_foreign_and_newer_files_are_refused(self, tmp_path: Path) -> None:
        """A file of another program, of a newer format or of an unknown kind raises FileError."""
        ours = {"format": "sketchbandit", "format_version": "2", "kind": "no-such-kind"}
        others = [{**ours, "format_version": version} for version in ("1", "99", "x")]
        for metadata in (None, {"format": "pt"}, *others, ours):
            self._assert_refused(tmp_path, to_safetensors({"rows": np.zeros((1, 3))}, metadata=metadata))
        with pytest.raises(FileNotFoundError):
            self.load(tmp_path / "absent")

    def _assert_refused(self, folder: Path, content: bytes) -> None:
        (folder / "refused").write_bytes(content)
        with pytest.raises(FileError):
            self.load(folder / "refused")


_FACTORS = st.sampled_from([0.05, 0.5, 0.9, 0.999, 1.0])


class ForgetLaws(Laws):
    """A sketch that forgets is a sketch of weighted rows."""

    @inherited
    @given(stream=streams(), factor=_FACTORS, every=st.integers(1, 7))
    def test_bracket_of_weighted_rows(self, stream: Stream, factor: float, every: int) -> None:
        """S'S ⪯ X'WX ⪯ S'S + e I at every step, and the promises about e and alpha hold with the weights."""
        sketch = self.make(stream.dim, stream.size)
        covariance, mass, weights = np.zeros((stream.dim, stream.dim)), 0.0, 0.0
        for i, row in enumerate(stream.rows):
            sketch.update(row)
            covariance += np.outer(row, row)
            mass, weights = mass + float(row @ row), weights + 1.0
            if i % every == every - 1:
                error, alpha = sketch.error_bound, sketch.alpha
                sketch.forget(factor)
                covariance, mass, weights = factor * covariance, factor * mass, factor * weights
                assert sketch.error_bound >= factor * error * (1 - 1e-12)
                assert sketch.alpha >= factor * alpha * (1 - 1e-12)
            if np.isfinite(sketch.error_bound):
                assert_bracketed(covariance, sketch, mass)
                assert sketch.error_bound <= sketch.error_limit + 1e-11 * mass
            if sketch.guarantee:
                assert sketch.error_bound - sketch.rounding <= sketch.mass / sketch.guarantee * (1 + 1e-9)
            assert sketch.mass == pytest.approx(mass, rel=1e-9)
            assert sketch.count == i + 1
            assert sketch.effective_count == pytest.approx(weights, rel=1e-9)
        assert_covariance_is_the_estimate(sketch)

    @inherited
    @given(stream=streams(max_count=30), factor=_FACTORS, cut=st.integers(0, 30))
    def test_what_forgets_is_saved(self, stream: Stream, factor: float, cut: int) -> None:
        """A sketch that is saved after it forgot continues, to the bit, like one that was not saved."""
        unbroken = self.make(stream.dim, stream.size)
        unbroken.update(stream.rows[:cut])
        unbroken.forget(factor)
        with TemporaryDirectory() as folder:
            unbroken.save(Path(folder) / "sketch")
            resumed = self.load(Path(folder) / "sketch")
        assert_identical(resumed, unbroken)
        for sketch in (unbroken, resumed):
            sketch.update(stream.rows[cut:])
            sketch.forget(factor)
        assert_identical(resumed, unbroken)
        assert resumed.effective_count == unbroken.effective_count

    @pytest.mark.parametrize("bad", [0.0, -0.5, 1.5, np.nan, np.inf, True, "0.5", None])
    def test_factors_that_make_no_sense(self, bad: Any) -> None:
        """Bad factors raise and change nothing. A factor of 1 changes nothing either."""
        sketch = self.make(3, 2)
        sketch.update(make_rows("gaussian", 7, 3, 0))
        before = snapshot(sketch)
        with pytest.raises((ValueError, TypeError)) as caught:
            sketch.forget(bad)
        assert isinstance(caught.value, SketchBanditError)
        assert not sketch.forget(1.0).rebuilt
        assert snapshot(sketch) == before

    def test_float32_forgets(self) -> None:
        """If rows are rounded once more, the error bound includes it."""
        sketch = self.make(6, 3, np.float32)
        rows = make_rows("power law", 200, 6, 0).astype(np.float32)
        covariance, mass = np.zeros((6, 6)), 0.0
        for row in rows.astype(np.float64):
            sketch.update(row)
            sketch.forget(0.97)
            covariance, mass = 0.97 * (covariance + np.outer(row, row)), 0.97 * (mass + float(row @ row))
        if np.isfinite(sketch.error_bound):
            assert_bracketed(covariance, sketch, mass, tolerance=1e-5)
            assert sketch.error_bound <= sketch.error_limit * (1 + 1e-9)


class SketchLaws(CovarianceLaws, InputLaws, MergeLaws, FileLaws, ForgetLaws):
    """All laws. Inherit this class to test a sketch."""

    @inherited
    @given(stream=streams())
    def test_copies_are_independent(self, stream: Stream) -> None:
        """A deep copy is independent, and merging a sketch with itself doubles the stream."""
        sketch = self.make(stream.dim, stream.size)
        sketch.update(stream.rows)
        before = snapshot(sketch)
        other = copy.deepcopy(sketch)
        other.merge(other)
        assert snapshot(sketch) == before
        assert other.count == 2 * sketch.count
        assert_bracketed(2.0 * (stream.rows.T @ stream.rows), other, other.mass)
