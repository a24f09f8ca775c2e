"""Linear contextual bandits in high dimension, on matrix sketches that certify their own error.

A policy chooses among arms, which are described by features, and learns from the reward of the arm chosen.
The sketch below it reads a stream of rows X. It keeps a small matrix S, a scalar alpha and an error bound e
with S'S ⪯ X'X ⪯ S'S + e I at every moment.

Examples
--------
A bandit:

>>> import numpy as np, sketchbandit as sb
>>> policy = sb.dbslinucb(200, size=10, epsilon=8.0)
>>> random = np.random.default_rng(0)
>>> arms = random.standard_normal((5, 200)) / np.sqrt(200)
>>> chosen = policy.select(arms)
>>> policy.update(arms[chosen], reward=1.0)

A sketch of a matrix:

>>> X = random.standard_normal((5000, 200)) * 0.9 ** np.arange(200)
>>> sketch = sb.FrequentDirections(200, size=50)
>>> change = sketch.update(X)
>>> bool(np.linalg.norm(X.T @ X - sketch.covariance(), 2) <= sketch.error_bound)
True

"""

from typing import Any

from sketchbandit import data, theory
from sketchbandit._version import __version__
from sketchbandit.arms import Catalogue, Offer
from sketchbandit.environment import (
    Classification,
    Clicks,
    Environment,
    GaussianArms,
    HeavyTails,
    Rotating,
    Round,
    Switching,
)
from sketchbandit.errors import (
    FileError,
    InputError,
    InputTypeError,
    MergeError,
    MergeKindError,
    RowError,
    SketchBanditError,
    SketchTooSmallWarning,
    TooFewDigitsWarning,
    WorldChangedWarning,
)
from sketchbandit.estimate import Estimate, Linear, Logistic, Poisson, Robust
from sketchbandit.explore import (
    UCB,
    ActionChoice,
    Candidates,
    Choice,
    EpsilonGreedy,
    Explore,
    Greedy,
    InverseGap,
    Thompson,
)
from sketchbandit.loading import load
from sketchbandit.playing import RoundResult, play
from sketchbandit.policy import (
    Health,
    LinUCB,
    PerAction,
    Policy,
    ProjectedLinUCB,
    adaptive,
    cbrap,
    cbscfd,
    dbslinucb,
    oful,
    soful,
)
from sketchbandit.policy.named import register
from sketchbandit.precision import Precision
from sketchbandit.scaling import Scaling
from sketchbandit.sketch import (
    AdaptiveSketch,
    Block,
    BulkReader,
    Change,
    DyadicBlockSketch,
    ExactSketch,
    FrequentDirections,
    IncrementalSVD,
    RandomProjection,
    Sketch,
    Spectrum,
    spectrum,
)
from sketchbandit.theory import Confidence

__all__ = [
    "UCB",
    "ActionChoice",
    "AdaptiveSketch",
    "Block",
    "BulkReader",
    "Candidates",
    "Catalogue",
    "Change",
    "Choice",
    "Classification",
    "Clicks",
    "Confidence",
    "DyadicBlockSketch",
    "Environment",
    "EpsilonGreedy",
    "Estimate",
    "ExactSketch",
    "Explore",
    "FileError",
    "FrequentDirections",
    "GaussianArms",
    "Greedy",
    "Health",
    "HeavyTails",
    "IncrementalSVD",
    "InputError",
    "InputTypeError",
    "InverseGap",
    "LinUCB",
    "Linear",
    "Logistic",
    "MergeError",
    "MergeKindError",
    "Offer",
    "PerAction",
    "Poisson",
    "Policy",
    "Precision",
    "ProjectedLinUCB",
    "RandomProjection",
    "Robust",
    "Rotating",
    "Round",
    "RoundResult",
    "RowError",
    "Scaling",
    "Sketch",
    "SketchBanditError",
    "SketchTooSmallWarning",
    "Spectrum",
    "Switching",
    "Thompson",
    "TooFewDigitsWarning",
    "WorldChangedWarning",
    "__version__",
    "adaptive",
    "cbrap",
    "cbscfd",
    "data",
    "dbslinucb",
    "evaluation",
    "load",
    "oful",
    "play",
    "register",
    "soful",
    "spectrum",
    "theory",
]


def __getattr__(name: str) -> Any:
    """Import ``sb.evaluation`` when it is first used."""
    if name != "evaluation":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415

    return import_module("sketchbandit.evaluation")
