"""What all laws share."""

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
    """Where a subclass says which sketch it tests."""

    same_to_the_bit = True
    """Whether reading a stream in blocks equals reading it row by row to the bit, not only to rounding."""

    def make(self, dim: int, size: int, dtype: DTypeLike = np.float64) -> Any:
        """A fresh sketch; to be overridden."""
        raise NotImplementedError("a class of laws needs a make(self, dim, size, dtype) method")

    def load(self, path: Path) -> Sketch:
        """Read a saved sketch; override where loading needs more than the path."""
        return load(path, Sketch)
