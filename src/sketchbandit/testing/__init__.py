"""The laws of a sketch, as test classes that the author of a new sketch inherits.

    from sketchbandit.testing import SketchLaws

    class TestMySketch(SketchLaws):
        def make(self, dim, size, dtype=np.float64):
            return MySketch(dim, size=size, dtype=dtype)

pytest then runs property tests, against dense oracles and at every step of each stream. They check that the
error bound is honest, that batches equal single rows, that sparse rows equal dense ones, that bad input
changes nothing, that merges add up, that forgotten rows are gone, and that a saved sketch continues where it
stopped. A sketch without an error bound inherits only ``InputLaws``, ``FileLaws`` and ``ForgetLaws``. This
needs the extra ``sketchbandit[testing]``.
"""

from sketchbandit.extras import how_to_install

try:
    import hypothesis  # noqa: F401
    import pytest  # noqa: F401
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        f"sketchbandit.testing needs {error.name}: {how_to_install('testing')}", name=error.name
    ) from error

from sketchbandit.testing.laws import CovarianceLaws, FileLaws, ForgetLaws, InputLaws, MergeLaws, SketchLaws
from sketchbandit.testing.oracles import UnbufferedFrequentDirections, assert_bracketed, snapshot
from sketchbandit.testing.streams import STREAM_KINDS, Stream, make_rows, streams

__all__ = [
    "STREAM_KINDS",
    "CovarianceLaws",
    "FileLaws",
    "ForgetLaws",
    "InputLaws",
    "MergeLaws",
    "SketchLaws",
    "Stream",
    "UnbufferedFrequentDirections",
    "assert_bracketed",
    "make_rows",
    "snapshot",
    "streams",
]
