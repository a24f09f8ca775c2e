"""The base class of the laws."""

from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import HealthCheck, settings
from numpy.typing import DTypeLike

from sketchbandit.loading import load
from sketchbandit.sketch import Sketch

# Inherited property tests run once per subclass: that is their purpose, not an accident.
inherited = settings(suppress_health_check=[HealthCheck.differing_executors], deadline=None)


class Laws:
    """A subclass says which sketch is tested, by its method ``make``."""

    same_to_the_bit = True
    """Whether blocks of rows and single rows give the same sketch to the bit, not only up to rounding."""

    def make(self, dim: int, size: int, dtype: DTypeLike = np.float64) -> Any:
        """Make a fresh sketch. Override this."""
        raise NotImplementedError("a class of laws needs a method make(self, dim, size, dtype)")

    def load(self, path: Path) -> Sketch:
        """Load a saved sketch. Override this if loading needs more than the path."""
        return load(path, Sketch)
