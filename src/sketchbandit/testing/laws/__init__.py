"""The laws themselves. Each test method states one. The package docstring says how to inherit them."""

import copy

from hypothesis import given

from sketchbandit.testing.laws.base import inherited
from sketchbandit.testing.laws.certificate import CovarianceLaws
from sketchbandit.testing.laws.files import FileLaws
from sketchbandit.testing.laws.forgetting import ForgetLaws
from sketchbandit.testing.laws.merging import MergeLaws
from sketchbandit.testing.laws.rows import InputLaws
from sketchbandit.testing.oracles import assert_bracketed, snapshot
from sketchbandit.testing.streams import Stream, streams

__all__ = ["CovarianceLaws", "FileLaws", "ForgetLaws", "InputLaws", "MergeLaws", "SketchLaws"]


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
