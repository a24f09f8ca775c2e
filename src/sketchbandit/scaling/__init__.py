"""How features are brought to the length and the scale that the mathematics assumes."""

from sketchbandit.scaling.reader import Intercept, Kind, Reader
from sketchbandit.scaling.scaling import Scaling

__all__ = ["Intercept", "Kind", "Reader", "Scaling"]
