"""Sketches that forget: the laws are in sketchbandit.testing; here is what each kind makes of it."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sketchbandit as sb
from sketchbandit.testing import Stream, assert_bracketed, streams
from tests.policies import Matrix, unit
from tests.test_dyadic import Scaled


def fading(count: int, dim: int, decay: float, *, seed: int = 0) -> Matrix:
    """Unit rows whose coordinates fade."""
    return unit(np.random.default_rng(seed).standard_normal((count, dim)) * decay ** np.arange(dim))


@pytest.mark.parametrize("compensation", [0.0, 1.0])
def test_the_adaptive_sketch_keeps_its_promise_for_ever(compensation: float) -> None:
    """No horizon: e <= epsilon, and the rows stop growing, on a stationary stream of 20 times the memory."""
    rows = fading(20_000, 120, 0.8)
    sketch = sb.AdaptiveSketch(120, epsilon=1.25, size=4, compensation=compensation)
    sizes = []
    for some in np.split(rows, 400):
        sketch.update(some)
        sketch.forget(0.95)
        assert sketch.error_bound <= 1.25
        sizes.append(sketch.row_count)
    assert sketch.alpha == compensation * sketch.error_bound
    assert not sketch.is_dense
    assert max(sizes[200:]) <= 1.2 * max(sizes[40:200])
    assert sketch.effective_count == pytest.approx(50 * 0.95 / 0.05, rel=1e-6)


def test_the_adaptive_sketch_leaves_its_matrix_again() -> None:
    """A flat stream makes it dense; when that is forgotten, rows are enough for a stream of low rank."""
    sketch: Any = sb.AdaptiveSketch(60, epsilon=2.0, size=4)
    sketch.update(fading(300, 60, 1.0))
    assert sketch.is_dense
    low = fading(3000, 60, 0.5, seed=1)
    covariance = np.zeros((60, 60))
    for some in np.split(low, 60):
        sketch.update(some)
        sketch.forget(0.7)
        covariance = 0.7 * (covariance + some.T @ some)
        assert sketch.error_bound <= 2.0
    assert not sketch.is_dense
    assert sketch.row_count < 30
    assert np.linalg.norm(covariance - sketch.gram(), 2) <= sketch.error_bound + 1e-6  # of the first rows


def test_one_block_lasts_where_what_is_remembered_fits() -> None:
    """DBS: e is under epsilon in one block for ever; after a burst blocks are dissolved into one again."""
    rows = fading(6000, 40, 0.9)
    sketch = sb.DyadicBlockSketch(40, size=4, epsilon=40.0)
    counts = []
    for i, some in enumerate(np.split(rows, 300)):
        sketch.update(30.0 * some if i == 150 else some)
        sketch.forget(0.8)
        counts.append(len(sketch.blocks))
        assert sketch.error_bound <= 2.0 * 40.0
    assert set(counts[:150]) == {1}
    assert max(counts[150:160]) > 1
    assert counts[-1] == 1
    assert sketch.row_count <= 8


@pytest.mark.parametrize("base", [None, sb.FrequentDirections, Scaled])
@given(stream=streams(extreme=False), factor=st.sampled_from([0.02, 0.3, 0.9]), every=st.integers(1, 6))
def test_dissolved_blocks_stay_honest(base: Any, stream: Stream, factor: float, every: int) -> None:
    """Whatever the base: the bracket of weighted rows, and e <= 2·epsilon."""
    scale = max(1.0, float(np.abs(stream.rows).max(initial=0.0)))
    sketch = sb.DyadicBlockSketch(stream.dim, size=2, epsilon=2.0, base=base)
    covariance, mass = np.zeros((stream.dim, stream.dim)), 0.0
    for i, row in enumerate(2.0 * stream.rows / scale):
        sketch.update(row)
        covariance, mass = covariance + np.outer(row, row), mass + float(row @ row)
        if i % every == 0:
            sketch.forget(factor)
            covariance, mass = factor * covariance, factor * mass
        assert_bracketed(covariance, sketch, mass)
        assert sketch.error_bound <= 4.0


def test_a_bulk_reader_forgets_too() -> None:
    """Rows read before count less, whether they are summed up in X'X or not."""
    rows = fading(200, 10, 0.9)
    for sketch in (sb.FrequentDirections(10, size=8), sb.DyadicBlockSketch(10, size=4)):
        reader = sb.BulkReader(sketch)
        reader.update(rows[:100])
        reader.forget(0.25)
        reader.update(rows[100:])
        made = reader.finish()
        weighted = 0.25 * rows[:100].T @ rows[:100] + rows[100:].T @ rows[100:]
        assert_bracketed(weighted, made, made.mass)
        assert (made.count, made.effective_count) == (200, 125.0)


def test_many_small_steps_leave_no_drift() -> None:
    """10^5 times 0.9999: what is left is what the dense sum of the same weights is."""
    random = np.random.default_rng(0)
    sketch, oracle = sb.ExactSketch(3), np.zeros((3, 3))
    rows = random.standard_normal((1000, 3))
    for i in range(100_000):
        if not i % 100:
            row = rows[i // 100]
            sketch.update(row)
            oracle += np.outer(row, row)
        sketch.forget(0.9999)
        oracle *= 0.9999
    assert np.allclose(sketch.gram(), oracle, rtol=1e-10)
    assert sketch.uncounted <= 1e-10 * sketch.mass


def test_a_sketch_that_cannot_forget_says_so() -> None:
    """A sketch of the user's from before there was forgetting: a clear error, and nothing has changed."""

    class Old(Scaled):
        kind = "test-old"
        _forget = sb.Sketch._forget

    sketch = Old(3, size=2)
    sketch.update([1.0, 0.0, 0.0])
    with pytest.raises(TypeError, match="Old cannot forget: give it a method _forget"):
        sketch.forget(0.5)
    assert sketch.mass == 1.0
