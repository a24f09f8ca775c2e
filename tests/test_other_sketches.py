"""ExactSketch, IncrementalSVD and RandomProjection."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from numpy.typing import DTypeLike

import sketchbandit as sb
from sketchbandit.linalg import fd_bound, singular_values_sq
from sketchbandit.testing import (
    FileLaws,
    ForgetLaws,
    InputLaws,
    MergeLaws,
    SketchLaws,
    Stream,
    assert_bracketed,
    make_rows,
    snapshot,
    streams,
)
from tests.soak import long_stream


class TestExact(SketchLaws):
    """The oracle obeys the laws with e = 0."""

    def make(self, dim: int, size: int, dtype: DTypeLike = np.float64) -> Any:
        """The size does not matter."""
        del size
        return sb.ExactSketch(dim, dtype=dtype)


class TestIncrementalSVD(SketchLaws):
    """Incremental SVD with the default tail."""

    def make(self, dim: int, size: int, dtype: DTypeLike = np.float64) -> Any:
        """Certified by the last fifth of its directions."""
        return sb.IncrementalSVD(dim, size=size, dtype=dtype)


class TestIncrementalSVDHalfTail(SketchLaws):
    """Half of the directions reduced, and compensated."""

    def make(self, dim: int, size: int, dtype: DTypeLike = np.float64) -> Any:
        """A larger tail: a better guarantee."""
        return sb.IncrementalSVD(dim, size=size, tail=0.5, compensation=1.0, dtype=dtype)


class TestRandomProjection(InputLaws, MergeLaws, FileLaws, ForgetLaws):
    """No certificate, but the same manners."""

    same_to_the_bit = False

    def make(self, dim: int, size: int, dtype: DTypeLike = np.float64) -> Any:
        """With a fixed seed."""
        return sb.RandomProjection(dim, size=size, seed=7, dtype=dtype)

    def make_part(self, dim: int, size: int, part: int) -> Any:
        """Parts to be merged are drawn from different seeds."""
        return sb.RandomProjection(dim, size=size, seed=part)


@given(streams())
def test_exact_is_exact_at_every_step(stream: Stream) -> None:
    """S'S = X'X and covariance() = X'X, whatever the form it is held in."""
    sketch = sb.ExactSketch(stream.dim)
    covariance = np.zeros((stream.dim, stream.dim))
    for row in stream.rows:
        sketch.update(row)
        covariance += np.outer(row, row)
        slack = 1e-12 * sketch.mass
        assert np.allclose(sketch.covariance(), covariance, rtol=0, atol=slack)
        assert np.allclose(sketch.rows.T @ sketch.rows, covariance, rtol=0, atol=slack)


def test_exact_of_low_rank_stays_small() -> None:
    """Rank k costs O(dim · k), however long the stream."""
    rows = make_rows("gaussian", 10_000, 9, 0) @ make_rows("gaussian", 9, 500, 1)
    sketch = sb.ExactSketch(500)
    sketch.update(rows)
    assert not sketch.is_dense
    assert sketch.nbytes <= 32 * 500 * 8
    assert np.allclose(sketch.covariance(), rows.T @ rows, rtol=0, atol=1e-12 * sketch.mass)


def test_exact_turns_dense_when_that_is_smaller() -> None:
    """Full rank is held as a triangle of X'X, never as more rows than half of dim."""
    rows = make_rows("gaussian", 1000, 100, 0)
    sketch = sb.ExactSketch(100)
    for start in range(0, 1000, 10):
        sketch.update(rows[start : start + 10])
        assert sketch.nbytes <= (50 + 16 + 25) * 100 * 8
        assert sketch.is_dense == (start + 10 >= 50)
    assert np.allclose(sketch.covariance(), rows.T @ rows, rtol=1e-12, atol=1e-10)


@pytest.mark.parametrize("counts", [(5, 5), (5, 200), (200, 5), (200, 200)])
def test_exact_merges_in_any_form(counts: tuple[int, int]) -> None:
    """Rows into rows, dense into rows, rows into dense, dense into dense."""
    parts = [make_rows("gaussian", count, 40, seed) for seed, count in enumerate(counts)]
    one, other = sb.ExactSketch(40), sb.ExactSketch(40)
    one.update(parts[0])
    other.update(parts[1])
    one.merge(other)
    assert np.allclose(one.covariance(), sum(part.T @ part for part in parts), rtol=1e-12, atol=1e-10)


def test_compressed_sketches_read_on() -> None:
    """compress() gives memory back and takes nothing from what follows."""
    rows = make_rows("gaussian", 300, 40, 0)
    for sketch in (sb.ExactSketch(40), sb.FrequentDirections(40, size=10), sb.DyadicBlockSketch(40, size=6)):
        sketch.update(rows[:15])
        before = sketch.nbytes
        sketch.compress()
        assert sketch.nbytes <= before
        sketch.update(rows[15:])
        loss = np.linalg.eigvalsh(rows.T @ rows - sketch.rows.T @ sketch.rows)
        assert loss[0] >= -1e-9
        assert loss[-1] <= sketch.error_bound + 1e-9


@given(streams())
def test_incremental_svd_guarantee_is_that_of_its_tail(stream: Stream) -> None:
    """e <= mass / ceil(tail · size), the bound of Desai, Ghashami and Phillips; tail = 1 is FD."""
    for tail in (0.2, 0.5, 1.0):
        sketch = sb.IncrementalSVD(stream.dim, size=stream.size, tail=tail)
        sketch.update(stream.rows)
        assert sketch.guarantee == np.ceil(tail * stream.size)
        assert sketch.error_bound <= sketch.mass / np.ceil(tail * stream.size) * (1 + 1e-12)
    plain = sb.FrequentDirections(stream.dim, size=stream.size)
    plain.update(stream.rows)
    assert np.array_equal(sketch.rows, plain.rows)
    assert sketch.error_bound == plain.error_bound


def test_incremental_svd_beats_its_bound_where_the_spectrum_decays() -> None:
    """On a decaying spectrum its true error is below that of FD of the same size: why one would use it."""
    rows = make_rows("gaussian", 4000, 60, 0) * 0.85 ** np.arange(60)
    errors = []
    for sketch in (sb.IncrementalSVD(60, size=20), sb.FrequentDirections(60, size=20)):
        sketch.update(rows)
        errors.append(np.linalg.norm(rows.T @ rows - sketch.rows.T @ sketch.rows, 2))
    assert errors[0] < errors[1] <= fd_bound(singular_values_sq(rows), 20)


@pytest.mark.parametrize("tail", [0.0, -0.1, 1.5, float("nan")])
def test_bad_tail(tail: float) -> None:
    """The tail is a fraction."""
    with pytest.raises(sb.InputError, match="tail"):
        sb.IncrementalSVD(5, tail=tail)


def test_random_projection_is_unbiased() -> None:
    """The mean of S'S over seeds is X'X within its standard error."""
    rows = make_rows("power law", 60, 6, 0)
    estimates = []
    for seed in range(2000):
        sketch = sb.RandomProjection(6, size=4, seed=seed)
        sketch.update(rows)
        estimates.append(sketch.covariance())
    mean, error = np.mean(estimates, axis=0), np.std(estimates, axis=0) / np.sqrt(2000)
    assert (np.abs(mean - rows.T @ rows) <= 5 * error).all()
    assert sketch.error_bound == np.inf


def test_random_projection_parts_add_up_to_the_whole() -> None:
    """Merged parts with their own seeds are unbiased for the whole; the same seed is refused."""
    rows = make_rows("gaussian", 40, 4, 0)
    estimates = []
    for seed in range(2000):
        one, other = (
            sb.RandomProjection(4, size=3, seed=2 * seed),
            sb.RandomProjection(4, size=3, seed=2 * seed + 1),
        )
        one.update(rows[:10])
        other.update(rows[10:])
        one.merge(other)
        estimates.append(one.covariance())
    mean, error = np.mean(estimates, axis=0), np.std(estimates, axis=0) / np.sqrt(2000)
    assert (np.abs(mean - rows.T @ rows) <= 5 * error).all()
    before = snapshot(one)
    for same in (sb.RandomProjection(4, size=3, seed=one.seed), other, one):
        with pytest.raises(sb.MergeError, match="seed"):
            one.merge(same)
    assert snapshot(one) == before


@pytest.mark.parametrize("seed", [-1, 1.5, "0"])
def test_bad_seed(seed: Any) -> None:
    """A seed is a count."""
    with pytest.raises((ValueError, TypeError), match="seed"):
        sb.RandomProjection(5, seed=seed)


def test_the_seeds_of_a_merged_projection_are_remembered_in_its_file(tmp_path: Path) -> None:
    """A part that was merged before saving is refused after loading."""
    one, other = sb.RandomProjection(3, size=2, seed=1), sb.RandomProjection(3, size=2, seed=2)
    one.merge(other)
    one.save(tmp_path / "s")
    with pytest.raises(sb.MergeError, match="seed 2"):
        sb.load(tmp_path / "s", sb.RandomProjection).merge(other)


def test_float32_sums_of_a_long_stream_do_not_drift() -> None:
    """A dense covariance of float32 rows is summed in float64: no error to speak of after 300,000 rows."""
    rows = np.vstack([np.eye(8), np.tile(np.linspace(0.1, 1.0, 8), (300_000, 1))]).astype(np.float32)
    sketch = sb.ExactSketch(8, dtype=np.float32)
    sketch.update(rows)
    wide = rows.astype(np.float64)
    assert np.allclose(sketch.covariance(), wide.T @ wide, rtol=0.0, atol=1e-9 * sketch.mass)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_small_rows_after_a_giant_one_add_up(dtype: DTypeLike) -> None:
    """What is small beside one long row is not dropped again and again without a certificate."""
    count = long_stream(100_000, every_day=0.04)
    rows = np.zeros((count, 6))
    rows[:, 1] = 25.0
    rows[0] = [1e6, 0, 0, 0, 0, 0]
    for sketch in (
        sb.FrequentDirections(6, size=4, dtype=dtype),
        sb.DyadicBlockSketch(6, size=2, dtype=dtype),
        sb.ExactSketch(6, dtype=dtype),
    ):
        sketch.update(rows)
        assert_bracketed(rows.T @ rows, sketch, 25.0**2 * count, tolerance=1e-3)


def test_a_subclass_needs_a_kind_of_its_own_to_be_saved(tmp_path: Path) -> None:
    """Else its file would come back as its parent."""

    class Renamed(sb.ExactSketch):
        pass

    with pytest.raises(sb.InputTypeError, match="kind"):
        Renamed(3).save(tmp_path / "s")


def test_the_arguments_of_a_constructor_are_saved_by_their_names(tmp_path: Path) -> None:
    """From the attributes of these names, also where there is no dtype among them."""

    class Short(sb.ExactSketch):
        """Takes a name, and always stores float64."""

        kind = "test-short"

        def __init__(self, dim: int, *, label: str) -> None:
            super().__init__(dim)
            self.label = label

    sketch = Short(3, label="left")
    sketch.update([1.0, 2.0, 3.0])
    sketch.save(tmp_path / "s")
    again = sb.load(tmp_path / "s")
    assert isinstance(again, Short)
    assert again.label == "left"
    np.testing.assert_array_equal(again.rows, sketch.rows)
    with pytest.raises(sb.MergeError, match="label is 'left' here and 'right' there"):
        sketch.merge(Short(3, label="right"))
