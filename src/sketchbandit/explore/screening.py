"""Screening of many arms: a cheap rigorous bound excludes most, and float64 decides among the rest."""

import math
from typing import Any, NamedTuple

import numpy as np

from sketchbandit.arms import OfferedArms
from sketchbandit.arms.store import LEAST, UP
from sketchbandit.array_api import Library
from sketchbandit.arrays import AnyArray, Vector
from sketchbandit.explore import cuda_screen
from sketchbandit.explore.cuda_screen import Space
from sketchbandit.kernels.view import CONSTANT, KIND, ROWS
from sketchbandit.linalg import inner, length_of
from sketchbandit.precision import Precision

_FEW = 64  # arms that are left: the host scores them at once
_TIMES_WANTED = (2.0, 6.0, 30.0)  # arms that are looked at first, second and last, where many are wanted
_SQUARED, _MULTIPLIED = 1e9, 1e12  # how far from one a factor may be whose square, which itself, is used
_LEAST_SQUARE = 1e-28  # of an arm: less is not trusted in float32


class Aim(NamedTuple):
    """What a rule maximises: x'vector + bonus·width."""

    vector: Vector
    bonus: float
    rounding: float = 0.0
    """The relative rounding of the arms' entries before the policy scores them."""


class Screened(NamedTuple):
    """Arms that certainly include the best. If ``is_settled``, they are exactly the best, in order."""

    indices: AnyArray
    is_settled: bool


class _Bounds(NamedTuple):
    """Upper bounds on the scores of all arms, minus ``offset``, which is common to all; on their device."""

    upper: Any
    offset: float


class Intervals(NamedTuple):
    """Lower and upper bounds on the scores of some arms; on their device."""

    low: Any
    high: Any


def screened(arms: OfferedArms, aim: Aim, precision: Precision, count: int) -> Screened:
    """The arms that can be among the ``count`` with the largest scores; in ascending order unless settled."""
    precision.sync()
    space = cuda_screen.space_for(arms, precision) if is_moderate(arms, aim, precision) else None
    if space is None:
        return _excluded(Scorer(arms, aim, precision), _bounds(arms, aim, precision), count)
    with space:
        if aim.bonus:
            precision.carry_to(arms.library)  # first: a transfer waits for the long product
        quick = cuda_screen.bounds(space, aim, arms, precision.shift)
        score = Scorer(arms, aim, precision, quick.wide)
        if count == 1:
            only = cuda_screen.only_survivor(space, aim.bonus, precision, off=score.off, slack=score.slack)
            if only is not None:
                return Screened(np.array([only], dtype=np.intp), True)
        return _quickly(space, score, count) or _excluded(score, _Bounds(quick.upper, 0.0), count)


def _excluded(score: "Scorer", bounds: _Bounds, count: int) -> Screened:
    """What is left when arms are excluded whose bound is below the least score of the leaders."""
    library, (upper, offset) = score.arms.library, bounds
    leaders = score(largest_of(library, upper, count))
    least = library.xp.min(leaders.low) - offset
    least = least - 2.0**-20 * library.xp.abs(least)  # compared in float32
    indices = library.nonzero(upper >= least)[0].astype(np.intp, copy=False)
    if len(indices) == 1:
        return Screened(indices, True)
    if library.on_host and len(indices) <= _FEW:
        return Screened(indices, False)
    return _settled(score, indices, count)


def _quickly(space: Space, score: "Scorer", count: int) -> Screened | None:
    """Several arms, settled with few answers of a CUDA device; None: more arms must be looked at."""
    for times in _TIMES_WANTED if score.arms.store.coarse is None else _TIMES_WANTED[1:]:
        wanted = int(times * count) + _FEW
        found = cuda_screen.leaders(space, score.arms, score.bonus, score.precision, wanted)
        if found is None or len(found.means) < count:
            return None
        low, high = score.intervals(np, found.means, found.squares, found.quadratics)
        least = np.partition(low, len(low) - count)[-count]
        if len(low) == len(score.arms) or found.threshold < least - 2.0**-20 * abs(least):
            return _in_order(found.indices, low, high, count)
    return None


def _settled(score: "Scorer", indices: AnyArray, count: int) -> Screened:
    """The best in order if float64 scores separate them; otherwise the arms that are left."""
    library, step = score.arms.library, max(count, (1 << 24) // max(1, score.arms.dim))
    pieces = [
        score(library.put(library.padded(indices[start : start + step])))
        for start in range(0, len(indices), step)
    ]
    low, high = (
        np.concatenate([library.to_host(piece[side]) for piece in pieces])[: len(indices)].astype(np.float64)
        for side in (0, 1)
    )
    return _in_order(indices, low, high, count)


def _in_order(indices: AnyArray, low: Vector, high: Vector, count: int) -> Screened:
    """The arms that can be among the best, given lower and upper bounds on their scores."""
    left = np.flatnonzero(high >= np.partition(low, len(low) - count)[-count])
    order = left[np.argsort(-low[left], kind="stable")]
    best, rest = order[:count], order[count:]
    next_high = np.append(high[best[1:]], high[rest].max(initial=-np.inf))
    if (low[best] > next_high).all():
        return Screened(indices[best], True)
    return Screened(np.sort(indices[left]), False)


def _bounds(arms: OfferedArms, aim: Aim, precision: Precision) -> _Bounds:
    library, lens, store = arms.library, arms.lens, arms.store
    reach = aim.bonus / math.sqrt(precision.shift) * UP * (1.0 + 2.0 * aim.rounding)
    is_linear = arms.is_linear and is_moderate(arms, aim, precision)
    if is_linear and not (len(lens) and lens[KIND] == ROWS):
        weights, shared = arms.folded(aim.vector)
        rough, per_norm, per_slack = store.screen(weights)
        constant = float(lens[CONSTANT]) if len(lens) else 0.0
        per_norm += aim.rounding * length_of(weights)
        is_plain = arms.context is None and not constant
        over = store.norms * (per_norm + (reach if is_plain else 0.0))
        if not is_plain:
            over = over + _lengths(arms, constant) * reach
        if store.coarse is not None:
            over = over + store.coarse.slack * per_slack
        offset = shared + (constant * float(aim.vector[-1]) if constant else 0.0)
        return _Bounds(arms.taken(rough + (over + LEAST)), offset)
    if is_linear:
        return _bounds_of_rows(arms, aim, reach)
    scores, longest = arms.products(aim.vector), library.xp.sqrt(arms.squares()) * UP
    error = (8.0 * (arms.dim + 8) * _unit(library) + aim.rounding) * length_of(aim.vector)
    return _Bounds(scores + longest * (reach + error), 0.0)


def is_moderate(arms: OfferedArms, aim: Aim, precision: Precision) -> bool:
    """Whether all products and squares of a screen are far from the limits of float32."""
    context = 1.0 if arms.context is None else length_of(arms.context)
    length, reach = length_of(aim.vector), aim.bonus / math.sqrt(precision.shift)
    return (
        1.0 / _SQUARED < arms.store.longest < _SQUARED
        and 1.0 / _SQUARED < context < _SQUARED
        and all(not factor or 1.0 / _MULTIPLIED < factor < _MULTIPLIED for factor in (length, reach))
    )


def _bounds_of_rows(arms: OfferedArms, aim: Aim, reach: float) -> _Bounds:
    """The bounds for arms that are scaled to length one: |z| is bounded from both sides."""
    store, context, xp = arms.store, arms.context, arms.library.xp
    weights, shared = arms.folded(aim.vector)
    if context is not None and arms.interaction == "product":
        rough, per_norm, over, under = store.weighted_screen(weights, context)
        top = rough + store.norms * per_norm
    else:
        rough, per_norm, per_slack = store.screen(weights)
        top = rough + store.norms * per_norm + (shared + 2.0**-22 * abs(shared))
        if store.coarse is not None:
            top = top + store.coarse.slack * per_slack
        more = 0.0 if arms.interaction != "concatenate" or context is None else inner(context, context)
        factor = inner(context, context) if arms.interaction == "outer" and context is not None else 1.0
        over = store.norms * store.norms * (factor * UP) + more * UP
        under = store.norms * store.norms * (factor * (1.0 - store.norms_share)) + more * (1.0 - 2.0**-20)
    longest = xp.sqrt(over) * UP
    is_known = under > _LEAST_SQUARE
    shortest = xp.sqrt(xp.where(is_known, under, xp.ones_like(under))) * (1.0 - 2.0**-20)
    cap = length_of(aim.vector) * UP
    found = top / xp.where(top >= 0.0, shortest, longest)
    found = xp.where(is_known & (found < cap), found, xp.ones_like(found) * cap)
    constant = float(arms.lens[CONSTANT])
    more = reach * math.sqrt(1.0 + constant * constant) + (aim.rounding + 2.0**-20) * cap * (1.0 + constant)
    offset = constant * float(aim.vector[-1]) if constant else 0.0
    return _Bounds(arms.taken(found + more * UP), offset)


def _unit(library: Library) -> float:
    return (
        2.0**-53 if library.widest == library.xp.float64 else 2.0**-24 + 3.0 * library.product_unit("float32")
    )


def _lengths(arms: OfferedArms, constant: float) -> Any:
    """Upper bounds on the lengths of all arms of the store, with context and constant."""
    store, context = arms.store, arms.context
    if arms.interaction == "product":
        norms = store.norms_of(context)
    elif arms.interaction == "outer" and context is not None:
        norms = store.norms * (length_of(context) * UP)
    else:
        norms = store.norms
    more = constant * constant
    if arms.interaction == "concatenate" and context is not None:
        more += inner(context, context) * UP
    return norms if not more else store.library.xp.sqrt(norms * norms + more) * UP


def _shares(arms: OfferedArms, aim: Aim, precision: Precision) -> tuple[float, float]:
    """The errors in the widest dtype: of a mean relative to |x|, and of a squared width relative to |x|²."""
    unit, shift = _unit(arms.library), precision.shift
    off = (8.0 * (arms.dim + 8) * unit + aim.rounding) * length_of(aim.vector)
    # W S x cancels, by up to the square root of the condition number of A.
    share = 16.0 * (arms.dim + precision.sketch.row_count + 8) * unit + 4.0 * aim.rounding
    return off, share * math.sqrt(1.0 + precision.sketch.mass / shift) / shift


class Scorer:
    """Computes the scores of some arms in the widest dtype, on their device."""

    def __init__(self, arms: OfferedArms, aim: Aim, precision: Precision, there: Any = None) -> None:
        """``there`` is the aim's vector on the device of the arms, if it is there already."""
        self.arms, self.bonus, self.precision = arms, aim.bonus, precision
        library = arms.library
        self._vector = library.put(aim.vector, library.widest) if there is None else there
        if aim.bonus:
            precision.carry_to(library)
        self.off, self.slack = _shares(arms, aim, precision)

    def __call__(self, indices: Any) -> Intervals:
        """The score intervals of these arms. ``indices`` is an array on their device."""
        return self.of(self.arms.rows_at(indices))

    def of(self, rows: Any) -> Intervals:
        """The score intervals of these rows, which have the widest dtype."""
        library = self.arms.library
        xp, means = library.xp, library.product(rows, self._vector)
        squares = xp.sum(rows * rows, axis=1)
        found = self.precision.quadratics_on(library, rows, squares) if self.bonus else squares
        return self.intervals(xp, means, squares, found)

    def intervals(self, xp: Any, means: Any, squares: Any, quadratics: Any) -> Intervals:
        """Of arms with these x'v, |x|² and x'A^-1 x; without a bonus the last are not looked at."""
        off = xp.sqrt(squares) * self.off
        if not self.bonus:
            return Intervals(means - off, means + off)
        slack, most = squares * self.slack, squares * (UP / self.precision.shift)
        zero, low, high = xp.zeros_like(squares), quadratics - slack, quadratics + slack
        low, high = xp.sqrt(xp.where(low > 0.0, low, zero)), xp.sqrt(xp.where(high < most, high, most))
        return Intervals(means - off + low * self.bonus, means + off + high * (self.bonus * UP))


def largest_of(library: Library, values: Any, count: int) -> Any:
    """The indices of the ``count`` largest values, in any order, on their device."""
    xp = library.xp
    if count == 1:
        return xp.reshape(xp.argmax(values), (1,))
    if library.on_host:
        return np.argpartition(values, len(values) - count)[-count:]
    if library.name == "torch":
        return values.topk(count, sorted=False).indices
    return xp.argsort(values)[-count:]
