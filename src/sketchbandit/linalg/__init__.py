"""Linear algebra without state: each function is tested on its own against a dense oracle."""

from sketchbandit.linalg.covariance import (
    Factor,
    PackedSymmetric,
    add_rows_to_covariance,
    factor_of_covariance,
)
from sketchbandit.linalg.inner import inner, inner_rows, length_of, product, row_norms_sq
from sketchbandit.linalg.inverses import InverseAndDeterminant, invert_lower, invert_positive, invert_unscaled
from sketchbandit.linalg.norms import SCALING_ROUNDING, SUM_ROUNDING, normalised, oriented, running_sums
from sketchbandit.linalg.panels import gram_of_parts
from sketchbandit.linalg.shrink import Shrinkage, shrink, storing_error
from sketchbandit.linalg.span import are_independent, extend_span, rank_tolerance, row_space
from sketchbandit.linalg.spectral import (
    covariance_error,
    covariance_of,
    fd_bound,
    gram_spectrum,
    singular_values_sq,
    spectral_error,
    symmetric_root,
)
from sketchbandit.linalg.vectors import (
    AnyVector,
    SparseVector,
    add_multiple,
    as_dense,
    dot,
    rows_times,
    same_vector,
    times_rows,
)

__all__ = [
    "SCALING_ROUNDING",
    "SUM_ROUNDING",
    "AnyVector",
    "Factor",
    "InverseAndDeterminant",
    "PackedSymmetric",
    "Shrinkage",
    "SparseVector",
    "add_multiple",
    "add_rows_to_covariance",
    "are_independent",
    "as_dense",
    "covariance_error",
    "covariance_of",
    "dot",
    "extend_span",
    "factor_of_covariance",
    "fd_bound",
    "gram_of_parts",
    "gram_spectrum",
    "inner",
    "inner_rows",
    "invert_lower",
    "invert_positive",
    "invert_unscaled",
    "length_of",
    "normalised",
    "oriented",
    "product",
    "rank_tolerance",
    "row_norms_sq",
    "row_space",
    "rows_times",
    "running_sums",
    "same_vector",
    "shrink",
    "singular_values_sq",
    "spectral_error",
    "storing_error",
    "symmetric_root",
    "times_rows",
]
