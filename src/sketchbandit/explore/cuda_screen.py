"""A plain catalogue on a CUDA device: few launches and one answer, as latency is what counts there."""

import importlib
import math
import threading
from functools import cache
from typing import Any, NamedTuple, Self

import numpy as np

from sketchbandit.arms import OfferedArms
from sketchbandit.arms.store import Store
from sketchbandit.arrays import AnyArray, Vector
from sketchbandit.precision import LowRankInverse, Precision

_UP = 1.0 + 2.0**-20
_NAME = "cuda"  # of what a store keeps for this module


class CudaBounds(NamedTuple):
    """At least the score of every arm, and of every block of them the largest; both float32, there."""

    upper: Any
    best: Any
    wide: Any
    """The vector in float64, there."""


@cache
def _modules() -> tuple[Any, Any]:
    return importlib.import_module("torch"), importlib.import_module("sketchbandit.triton_products")


class Space:
    """Buffers for one choice at a time from a store: to make them anew takes longer than to fill them."""

    def __init__(self, store: Store) -> None:
        torch, kernel = _modules()
        coarse, width = store.coarse, store.width
        self._store, self._device = store, store.array.device
        self._lock = threading.Lock()
        read = store.array if coarse is None else coarse.array
        self._pinned = torch.empty(width, dtype=torch.float64, pin_memory=True)
        self._on_host = self._pinned.numpy()
        self._wide = torch.empty(width, dtype=torch.float64, device=self._device)
        blocks = -(-len(store) // kernel.ROWS)
        upper = torch.empty(len(store), dtype=torch.float32, device=self._device)
        best = torch.empty(blocks, dtype=torch.float32, device=self._device)
        self._told = torch.empty(5 + width, dtype=torch.float64, device=self._device)
        self._first, self._answer = self._told[:5], torch.empty(5, dtype=torch.float64, pin_memory=True)
        self.found = CudaBounds(upper, best, self._wide)
        """What ``bounds`` has found last."""
        with torch.cuda.device(self._device):
            slack = None if coarse is None else coarse.slack
            self._products = kernel.prepared(read, self._wide, store.norms, slack, upper, best)

    def try_to_take(self) -> bool:
        """Whether the caller has it now, for itself, until ``with`` ends."""
        return self._lock.acquire(blocking=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self._lock.release()

    def bounds(self, vector: Vector, length: float, per_norm: float) -> CudaBounds:
        """Of x'vector + per_norm·norm; ``length``: at least that of the vector."""
        self._on_host[:] = vector
        torch, per_slack = _modules()[0], 0.0 if self._store.coarse is None else 1.02 * length
        if torch.cuda.current_device() != self._device.index:
            with torch.cuda.device(self._device):
                return self._launched(per_norm, per_slack)
        return self._launched(per_norm, per_slack)

    def _launched(self, per_norm: float, per_slack: float) -> CudaBounds:
        self._wide.copy_(self._pinned, non_blocking=True)
        self._products(per_norm, per_slack)
        return self.found

    def leader(self, carried: Any) -> list[float]:
        """The arm of the largest bound: its index, the next largest bound, x'vector, |x|², |carried'x|²."""
        torch, kernel = _modules()
        found = self.found
        with torch.cuda.device(self._device):
            kernel.leader(self._store.array, found.wide, found.upper, found.best, self._told)
            if carried is not None and carried.shape[1]:
                kernel.add_taken(carried, self._told)
            self._answer.copy_(self._first, non_blocking=True)
            torch.cuda.current_stream().synchronize()
        told: list[float] = self._answer.tolist()
        return told


def space_for(arms: OfferedArms, precision: Precision) -> Space | None:
    """Buffers to look at these arms with, taken; None: there is no quick way."""
    store = arms.store
    is_plain = arms.context is None and arms.places is None and not len(arms.lens)
    if store.library.name != "torch" or not is_plain:
        return None
    if not isinstance(precision.inverse, LowRankInverse):
        return None
    if _NAME not in store.kept:
        store.kept[_NAME] = Space(store) if _is_quick(store) else None
    space: Space | None = store.kept[_NAME]
    if space is None or space.try_to_take():
        return space
    another = Space(store)  # another thread has it
    another.try_to_take()
    return another


def _is_quick(store: Store) -> bool:
    return bool(store.array.is_cuda) and str(store.array.dtype) in ("torch.float32", "torch.bfloat16")


def bounds(space: Space, aim: Any, arms: OfferedArms, shift: float) -> CudaBounds:
    """Of the scores that the aim looks for."""
    length = math.sqrt(float(aim.vector @ aim.vector)) * _UP
    reach = aim.bonus / math.sqrt(shift) * _UP * (1.0 + 2.0 * aim.rounding)
    share = 1.02 * (arms.store.width + 4) * 2.0**-24 + 2.0**-22 + aim.rounding
    return space.bounds(aim.vector, length, share * length + reach)


def only_survivor(
    space: Space, bonus: float, precision: Precision, *, off: float, slack: float
) -> int | None:
    """The index of the only arm that can have the largest score; None: there are others.

    ``off`` and ``slack``: by how much of |x| a mean, and of |x|² a squared width, may be off in float64.
    """
    carried = precision.carried if bonus else None
    index, second, mean, square, taken = space.leader(carried)
    quadratic = max(0.0, (square - taken) / precision.inverse.shift - slack * square)
    least = mean - off * math.sqrt(square) + bonus * math.sqrt(quadratic)
    return int(index) if second < least - 2.0**-20 * abs(least) else None


class Leaders(NamedTuple):
    """The arms with the largest bounds, told of in float64; all others have bounds below ``threshold``."""

    threshold: float
    indices: AnyArray
    means: Vector
    squares: Vector
    """|x|²."""
    quadratics: Vector
    """x'A^-1 x; without a bonus nothing that counts."""


def leaders(
    space: Space, arms: OfferedArms, bonus: float, precision: Precision, wanted: int
) -> Leaders | None:
    """At least ``wanted`` arms, and few more; None: too many have the same bounds."""
    _, kernel = _modules()
    found, room = space.found, 3 * wanted
    carried = precision.carried if bonus else None
    wanted = min(len(found.best), wanted)
    told = kernel.tell_leaders(arms.store.array, found.wide, found.upper, found.best, wanted, carried, room)
    on_host = told.cpu().numpy()
    threshold, reached = on_host[: kernel.HEAD]
    if reached > room:
        return None
    lines = on_host[kernel.HEAD :].reshape(room, kernel.TOLD)[: int(reached)]
    lines = lines[np.argsort(lines[:, 0])]  # the device has put them down in any order
    indices, means, squares, taken = lines.T
    quadratics = (squares - taken) / precision.inverse.shift
    return Leaders(float(threshold), indices.astype(np.intp), means, squares, quadratics)
