# mypy: allow-untyped-defs, allow-untyped-calls
# ruff: noqa: D103  (each is the loop of the same name)
"""The loops that can take long, under their names; other threads run meanwhile.

To let go of the interpreter and to get it back takes up to milliseconds where other threads are busy: that
pays for a call that takes as long. ``backend.loops`` knows which to use.
"""

from sketchbandit.kernels import chances, coarse, dense, reading, rows, search, sums
from sketchbandit.kernels.compiling import unlocked


@unlocked
def finite_means(*given):
    return chances.finite_means(*given)


@unlocked
def best_along(*given):
    return chances.best_along(*given)


@unlocked
def best_mean(*given):
    return chances.best_mean(*given)


@unlocked
def leverage_dense(*given):
    return dense.leverage_dense(*given)


@unlocked
def turn_row(*given):
    return dense.turn_row(*given)


@unlocked
def draw_dense(*given):
    return dense.draw_dense(*given)


@unlocked
def scan(*given):
    return reading.scan(*given)


@unlocked
def fill_rows(*given):
    return reading.fill_rows(*given)


@unlocked
def leverage_rows(*given):
    return rows.leverage_rows(*given)


@unlocked
def draw_rows(*given):
    return rows.draw_rows(*given)


@unlocked
def grow_rows(*given):
    return rows.grow_rows(*given)


@unlocked
def moved_rows(*given):
    return rows.moved_rows(*given)


@unlocked
def quadratics_dense(*given):
    return search.quadratics_dense(*given)


@unlocked
def quadratics_rows(*given):
    return search.quadratics_rows(*given)


@unlocked
def search_dense(*given):
    return search.search_dense(*given)


@unlocked
def search_rows(*given):
    return search.search_rows(*given)


@unlocked
def project_arms(*given):
    return sums.project_arms(*given)


@unlocked
def coarse_products(*given):
    return coarse.coarse_products(*given)


@unlocked
def row_products(*given):
    return coarse.row_products(*given)


@unlocked
def to_codes(*given):
    return coarse.to_codes(*given)


@unlocked
def weighted_products(*given):
    return coarse.weighted_products(*given)
