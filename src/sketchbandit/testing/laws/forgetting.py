"""Laws about forgetting."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sketchbandit.errors import SketchBanditError
from sketchbandit.testing.laws.base import Laws, inherited
from sketchbandit.testing.oracles import (
    assert_bracketed,
    assert_covariance_is_the_estimate,
    assert_identical,
    snapshot,
)
from sketchbandit.testing.streams import Stream, make_rows, streams

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
            assert (sketch.count, sketch.effective_count) == (i + 1, pytest.approx(weights, rel=1e-9))
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
