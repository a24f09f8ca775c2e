"""All compiled loops that other modules call. One call does what numpy does in fifteen.

Each has a numpy counterpart (``precision``, ``estimate``, ``explore``) with the same result up to rounding.
Both backends choose the same arm unless scores are equal up to rounding. The compiler may reorder sums, which
makes them vector code, but it does so in the same way for every arm. So equal arms have equal scores.

Compiled code does not check array bounds. So each function that is called from outside first compares the
sizes it was given, and raises a ValueError instead of reading past an array.
"""

from types import CodeType, FunctionType, SimpleNamespace
from typing import Any

from sketchbandit.kernels import choices, coarse, dense, lens, low_rank, search, sums
from sketchbandit.kernels.compiling import Loop, nogil

_SHORT = (
    choices.best_means,
    choices.best_of_each,
    choices.pick_by_gap,
    choices.pick_from_each,
    dense.grow_dense,
    lens.fill_row,
    low_rank.write_row,
    search.leverage_above,
    search.may_win_dense,
    search.score_models,
    search.search_many_dense,
    search.search_many_rows,
    sums.equal,
    sums.norm_sq,
    sums.norm_sq_if_equal,
)
_MAY_TAKE_LONG = (
    choices.best_along,
    choices.best_mean,
    choices.finite_means,
    coarse.coarse_products,
    coarse.row_products,
    coarse.to_codes,
    coarse.weighted_products,
    dense.draw_dense,
    dense.leverage_dense,
    dense.turn_row,
    lens.fill_rows,
    lens.scan,
    low_rank.draw_rows,
    low_rank.grow_rows,
    low_rank.leverage_rows,
    low_rank.moved_rows,
    search.quadratics_dense,
    search.quadratics_rows,
    search.search_dense,
    search.search_rows,
    sums.project_arms,
)


def _call(*given: Any) -> Any:
    return loop(*given)  # type: ignore[name-defined]  # noqa: F821  (a global of each copy)


def _without_lock(loop: Loop) -> Loop:
    """The loop without the interpreter's lock, under the same name.

    A copy of ``_call`` whose global ``loop`` it is, because numba saves no closures over loops.
    """
    code: CodeType = _call.__code__.replace(co_name=loop.__name__, co_qualname=loop.__name__)
    return nogil(FunctionType(code, {"loop": loop, "__name__": __name__}, loop.__name__))


LOOPS = SimpleNamespace(**{loop.__name__: loop for loop in (*_SHORT, *_MAY_TAKE_LONG)})
LONG_LOOPS = SimpleNamespace(**{loop.__name__: _without_lock(loop) for loop in _MAY_TAKE_LONG})
"""Releasing the lock and getting it back takes up to milliseconds if other threads are busy.

This pays off for calls that take as long. ``backend.loops`` chooses.
"""
