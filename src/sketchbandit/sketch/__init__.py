"""Streaming sketches with certificates."""

from sketchbandit.sketch.base import Change, Sketch
from sketchbandit.sketch.dyadic import Block, DyadicBlockSketch
from sketchbandit.sketch.exact import ExactSketch
from sketchbandit.sketch.frequent_directions import FrequentDirections
from sketchbandit.sketch.incremental_svd import IncrementalSVD
from sketchbandit.sketch.load import load
from sketchbandit.sketch.random_projection import RandomProjection

__all__ = [
    "Block",
    "Change",
    "DyadicBlockSketch",
    "ExactSketch",
    "FrequentDirections",
    "IncrementalSVD",
    "RandomProjection",
    "Sketch",
    "load",
]
