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

from sketchbandit._version import __version__ as __version__

if TYPE_CHECKING:  # the same names in the same places, for type checkers and editors
    from sketchbandit import data as data, evaluation as evaluation, theory as theory
    from sketchbandit.arms import Catalogue as Catalogue, Offer as Offer
    from sketchbandit.environment import (
        Classification as Classification,
        Clicks as Clicks,
        Environment as Environment,
        GaussianArms as GaussianArms,
        HeavyTails as HeavyTails,
        Rotating as Rotating,
        Round as Round,
        Switching as Switching,
    )
    from sketchbandit.errors import (
        FileError as FileError,
        InputError as InputError,
        InputTypeError as InputTypeError,
        MergeError as MergeError,
        MergeKindError as MergeKindError,
        RowError as RowError,
        SketchBanditError as SketchBanditError,
        SketchTooSmallWarning as SketchTooSmallWarning,
        TooFewDigitsWarning as TooFewDigitsWarning,
        WorldChangedWarning as WorldChangedWarning,
    )
    from sketchbandit.estimate import (
        Estimate as Estimate,
        Linear as Linear,
        Logistic as Logistic,
        Poisson as Poisson,
        Robust as Robust,
    )
    from sketchbandit.explore import (
        UCB as UCB,
        ActionChoice as ActionChoice,
        Candidates as Candidates,
        Choice as Choice,
        EpsilonGreedy as EpsilonGreedy,
        Explore as Explore,
        Greedy as Greedy,
        InverseGap as InverseGap,
        Thompson as Thompson,
    )
    from sketchbandit.loading import load as load
    from sketchbandit.policy import (
        Health as Health,
        LinUCB as LinUCB,
        PerAction as PerAction,
        Policy as Policy,
        ProjectedLinUCB as ProjectedLinUCB,
        adaptive as adaptive,
        cbrap as cbrap,
        cbscfd as cbscfd,
        dbslinucb as dbslinucb,
        oful as oful,
        soful as soful,
    )
    from sketchbandit.policy.recipes import register as register
    from sketchbandit.precision import Precision as Precision
    from sketchbandit.features import Scaling as Scaling
    from sketchbandit.simulation.loop import RoundResult as RoundResult, play as play
    from sketchbandit.sketch import (
        AdaptiveSketch as AdaptiveSketch,
        Block as Block,
        BulkReader as BulkReader,
        Change as Change,
        DyadicBlockSketch as DyadicBlockSketch,
        ExactSketch as ExactSketch,
        FrequentDirections as FrequentDirections,
        IncrementalSVD as IncrementalSVD,
        RandomProjection as RandomProjection,
        Sketch as Sketch,
    )
    from sketchbandit.sketch.singular_values import Spectrum as Spectrum, spectrum as spectrum
    from sketchbandit.theory import Confidence as Confidence

# The public names, by the module that defines them. It is imported when one of its names is first used: the
# command line prints its help without numpy and scipy.
_DEFINED_IN = {
    "arms": "Catalogue Offer",
    "environment": "Classification Clicks Environment GaussianArms HeavyTails Rotating Round Switching",
    "errors": (
        "FileError InputError InputTypeError MergeError MergeKindError RowError SketchBanditError "
        "SketchTooSmallWarning TooFewDigitsWarning WorldChangedWarning"
    ),
    "estimate": "Estimate Linear Logistic Poisson Robust",
    "explore": "UCB ActionChoice Candidates Choice EpsilonGreedy Explore Greedy InverseGap Thompson",
    "loading": "load",
    "policy": "Health LinUCB PerAction Policy ProjectedLinUCB adaptive cbrap cbscfd dbslinucb oful soful",
    "policy.recipes": "register",
    "precision": "Precision",
    "features": "Scaling",
    "simulation.loop": "RoundResult play",
    "sketch": (
        "AdaptiveSketch Block BulkReader Change DyadicBlockSketch ExactSketch FrequentDirections "
        "IncrementalSVD RandomProjection Sketch"
    ),
    "sketch.singular_values": "Spectrum spectrum",
    "theory": "Confidence",
}
_MODULES = ("data", "evaluation", "theory")
_HOMES = {name: module for module, names in _DEFINED_IN.items() for name in names.split()}
__all__ = sorted(["__version__", *_MODULES, *_HOMES])  # noqa: PLE0605  (of strings, made of the table)


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used."""
    if name in _HOMES:
        found = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    elif name in _MODULES or name in _DEFINED_IN:
        found = import_module(f"{__name__}.{name}")  # sb.data, sb.sketch: modules are attributes too
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found  # the next time it is simply there
    return found


def __dir__() -> list[str]:
    """The public names, imported or not."""
    return sorted({*globals(), *__all__})
