"""Screening of a plain catalogue on a CUDA device. Latency dominates, so: few launches, one answer."""

import importlib
import math
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from sketchbandit.arms import OfferedArms
from sketchbandit.arrays import Vector
from sketchbandit.precision import LowRankInverse, Precision

_UP = 1.0 + 2.0**-20
_LONGEST = 1e15  # length of a vector whose products with arms stay within float32


class CudaBounds(NamedTuple):
    """Upper bounds on the scores of all arms, and the largest bound per block; float32, on the device."""

    upper: Any
    best: Any
    wide: Any
    """The vector in float64, on the device."""


@cache
def _modules() -> tuple[Any, Any]:
    return importlib.import_module("torch"), importlib.import_module("sketchbandit.triton_products")


def has_quick_way(arms: OfferedArms, vector: Vector, precision: Precision) -> bool:
    """Whether the functions below can handle these arms."""
    store = arms.store
    return (
        store.library.name == "torch"
        and store.array.is_cuda
        and not len(arms.lens)
        and arms.context is None
        and arms.places is None
        and str(store.array.dtype) in ("torch.float32", "torch.bfloat16")
        and isinstance(precision.inverse, LowRankInverse)
        and float(vector @ vector) < _LONGEST * _LONGEST
    )


def bounds(arms: OfferedArms, vector: Vector, bonus: float, rounding: float, shift: float) -> CudaBounds:
    """Upper bounds on x'vector + bonus·width. ``rounding`` is the relative rounding of the arms' entries."""
    torch, kernel = _modules()
    store, coarse, width = arms.store, arms.store.coarse, arms.store.width
    length = math.sqrt(float(vector @ vector)) * _UP
    reach = bonus / math.sqrt(shift) * _UP * (1.0 + 2.0 * rounding)
    per_norm = (1.02 * (width + 4) * 2.0**-24 + 2.0**-22 + rounding) * length + reach
    both = np.empty(width + (width + 1) // 2)  # in float64 and in float32: one transfer
    both[:width] = vector
    both[width:].view(np.float32)[:width] = vector
    there = torch.from_numpy(both).to(store.array.device)
    upper, best = kernel.products(
        store.array if coarse is None else coarse.array,
        there[width:].view(torch.float32)[:width],
        store.norms,
        None if coarse is None else coarse.slack,
        per_norm,
        0.0 if coarse is None else 1.02 * length,
    )
    return CudaBounds(upper, best, there[:width])


def only_survivor(
    arms: OfferedArms, found: CudaBounds, bonus: float, precision: Precision, *, off: float, slack: float
) -> int | None:
    """The index of the only arm that can have the largest score; None if there are others.

    ``off`` and ``slack`` are the float64 errors: of a mean relative to |x|, of a squared width relative to
    |x|².
    """
    torch, kernel = _modules()
    store = arms.store
    told = torch.empty(5 + store.width, dtype=torch.float64, device=store.array.device)
    kernel.leader(store.array, found.wide, found.upper, found.best, told)
    seen = told[5:] @ precision.carry_to(store.library)
    torch.dot(seen, seen, out=told[4])
    index, second, mean, square, taken = told[:5].tolist()
    shift = precision.inverse.shift
    quadratic = max(0.0, (square - taken) / shift - slack * square)
    least = mean - off * math.sqrt(square) + bonus * math.sqrt(quadratic)
    return int(index) if second < least - 2.0**-20 * abs(least) else None


def largest(found: CudaBounds, count: int) -> tuple[Any, Any]:
    """The ``count`` largest bounds and their indices, on the device."""
    torch, kernel = _modules()
    rows = kernel.ROWS
    upper, best = found.upper, found.best
    if len(best) <= 4 * count:
        top = upper.topk(count)
        return top.values, top.indices
    blocks = best.topk(count, sorted=False).indices  # the largest are in these blocks
    inside = blocks[:, None] * rows + torch.arange(rows, device=upper.device)
    inside = inside.view(-1)
    values = upper[inside.clamp(max=len(upper) - 1)]
    if len(upper) % rows:
        values.masked_fill_(inside >= len(upper), -math.inf)  # the last block is not full
    top = values.topk(count)
    return top.values, inside[top.indices]
