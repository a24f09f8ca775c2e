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

from importlib import import_module
from typing import TYPE_CHECKING, Any

from sketchbandit._version import __version__

if TYPE_CHECKING:
    from sketchbandit import data, evaluation, theory
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
    from sketchbandit.features import Scaling
    from sketchbandit.loading import load
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
    from sketchbandit.simulation.loop import RoundResult, play
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
    )
    from sketchbandit.sketch.singular_values import Spectrum, spectrum
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

# Where each name is defined. Modules are imported when one of their names is first used: the command line
# prints its help without numpy and scipy.
_MODULES = {
    "arms": ("Catalogue", "Offer"),
    "environment": (
        "Classification",
        "Clicks",
        "Environment",
        "GaussianArms",
        "HeavyTails",
        "Rotating",
        "Round",
        "Switching",
    ),
    "errors": (
        "FileError",
        "InputError",
        "InputTypeError",
        "MergeError",
        "MergeKindError",
        "RowError",
        "SketchBanditError",
        "SketchTooSmallWarning",
        "TooFewDigitsWarning",
        "WorldChangedWarning",
    ),
    "estimate": ("Estimate", "Linear", "Logistic", "Poisson", "Robust"),
    "explore": (
        "UCB",
        "ActionChoice",
        "Candidates",
        "Choice",
        "EpsilonGreedy",
        "Explore",
        "Greedy",
        "InverseGap",
        "Thompson",
    ),
    "loading": ("load",),
    "policy": (
        "Health",
        "LinUCB",
        "PerAction",
        "Policy",
        "ProjectedLinUCB",
        "adaptive",
        "cbrap",
        "cbscfd",
        "dbslinucb",
        "oful",
        "soful",
    ),
    "policy.named": ("register",),
    "precision": ("Precision",),
    "features": ("Scaling",),
    "simulation.loop": ("RoundResult", "play"),
    "sketch": (
        "AdaptiveSketch",
        "Block",
        "BulkReader",
        "Change",
        "DyadicBlockSketch",
        "ExactSketch",
        "FrequentDirections",
        "IncrementalSVD",
        "RandomProjection",
        "Sketch",
    ),
    "sketch.singular_values": ("Spectrum", "spectrum"),
    "theory": ("Confidence",),
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used."""
    if name in _HOMES:
        found = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    elif name in __all__ or name in _MODULES:
        found = import_module(f"{__name__}.{name}")  # sb.data, sb.sketch: modules are attributes too
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found  # the next time it is simply there
    return found


def __dir__() -> list[str]:
    """The public names, imported or not."""
    return sorted({*globals(), *__all__})
