"""Laws about merging two sketches."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sketchbandit.errors import InputError, MergeError
from sketchbandit.testing.laws.base import Laws, inherited
from sketchbandit.testing.oracles import assert_bracketed, assert_covariance_is_the_estimate, snapshot
from sketchbandit.testing.streams import Stream, make_rows, streams


class MergeLaws(Laws):
    """Merging two parts of a stream is as good as reading it whole."""

    def make_part(self, dim: int, size: int, part: int) -> Any:
        """Make the sketch of one part of a stream. Override this if parts must differ, e.g. in their seed."""
        del part
        return self.make(dim, size)

    def _pair(self, dim: int, size: int) -> tuple[Any, Any]:
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
        others = [self.make_part(4, 2, 1), self.make(3, 2, np.float32), "a string", None]
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
