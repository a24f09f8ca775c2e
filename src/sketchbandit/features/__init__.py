"""Features: how arms are read, and brought to the scale that the theory assumes."""

from sketchbandit.features.features import Features, Intercept, Kind
from sketchbandit.features.scaling import Scaling

__all__ = ["Features", "Intercept", "Kind", "Scaling"]
