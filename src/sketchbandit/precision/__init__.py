"""A^-1 through a sketch: confidence widths, posterior draws and determinants."""

from sketchbandit.precision.dense import DenseInverse
from sketchbandit.precision.inverse import Inverse, Leverage, LinearState, Step, ToBeat
from sketchbandit.precision.lowrank import LowRankInverse
from sketchbandit.precision.precision import Precision, Saved, take_weighted

__all__ = [
    "DenseInverse",
    "Inverse",
    "Leverage",
    "LinearState",
    "LowRankInverse",
    "Precision",
    "Saved",
    "Step",
    "ToBeat",
    "take_weighted",
]
