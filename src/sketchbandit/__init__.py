"""Matrix sketches with certificates, for linear contextual bandits in high dimension.

A sketch reads a stream of rows X and keeps a small S, a scalar alpha and a certificate e with
S'S ⪯ X'X ⪯ S'S + e I at every moment:

>>> import numpy as np, sketchbandit as sb
>>> X = np.random.default_rng(0).standard_normal((5000, 200)) * 0.9 ** np.arange(200)
>>> sketch = sb.FrequentDirections(200, size=50)
>>> change = sketch.update(X)
>>> bool(np.linalg.norm(X.T @ X - sketch.covariance(), 2) <= sketch.error_bound)
True
"""

from sketchbandit._version import __version__
from sketchbandit.errors import (
    FileError,
    InputError,
    InputTypeError,
    MergeError,
    MergeKindError,
    SketchBanditError,
)
from sketchbandit.sketch import (
    BaseSketch,
    Block,
    Change,
    DyadicBlockSketch,
    ExactSketch,
    FrequentDirections,
    IncrementalSVD,
    RandomProjection,
    Sketch,
    load,
)

__all__ = [
    "BaseSketch",
    "Block",
    "Change",
    "DyadicBlockSketch",
    "ExactSketch",
    "FileError",
    "FrequentDirections",
    "IncrementalSVD",
    "InputError",
    "InputTypeError",
    "MergeError",
    "MergeKindError",
    "RandomProjection",
    "Sketch",
    "SketchBanditError",
    "__version__",
    "load",
]
