"""The parts of a policy before it has learned anything."""

from typing import NamedTuple

from sketchbandit.estimate import Estimate
from sketchbandit.sketch import Sketch


class Blank(NamedTuple):
    """A sketch and an estimate to start again with. Copy them before use."""

    sketch: Sketch
    estimate: Estimate
