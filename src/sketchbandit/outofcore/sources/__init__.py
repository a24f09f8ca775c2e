"""Matrices in files: what they are, and their rows a chunk at a time."""

from sketchbandit.outofcore.sources.base import MatrixSource, RowChunk, leave_out, names_in, option
from sketchbandit.outofcore.sources.opening import STANDARD_INPUT, find, open_source

__all__ = [
    "STANDARD_INPUT",
    "MatrixSource",
    "RowChunk",
    "find",
    "leave_out",
    "names_in",
    "open_source",
    "option",
]
