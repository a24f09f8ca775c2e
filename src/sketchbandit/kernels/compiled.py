"""Every loop that is called from outside, compiled: what numpy does in fifteen calls, in one.

Each has a counterpart in numpy (``precision``, ``estimate``, ``explore``) that computes the same to rounding;
which of the two runs changes no choice but between scores that agree to rounding. Sums may be reordered by
the compiler (that is what makes them vector code), but in the same way for every arm, so that equal arms have
equal scores.

Compiled code does not look where it reads, so each function that is called from outside first compares the
sizes it was given, and raises a ValueError rather than read past an array.
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
