"""Sets of arms, in the form that policies read."""

from sketchbandit.arms.batches import Batch, batch_counts, batch_of, in_set, read_sets
from sketchbandit.arms.catalogue import Catalogue, Offer, read_context
from sketchbandit.arms.copies import first_copies
from sketchbandit.arms.offered import OfferedArms, offered_array, with_context
from sketchbandit.arms.reading import is_scalar, is_vector, read_arms, read_reward, read_rewards, refuse
from sketchbandit.arms.sets import (
    Arms,
    DenseArms,
    Images,
    ScaledArms,
    Scan,
    SparseArms,
    dense_arms,
    norm_sq_of,
    norms_sq_of,
    own_copy,
    project_arms,
    sum_runs,
)
from sketchbandit.arms.views import View, row_of, rows_of

__all__ = [
    "Arms",
    "Batch",
    "Catalogue",
    "DenseArms",
    "Images",
    "Offer",
    "OfferedArms",
    "ScaledArms",
    "Scan",
    "SparseArms",
    "View",
    "batch_counts",
    "batch_of",
    "dense_arms",
    "first_copies",
    "in_set",
    "is_scalar",
    "is_vector",
    "norm_sq_of",
    "norms_sq_of",
    "offered_array",
    "own_copy",
    "project_arms",
    "read_arms",
    "read_context",
    "read_reward",
    "read_rewards",
    "read_sets",
    "refuse",
    "row_of",
    "rows_of",
    "sum_runs",
    "with_context",
]
