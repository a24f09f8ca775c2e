"""Laws about the error bound."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sketchbandit.testing.laws.base import Laws, inherited
from sketchbandit.testing.oracles import assert_bracketed, assert_covariance_is_the_estimate
from sketchbandit.testing.streams import Stream, make_rows, streams


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
