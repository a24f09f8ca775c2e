"""Scaling: how features are brought to the scale that the theory assumes."""

from sketchbandit.scaling.ranges import EVERY, RangeWatch
from sketchbandit.scaling.reader import Intercept, Kind, Reader
from sketchbandit.scaling.scaling import Scaling

__all__ = ["EVERY", "Intercept", "Kind", "RangeWatch", "Reader", "Scaling"]
