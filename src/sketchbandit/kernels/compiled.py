"""All compiled loops that other modules call. One call does what numpy does in fifteen.

Each has a numpy counterpart (``precision``, ``estimate``, ``explore``) with the same result up to rounding.
Both backends choose the same arm unless scores are equal up to rounding. The compiler may reorder sums, which
makes them vector code, but it does so in the same way for every arm. So equal arms have equal scores.

Compiled code does not check array bounds. So each function that is called from outside first compares the
sizes it was given, and raises a ValueError instead of reading past an array.
"""

from types import CodeType, FunctionType, SimpleNamespace
from typing import Any

from sketchbandit.kernels import rounds, search
from sketchbandit.kernels.compiling import Loop, nogil

_SHORT = (
    search.best_means,
    search.best_of_each,
    search.pick_by_gap,
    search.pick_from_each,
    rounds.grow_dense,
    rounds.fill_row,
    rounds.write_row,
    search.leverage_above,
    search.may_win_dense,
    search.score_models,
    search.search_many_dense,
    search.search_many_rows,
    rounds.equal,
    rounds.norm_sq,
    rounds.norm_sq_if_equal,
)
_MAY_TAKE_LONG = (
    search.best_along,
    search.best_mean,
    search.finite_means,
    search.coarse_products,
    search.row_products,
    search.to_codes,
    search.weighted_products,
    rounds.draw_dense,
    rounds.leverage_dense,
    rounds.turn_row,
    rounds.fill_rows,
    rounds.scan,
    rounds.draw_rows,
    rounds.grow_rows,
    rounds.leverage_rows,
    rounds.moved_rows,
    search.quadratics_dense,
    search.quadratics_rows,
    search.search_dense,
    search.search_rows,
    rounds.project_arms,
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
