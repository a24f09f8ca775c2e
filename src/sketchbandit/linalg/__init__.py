"""Linear algebra without state: each function is tested on its own against a dense oracle."""

from sketchbandit.linalg.norms import row_norms_sq, running_sums
from sketchbandit.linalg.packed import PackedSymmetric
from sketchbandit.linalg.shrink import Shrinkage, shrink
from sketchbandit.linalg.span import are_independent, extend_span, rank_tolerance, row_space
from sketchbandit.linalg.spectral import (
    covariance_error,
    covariance_of,
    fd_bound,
    singular_values_sq,
    spectral_error,
)

__all__ = [
    "PackedSymmetric",
    "Shrinkage",
    "are_independent",
    "covariance_error",
    "covariance_of",
    "extend_span",
    "fd_bound",
    "rank_tolerance",
    "row_norms_sq",
    "row_space",
    "running_sums",
    "shrink",
    "singular_values_sq",
    "spectral_error",
]
