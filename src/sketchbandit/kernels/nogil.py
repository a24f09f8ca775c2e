# mypy: allow-untyped-defs, allow-untyped-calls
# ruff: noqa: D103  (each is the loop of the same name)
"""The loops that can take long, under the same names, without the interpreter's lock.

Releasing the lock and getting it back takes up to milliseconds if other threads are busy. This
pays off for calls that take as long. ``backend.loops`` chooses.
"""

from sketchbandit.kernels import chances, coarse, dense, reading, rows, search, sums
from sketchbandit.kernels.compiling import nogil


@nogil
def finite_means(*given):
    return chances.finite_means(*given)


@nogil
def best_along(*given):
    return chances.best_along(*given)


@nogil
def best_mean(*given):
    return chances.best_mean(*given)


@nogil
def leverage_dense(*given):
    return dense.leverage_dense(*given)


@nogil
def turn_row(*given):
    return dense.turn_row(*given)


@nogil
def draw_dense(*given):
    return dense.draw_dense(*given)


@nogil
def scan(*given):
    return reading.scan(*given)


@nogil
def fill_rows(*given):
    return reading.fill_rows(*given)


@nogil
def leverage_rows(*given):
    return rows.leverage_rows(*given)


@nogil
def draw_rows(*given):
    return rows.draw_rows(*given)


@nogil
def grow_rows(*given):
    return rows.grow_rows(*given)


@nogil
def moved_rows(*given):
    return rows.moved_rows(*given)


@nogil
def quadratics_dense(*given):
    return search.quadratics_dense(*given)


@nogil
def quadratics_rows(*given):
    return search.quadratics_rows(*given)


@nogil
def search_dense(*given):
    return search.search_dense(*given)


@nogil
def search_rows(*given):
    return search.search_rows(*given)


@nogil
def project_arms(*given):
    return sums.project_arms(*given)


@nogil
def coarse_products(*given):
    return coarse.coarse_products(*given)


@nogil
def row_products(*given):
    return coarse.row_products(*given)


@nogil
def to_codes(*given):
    return coarse.to_codes(*given)


@nogil
def weighted_products(*given):
    return coarse.weighted_products(*given)
