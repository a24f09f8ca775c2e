"""Many requests to one store at once: one matrix product scores them all."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from sketchbandit.arms import OfferedArms
from sketchbandit.arms.store import HALF, UP, Store
from sketchbandit.array_api import unit_of
from sketchbandit.arrays import AnyArray, Matrix
from sketchbandit.explore.screening import Aim, Scorer, is_moderate
from sketchbandit.linalg import row_norms_sq
from sketchbandit.precision import Precision

_NUMBERS = 1 << 27  # bounds held at a time on a device
_NUMBERS_ON_HOST = 1 << 23


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
    precision.sync()
    library = offers[0].library
    most = _NUMBERS_ON_HOST if library.on_host else _NUMBERS
    step = max(2, most // len(offers[0]))
    pieces = [offers[start : start + step] for start in range(0, len(offers), step)]
    return np.concatenate([_best(some, aim, precision) for some in pieces])


def _best(offers: Sequence[OfferedArms], aim: Aim, precision: Precision) -> AnyArray:
    store, library, count = offers[0].store, offers[0].library, len(offers)
    xp, score = library.xp, Scorer(offers[0], aim, precision)
    folded = np.stack([one.folded(aim.vector)[0] for one in offers])
    contexts = np.stack([np.ones(store.width) if one.context is None else one.context for one in offers])
    upper = _bounds(store, folded, contexts, aim, precision)
    there = library.put(contexts, library.widest)

    def scored(requests: Any, places: Any) -> Any:
        return score.of(store.rows(places, library.widest) * xp.take(there, requests, axis=0))

    leaders = xp.argmax(upper, axis=1)
    least = scored(library.put(np.arange(count)), leaders)
    low = library.cast(least.low - 2.0**-20 * xp.abs(least.low), upper.dtype)
    who, where = library.nonzero(upper >= (low - 2.0**-20 * xp.abs(low))[:, None])
    if len(who) == count:  # only the leaders are left
        return library.to_host(leaders).astype(np.intp, copy=False)
    several = np.bincount(who, minlength=count) > 1
    chosen = np.where(several, -1, library.to_host(leaders)).astype(np.intp)
    if len(who) * store.width > _NUMBERS_ON_HOST * 8:
        return chosen
    found = scored(library.put(library.padded(who)), library.put(library.padded(where)))
    lows, highs = (library.to_host(side)[: len(who)].astype(np.float64) for side in found)
    for request in np.flatnonzero(several):
        mine = np.flatnonzero(who == request)
        best = mine[np.argmax(lows[mine])]
        if (highs[mine[mine != best]] < lows[best]).all():
            chosen[request] = where[best]
    return chosen


def _bounds(store: Store, folded: Matrix, contexts: Matrix, aim: Aim, precision: Precision) -> Any:
    """Upper bounds on the score of every arm for every request, shape (requests, K)."""
    library = store.library
    unit = unit_of(store.array)
    lengths = np.sqrt(row_norms_sq(folded))
    coarse = 3.0 * library.product_unit(store.array.dtype)
    reach = aim.bonus / np.sqrt(precision.shift) * UP * (1.0 + 2.0 * aim.rounding)
    per_norm = (1.02 * (store.width + 4) * unit + coarse + 2.0**-22 + aim.rounding) * lengths * UP
    upper = library.product(library.put(folded, store.array.dtype), store.array.T)
    longest = store.norms_of_each(contexts) * float(reach)
    return upper + (longest + store.norms[None, :] * library.put(per_norm, library.xp.float32)[:, None])
