"""Streaming matrix sketches with certified error bounds."""

from sketchbandit.sketch.accounts import Change
from sketchbandit.sketch.adaptive import AdaptiveSketch
from sketchbandit.sketch.base import Sketch
from sketchbandit.sketch.blocks import Block
from sketchbandit.sketch.bulk_reader import BulkReader
from sketchbandit.sketch.dyadic import DyadicBlockSketch
from sketchbandit.sketch.exact import ExactSketch
from sketchbandit.sketch.frequent_directions import FrequentDirections, IncrementalSVD
from sketchbandit.sketch.random_projection import RandomProjection
from sketchbandit.sketch.singular_values import Spectrum, spectrum

__all__ = [
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
    "Spectrum",
    "spectrum",
]
