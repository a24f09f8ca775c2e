"""A screen: a cheap rigorous bound excludes most of many arms, and float64 decides among the rest.

For one request or for many, wherever the arms are, the steps are the same:

1. Every arm gets an upper bound on its score, in float32 (``Bounds``; ``cuda_screen`` on a CUDA device).
2. The arms with the largest bounds, the leaders, are scored in float64.
3. All arms whose bound is below the scores of the leaders are excluded.
4. The rest is scored in float64, and settled if its scores are farther apart than rounding.
"""

import importlib
import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from itertools import pairwise
from typing import NamedTuple, Protocol, cast

import numpy as np

from sketchbandit.arms import OfferedArms
from sketchbandit.arms.store import HALF, LEAST, UP
from sketchbandit.array_api import Array, Library, Namespace, unit_of
from sketchbandit.arrays import AnyArray, Matrix, Vector
from sketchbandit.kernels.backend import CONSTANT, KIND, ROWS
from sketchbandit.linalg import inner, length_of, row_norms_sq
from sketchbandit.precision import Precision

_FEW = 64  # arms that are left: the host scores them at once
_NUMBERS = 1 << 24  # of arms that are scored at a time
_MOST_SHARED = 1 << 26  # numbers of the arms that are left of many requests; if more, each is asked alone
_BOUNDS, _BOUNDS_ON_HOST = 1 << 27, 1 << 23  # held at a time for many requests
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


Told = tuple[AnyArray, Vector, Vector]
"""Some arms by index, and lower and upper bounds on their scores; on the host."""


class Bounded(Protocol):
    """Upper bounds on the scores of all arms, where they are."""

    def leaders(self, count: int) -> Told | None:
        """Arms with the largest bounds, if no others can be among the ``count`` best; None: unknown."""

    def left(self, count: int) -> tuple[AnyArray, AnyArray]:
        """The requests and the arms that can be among the best, in ascending order: step 3."""


def screened(arms: OfferedArms, aim: Aim, precision: Precision, count: int) -> Screened:
    """The arms that can be among the ``count`` with the largest scores; in ascending order unless settled."""
    return _screened([arms], aim, precision, count)[0]


def can_share(offers: Sequence[OfferedArms], aim: Aim, precision: Precision) -> bool:
    """Whether ``best_of_each`` can be asked: one store, plain or re-weighted entry by entry, no scaling."""
    store = offers[0].store
    return (
        len(offers) > 1
        and unit_of(store.array) <= HALF
        and all(
            one.store is store
            and one.places is None
            and not len(one.lens)
            and (one.context is None or one.interaction == "product")
            and is_moderate(one, aim, precision)
            for one in offers
        )
    )


def best_of_each(offers: Sequence[OfferedArms], aim: Aim, precision: Precision) -> AnyArray:
    """The index of the best arm for every request; -1 if other scores are too close."""
    step = max(2, (_BOUNDS_ON_HOST if offers[0].library.on_host else _BOUNDS) // len(offers[0]))
    found = [
        one
        for start in range(0, len(offers), step)
        for one in _screened(offers[start : start + step], aim, precision, 1)
    ]
    return np.array([one.indices[0] if one.is_settled else -1 for one in found], dtype=np.intp)


def _screened(offers: Sequence[OfferedArms], aim: Aim, precision: Precision, count: int) -> list[Screened]:
    """The same for every request. Several requests have one store, and fulfil ``can_share``."""
    precision.sync()
    score = Scorer(offers, aim, precision)
    with _bounds(score) as bounds:
        told = bounds.leaders(count)
        if told is not None:
            return [_in_order(*told, count)]
        who, where = bounds.left(count)
    if len(offers) == 1:
        if len(where) == 1 or (score.library.on_host and len(where) <= _FEW):
            return [Screened(where, len(where) == 1)]
        return [_in_order(where, *score.on_host(who, where, count), count)]
    starts = np.searchsorted(who, np.arange(len(offers) + 1))
    is_open = np.diff(starts)[who] > 1
    if is_open.sum() * offers[0].dim > _MOST_SHARED:
        is_open[:] = False
    low, high = np.zeros(len(who)), np.zeros(len(who))
    if is_open.any():
        low[is_open], high[is_open] = score.on_host(who[is_open], where[is_open], count)
    parts = [slice(start, stop) for start, stop in pairwise(starts)]
    return [_in_order(where[part], low[part], high[part], count) for part in parts]


def _in_order(indices: AnyArray, low: Vector, high: Vector, count: int) -> Screened:
    """The arms that can be among the best, given lower and upper bounds on their scores."""
    if len(indices) == 1:
        return Screened(indices, True)
    left = np.flatnonzero(high >= np.partition(low, len(low) - count)[-count])
    order = left[np.argsort(-low[left], kind="stable")]
    best, rest = order[:count], order[count:]
    next_high = np.append(high[best[1:]], high[rest].max(initial=-np.inf))
    if (low[best] > next_high).all():
        return Screened(indices[best], True)
    return Screened(np.sort(indices[left]), False)


class Scorer:
    """The scores of some arms of some requests, as intervals in the widest dtype, on their device."""

    def __init__(self, offers: Sequence[OfferedArms], aim: Aim, precision: Precision) -> None:
        self.offers, self.arms, self.library = offers, offers[0], offers[0].library
        self.aim, self.precision = aim, precision
        self._there: tuple[Array, Array] | None = None  # vector and contexts on their device
        if aim.bonus:
            precision.carry_to(self.library)  # before any bounds: a transfer waits for the long product

    def errors(self) -> tuple[float, float]:
        """The error of a mean relative to |x|, and of a squared width relative to |x|²."""
        aim, dim, unit = self.aim, self.arms.dim, _unit(self.library)
        sketch, shift = self.precision.sketch, self.precision.shift
        off = (8.0 * (dim + 8) * unit + aim.rounding) * length_of(aim.vector)
        # W S x cancels, by up to the square root of the condition number of A.
        share = 16.0 * (dim + sketch.row_count + 8) * unit + 4.0 * aim.rounding
        return off, share * math.sqrt(1.0 + sketch.mass / shift) / shift

    def contexts(self) -> Matrix:
        """The weights of each of several requests, (requests, width)."""
        plain = np.ones(self.arms.store.width)
        return np.stack([plain if one.context is None else one.context for one in self.offers])

    def bring(self) -> tuple[Array, Array]:
        """Vector and contexts on their device; if asked before the bounds, no transfer waits for these."""
        if self._there is None:
            library, dtype = self.library, self.library.widest
            vector = library.put(self.aim.vector, dtype)
            is_one = len(self.offers) == 1
            self._there = vector, vector if is_one else library.put(self.contexts(), dtype)
        return self._there

    def __call__(self, who: Array, where: Array) -> tuple[Array, Array]:
        """Lower and upper bounds on the scores of arms ``where`` of requests ``who``, arrays on their device.

        If there is one request, nobody looks at ``who``.
        """
        library, xp = self.library, self.library.xp
        vector, contexts = self.bring()
        if len(self.offers) == 1:
            rows = self.arms.rows_at(where)
        else:
            rows = self.arms.store.rows(where, library.widest) * xp.take(contexts, who, axis=0)
        means, squares = library.product(rows, vector), xp.sum(rows * rows, axis=1)
        found = self.precision.quadratics_on(library, rows, squares) if self.aim.bonus else squares
        return self.intervals(xp, means, squares, found)

    def on_host(self, who: AnyArray, where: AnyArray, count: int) -> tuple[Vector, Vector]:
        """The same, a piece of at least ``count`` arms at a time."""
        library, step = self.library, max(count, _NUMBERS // max(1, self.arms.dim))
        lows, highs = [], []
        for start in range(0, len(where), step):
            some = slice(start, start + step)
            places = library.put(library.padded(where[some]))
            requests = places if len(self.offers) == 1 else library.put(library.padded(who[some]))
            low, high = (library.to_host(side)[: len(where[some])] for side in self(requests, places))
            lows.append(low.astype(np.float64, copy=False))
            highs.append(high.astype(np.float64, copy=False))
        return np.concatenate(lows), np.concatenate(highs)

    def intervals(
        self, xp: Namespace, means: Array, squares: Array, quadratics: Array
    ) -> tuple[Array, Array]:
        """Of arms with these x'v, |x|² and x'A^-1 x; without a bonus the last are not looked at."""
        (share, share_sq), bonus = self.errors(), self.aim.bonus
        off = xp.sqrt(squares) * share
        if not bonus:
            return means - off, means + off
        slack, most = squares * share_sq, squares * (UP / self.precision.shift)
        zero, low, high = xp.zeros_like(squares), quadratics - slack, quadratics + slack
        low, high = xp.sqrt(xp.where(low > 0.0, low, zero)), xp.sqrt(xp.where(high < most, high, most))
        return means - off + low * bonus, means + off + high * (bonus * UP)


class Bounds:
    """Upper bounds (requests, arms) on the scores, less an offset that the arms of a request share."""

    def __init__(self, upper: Array, offset: float, score: Scorer) -> None:
        self._upper, self._offset, self._score = upper, offset, score

    def leaders(self, count: int) -> None:
        """None: a look at the largest bound of all other arms takes as long as their exclusion."""

    def left(self, count: int) -> tuple[AnyArray, AnyArray]:
        """Those whose bounds reach the scores of the ``count`` arms with the largest bounds."""
        library, (requests, arms) = self._score.library, self._upper.shape
        xp, where = library.xp, library.xp.reshape(_largest_of(library, self._upper, count), (-1,))
        # Of one request nothing is said: what is brought to a device waits for the bounds.
        who = where if requests == 1 else library.put(np.repeat(np.arange(requests), count))
        low, _ = self._score(who, where)
        least = xp.min(xp.reshape(low, (requests, count)), axis=1) - self._offset
        least = library.cast(least - abs(least) * 2.0**-20, self._upper.dtype)  # rounded to float32
        (flat,) = library.nonzero(xp.reshape(self._upper >= least[:, None], (-1,)))
        found = flat.astype(np.intp, copy=False)
        return np.divmod(found, arms) if requests > 1 else (np.zeros_like(found), found)


def _largest_of(library: Library, values: Array, count: int) -> Array:
    """The indices of the ``count`` largest values of every row, in any order."""
    if count == 1:
        return library.xp.argmax(values, axis=1)
    if library.on_host:
        return np.argpartition(cast("AnyArray", values), values.shape[1] - count, axis=1)[:, -count:]
    if library.name == "torch":
        found: Array = importlib.import_module("torch").topk(values, count, sorted=False).indices
        return found
    return library.xp.argsort(values)[:, -count:]


def _bounds(score: Scorer) -> AbstractContextManager[Bounded]:
    """Bounds, which this thread has alone until ``with`` ends."""
    if len(score.offers) > 1:
        score.bring()
        return nullcontext(Bounds(_of_many(score), 0.0, score))
    is_safe = is_moderate(score.arms, score.aim, score.precision)
    quick = _on_cuda()(score) if is_safe and score.arms.store.is_on_cuda else None
    if quick is not None:
        return quick
    score.bring()
    upper, offset = _of_one(score, is_safe=is_safe)
    return nullcontext(Bounds(upper[None, :], offset, score))


@cache
def _on_cuda() -> Callable[[Scorer], AbstractContextManager[Bounded] | None]:
    """``cuda_screen.bounds``, which needs torch and triton."""
    found: Callable[[Scorer], AbstractContextManager[Bounded] | None]
    found = importlib.import_module("sketchbandit.explore.cuda_screen").bounds
    return found


def _of_one(score: Scorer, *, is_safe: bool) -> tuple[Array, float]:
    """The bounds of one request."""
    arms, aim, library = score.arms, score.aim, score.library
    lens, store = arms.lens, arms.store
    reach = _reach(score)
    if not (arms.is_linear and is_safe):
        scores, longest = arms.products(aim.vector), library.xp.sqrt(arms.squares()) * UP
        error = (8.0 * (arms.dim + 8) * _unit(library) + aim.rounding) * length_of(aim.vector)
        return scores + longest * (reach + error), 0.0
    if len(lens) and lens[KIND] == ROWS:
        return _of_scaled_rows(arms, aim, reach)
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
    return arms.taken(rough + (over + LEAST)), offset


def _of_many(score: Scorer) -> Array:
    """The bounds of several requests that fulfil ``can_share``: one matrix product."""
    aim, library, store = score.aim, score.library, score.arms.store
    folded = np.stack([one.folded(aim.vector)[0] for one in score.offers])
    share = 1.02 * (store.width + 4) * unit_of(store.array) + 3.0 * library.product_unit(store.array.dtype)
    per_norm = (share + 2.0**-22 + aim.rounding) * np.sqrt(row_norms_sq(folded)) * UP
    upper = library.product(library.put(folded, store.array.dtype), store.array.T)
    longest = store.norms_of_each(score.contexts()) * _reach(score)
    return upper + (longest + store.norms[None, :] * library.put(per_norm, library.xp.float32)[:, None])


def _reach(score: Scorer) -> float:
    """The most that the bonus adds to a score, relative to |x|."""
    aim = score.aim
    return aim.bonus / math.sqrt(score.precision.shift) * UP * (1.0 + 2.0 * aim.rounding)


def is_moderate(arms: OfferedArms, aim: Aim, precision: Precision) -> bool:
    """Whether all products and squares of a screen are far from the limits of float32."""
    context = 1.0 if arms.context is None else length_of(arms.context)
    length, reach = length_of(aim.vector), aim.bonus / math.sqrt(precision.shift)
    return (
        1.0 / _SQUARED < arms.store.longest < _SQUARED
        and 1.0 / _SQUARED < context < _SQUARED
        and all(not factor or 1.0 / _MULTIPLIED < factor < _MULTIPLIED for factor in (length, reach))
    )


def _of_scaled_rows(arms: OfferedArms, aim: Aim, reach: float) -> tuple[Array, float]:
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
    return arms.taken(found + more * UP), offset


def _unit(library: Library) -> float:
    return (
        2.0**-53 if library.widest == library.xp.float64 else 2.0**-24 + 3.0 * library.product_unit("float32")
    )


def _lengths(arms: OfferedArms, constant: float) -> Array:
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
