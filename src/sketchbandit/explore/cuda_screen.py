"""Screening of a plain catalogue on a CUDA device. Latency dominates, so: few launches, one answer."""

import importlib
import math
import threading
from functools import cache
from typing import Any, NamedTuple, Self

import numpy as np

from sketchbandit.arms import OfferedArms
from sketchbandit.arms.store import UP, Store
from sketchbandit.arrays import AnyArray, Vector
from sketchbandit.linalg import length_of
from sketchbandit.precision import Precision

_MOST_TOLD = 1 << 26  # numbers of the arms that are told of: half a gigabyte in float64
_NAME = "cuda"  # of what a store keeps for this module


class CudaBounds(NamedTuple):
    """Upper bounds on the scores of all arms, and the largest bound per block; float32, on the device."""

    upper: Any
    best: Any
    wide: Any
    """The vector in float64, on the device."""


@cache
def _modules() -> tuple[Any, Any]:
    return importlib.import_module("torch"), importlib.import_module("sketchbandit.triton_products")


class Space:
    """Buffers for one choice at a time from a store: to make them anew takes longer than to fill them.

    The first launches are always the same but for the numbers in ``_pinned``: they are recorded as a graph,
    which takes a fraction of the time to launch.
    """

    def __init__(self, store: Store) -> None:
        torch, kernel = _modules()
        width, coarse, self._device = store.width, store.coarse, store.array.device
        # Not the store itself, which refers to this: its memory would wait for the garbage collector.
        self._arms, self._norms = store.array, store.norms
        self._read: Any = store.array
        self._slack: Any = None
        if coarse is not None:
            self._read, self._slack = coarse.array, coarse.slack
        self._lock = threading.Lock()
        self._pinned = torch.zeros(width + 2, dtype=torch.float64, pin_memory=True)
        self._on_host = self._pinned.numpy()
        self._there = torch.zeros(width + 2, dtype=torch.float64, device=self._device)
        made = torch.empty(len(store), dtype=torch.float32, device=self._device)
        best = torch.empty(-(-len(store) // kernel.ROWS), dtype=torch.float32, device=self._device)
        self.found = CudaBounds(made, best, self._there[:width])
        """What ``bounds`` has found last."""
        self._told = torch.empty(5 + width, dtype=torch.float64, device=self._device)
        self._first, self._answer = self._told[:5], torch.empty(5, dtype=torch.float64, pin_memory=True)
        with torch.cuda.device(self._device):
            self._launch()  # which compiles the kernels
            self._start = self._recorded()

    def _launch(self) -> None:
        _, kernel = _modules()
        upper, best, wide = self.found
        self._there.copy_(self._pinned, non_blocking=True)
        kernel.write_bounds(self._read, wide, self._norms, self._slack, upper, best, self._there[-2:])
        kernel.leader(self._arms, wide, upper, best, self._told)

    def _recorded(self) -> Any:
        """``_launch`` as a graph; where there are none, itself."""
        torch, _ = _modules()
        graph, stream = torch.cuda.CUDAGraph(), torch.cuda.Stream()
        torch.cuda.synchronize()
        try:
            with torch.cuda.stream(stream):
                graph.capture_begin(capture_error_mode="thread_local")
                try:
                    self._launch()
                finally:
                    graph.capture_end()
        except RuntimeError:
            return self._launch
        return graph.replay

    def try_to_take(self) -> bool:
        """Whether the caller has it now, for itself, until ``with`` ends."""
        return self._lock.acquire(blocking=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self._lock.release()

    def bounds(self, vector: Vector, per_norm: float, per_slack: float) -> CudaBounds:
        """Of x'vector + per_norm·norm + per_slack·slack."""
        self._on_host[:-2] = vector
        self._on_host[-2:] = per_norm, per_slack
        torch, _ = _modules()
        if torch.cuda.current_device() == self._device.index:
            self._start()
        else:
            with torch.cuda.device(self._device):
                self._start()
        return self.found

    def leader(self, carried: Any) -> list[float]:
        """The arm of the largest bound: its index, the next largest bound, x'vector, |x|², |carried'x|²."""
        torch, kernel = _modules()
        with torch.cuda.device(self._device):
            if carried is not None and carried.shape[1]:
                kernel.add_taken(carried, self._told)
            self._answer.copy_(self._first, non_blocking=True)
            torch.cuda.current_stream().synchronize()
        told: list[float] = self._answer.tolist()
        return told


def space_for(arms: OfferedArms, precision: Precision) -> Space | None:
    """Buffers to look at these arms with, taken; None: there is no quick way, or another thread has them."""
    store = arms.store
    is_plain = arms.context is None and arms.places is None and not len(arms.lens)
    if store.library.name != "torch" or not is_plain:
        return None
    if precision.low_rank is None:
        return None
    if _NAME not in store.kept:
        store.kept[_NAME] = Space(store) if _is_quick(store) else None
    space: Space | None = store.kept[_NAME]
    return space if space is not None and space.try_to_take() else None  # another thread may have it


def _is_quick(store: Store) -> bool:
    return bool(store.array.is_cuda) and str(store.array.dtype) in ("torch.float32", "torch.bfloat16")


def bounds(space: Space, aim: Any, arms: OfferedArms, shift: float) -> CudaBounds:
    """Of the scores that the aim looks for."""
    length = length_of(aim.vector) * UP
    reach = aim.bonus / math.sqrt(shift) * UP * (1.0 + 2.0 * aim.rounding)
    share = 1.02 * (arms.store.width + 4) * 2.0**-24 + 2.0**-22 + aim.rounding
    return space.bounds(
        aim.vector, share * length + reach, 0.0 if arms.store.coarse is None else 1.02 * length
    )


def only_survivor(
    space: Space, bonus: float, precision: Precision, *, off: float, slack: float
) -> int | None:
    """The index of the only arm that can have the largest score; None if there are others.

    ``off`` and ``slack`` are the float64 errors: of a mean relative to |x|, of a squared width relative to
    |x|².
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
    """At least ``wanted`` arms, and few more; None: there are too many."""
    _, kernel = _modules()
    found, room = space.found, min(3 * wanted, len(arms))
    if room * arms.store.width > _MOST_TOLD:
        return None
    carried = precision.carried if bonus else None
    wanted = min(len(found.best), wanted)
    told = kernel.tell_leaders(arms.store.array, found.wide, found.upper, found.best, wanted, carried, room)
    on_host = told.cpu().numpy()
    threshold, reached = on_host[: kernel.HEAD]
    if reached > room:
        return None
    lines = on_host[kernel.HEAD :].reshape(room, kernel.TOLD)[: int(reached)]
    # The device has put them down in any order.
    indices, means, squares, taken = np.ascontiguousarray(lines[lines[:, 0].argsort()].T)
    quadratics = (squares - taken) / precision.inverse.shift
    return Leaders(float(threshold), indices.astype(np.intp), means, squares, quadratics)
