"""All compiled loops that other modules call. One call does what numpy does in fifteen.

Each has a numpy counterpart (``precision``, ``estimate``, ``explore``) with the same result up to rounding.
Both backends choose the same arm unless scores are equal up to rounding. The compiler may reorder sums, which
makes them vector code, but it does so in the same way for every arm. So equal arms have equal scores.

Compiled code does not check array bounds. So each function that is called from outside first compares the
sizes it was given, and raises a ValueError instead of reading past an array.
"""

from sketchbandit.kernels.chances import (
    best_along,
    best_mean,
    best_means,
    best_of_each,
    finite_means,
    pick_by_gap,
    pick_from_each,
)
from sketchbandit.kernels.coarse import coarse_products, row_products, to_codes, weighted_products
from sketchbandit.kernels.dense import draw_dense, grow_dense, leverage_dense, turn_row
from sketchbandit.kernels.per_action import leverage_above, may_win_dense, score_models
from sketchbandit.kernels.reading import fill_row, fill_rows, scan
from sketchbandit.kernels.rows import draw_rows, grow_rows, leverage_rows, moved_rows, write_row
from sketchbandit.kernels.search import (
    quadratics_dense,
    quadratics_rows,
    search_dense,
    search_many_dense,
    search_many_rows,
    search_rows,
)
from sketchbandit.kernels.sums import equal, norm_sq, norm_sq_if_equal, project_arms

__all__ = [
    "best_along",
    "best_mean",
    "best_means",
    "best_of_each",
    "coarse_products",
    "draw_dense",
    "draw_rows",
    "equal",
    "fill_row",
    "fill_rows",
    "finite_means",
    "grow_dense",
    "grow_rows",
    "leverage_above",
    "leverage_dense",
    "leverage_rows",
    "may_win_dense",
    "moved_rows",
    "norm_sq",
    "norm_sq_if_equal",
    "pick_by_gap",
    "pick_from_each",
    "project_arms",
    "quadratics_dense",
    "quadratics_rows",
    "row_products",
    "scan",
    "score_models",
    "search_dense",
    "search_many_dense",
    "search_many_rows",
    "search_rows",
    "to_codes",
    "turn_row",
    "weighted_products",
    "write_row",
]
