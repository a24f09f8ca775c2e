"""What a policy is made of, before it has learned anything."""

from typing import NamedTuple

from sketchbandit.estimate import Estimate
from sketchbandit.sketch import Sketch


class Blank(NamedTuple):
    """To begin anew with; whoever does so makes a copy."""

    sketch: Sketch
    estimate: Estimate
