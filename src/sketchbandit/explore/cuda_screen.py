# mypy: allow-untyped-calls
"""The screen of a catalogue on a CUDA device. Latency dominates, so: few launches, one answer.

A catalogue as it is, or re-weighted by a context: both have the same steps, recorded as a CUDA graph each.
"""

import math
import threading
from collections.abc import Callable
from functools import cached_property
from typing import Self

import numpy as np
import torch

from sketchbandit import triton_products
from sketchbandit.arms.store import LEAST, UP, Store
from sketchbandit.array_api import HOST, Array, dtype_name
from sketchbandit.arrays import AnyArray, Matrix, Vector
from sketchbandit.explore.screen import Bounds, Scorer, Told
from sketchbandit.linalg import length_of

_FEW = 64  # arms that are looked at in any case
_TIMES_WANTED = (2.0, 6.0, 30.0)  # arms that are looked at first, second and last, where many are wanted
_MOST_TOLD = 1 << 26  # numbers of the arms that are told of: half a gigabyte in float64
_NAME = "cuda"  # of what a store keeps for this module
_NOTHING = np.zeros(0)
_HEAD = 16  # numbers before the vector: three are used, and the vector begins a line of the cache


class Buffers:
    """Buffers for one choice at a time from a store: to make them anew takes longer than to fill them.

    The launches are always the same but for the numbers in ``_pinned``: they are recorded as a graph, which
    takes a fraction of the time to launch.
    """

    def __init__(self, store: Store) -> None:
        width, coarse = store.width, store.coarse
        # Not the store itself, which refers to this: its memory would wait for the garbage collector.
        self.arms, self._norms = store.array, store.norms
        self._read = store.array if coarse is None else coarse.array
        self._slack = None if coarse is None else coarse.slack
        self.device = torch.device(str(store.library.device))
        self.lock = threading.Lock()
        self._pinned = torch.zeros(_HEAD + 2 * width, dtype=torch.float64, pin_memory=True)
        self._on_host = self._pinned.numpy()
        self._there = torch.zeros(_HEAD + 2 * width, dtype=torch.float64, device=self.device)
        self.vector, self._context = self._there[_HEAD : _HEAD + width], self._there[_HEAD + width :]
        self.upper = torch.empty(len(store), dtype=torch.float32, device=self.device)
        blocks = -(-len(store) // triton_products.ROWS)
        self.best = torch.empty(blocks, dtype=torch.float32, device=self.device)
        self._told = torch.empty(5 + width, dtype=torch.float64, device=self.device)
        self._first, self._answer = self._told[:5], torch.empty(5, dtype=torch.float64, pin_memory=True)

    @cached_property
    def _plain(self) -> Callable[[], None]:
        return self._recorded(None)

    @cached_property
    def _weighted(self) -> Callable[[], None]:
        return self._recorded(self._context)

    def _recorded(self, context: Array | None) -> Callable[[], None]:
        """The launches as a graph; where there are none, themselves."""
        used = _HEAD + (1 if context is None else 2) * len(self.vector)
        pinned, there = self._pinned[:used], self._there[:used]
        arms, vector, upper, best = self.arms, self.vector, self.upper, self.best

        def launch() -> None:
            there.copy_(pinned, non_blocking=True)
            triton_products.write_bounds(
                self._read, vector, context, self._norms, self._slack, upper, best, there[:3]
            )
            triton_products.leader(arms, vector, context, upper, best, self._told)

        launch()  # which compiles the kernels
        graph, stream = torch.cuda.CUDAGraph(), torch.cuda.Stream()
        torch.cuda.synchronize()
        try:
            with torch.cuda.stream(stream):
                graph.capture_begin(capture_error_mode="thread_local")
                try:
                    launch()
                finally:
                    graph.capture_end()
        except RuntimeError:
            return launch
        replay: Callable[[], None] = graph.replay
        return replay

    def start(self, vector: Vector, context: Vector | None, factors: tuple[float, float, float]) -> None:
        """Write ``upper`` and ``best``, and find the leader, for these numbers (``write_bounds``)."""
        width = len(vector)
        self._on_host[:3] = factors
        self._on_host[_HEAD : _HEAD + width] = vector
        if context is not None:
            self._on_host[_HEAD + width :] = context
        if torch.cuda.current_device() == self.device.index:
            (self._plain if context is None else self._weighted)()
        else:
            with torch.cuda.device(self.device):
                (self._plain if context is None else self._weighted)()

    def leader(self, carried: Array | None) -> list[float]:
        """The arm of the largest bound: its index, the next largest bound, x'vector, |z|², |carried'z|²."""
        with torch.cuda.device(self.device):
            if carried is not None and carried.shape[1]:
                triton_products.add_taken(carried, self._told)
            self._answer.copy_(self._first, non_blocking=True)
            torch.cuda.current_stream().synchronize()
        told: list[float] = self._answer.tolist()
        return told

    def leaders(self, is_weighted: bool, carried: Array | None, wanted: int) -> tuple[float, Matrix] | None:
        """At least ``wanted`` arms, and few more, and the most that the bounds of others are.

        Of each arm: index, x'vector, |z|², |carried'z|². None: there are too many.
        """
        room, width = min(3 * wanted, len(self.upper)), len(self.vector)
        if room * width > _MOST_TOLD:
            return None
        context, wanted = self._context if is_weighted else None, min(len(self.best), wanted)
        told = triton_products.tell_leaders(
            self.arms, self.vector, context, self.upper, self.best, wanted, carried, room
        )
        on_host: AnyArray = told.cpu().numpy()
        threshold, reached = on_host[: triton_products.HEAD]
        if reached > room:
            return None
        lines = on_host[triton_products.HEAD :].reshape(room, triton_products.TOLD)[: int(reached)]
        # The device has put them down in any order.
        return float(threshold), np.ascontiguousarray(lines[lines[:, 0].argsort()].T)


class CudaBounds:
    """What ``Bounds`` tells of one request, with few answers of the device. It has the buffers for itself."""

    def __init__(self, buffers: Buffers, score: Scorer) -> None:
        self._buffers, self._score = buffers, score
        self._carried = score.precision.carried if score.aim.bonus else None
        buffers.start(score.arms.folded(score.aim.vector)[0], score.arms.context, _factors(score))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self._buffers.lock.release()

    @property
    def _plain(self) -> Bounds:
        upper: Array = self._buffers.upper[None, :]
        return Bounds(upper, 0.0, self._score)

    def leaders(self, count: int) -> Told | None:
        """One arm, if one is wanted and no other comes near; else some more than are wanted."""
        told, context = self._first() if count == 1 else None, self._score.arms.context
        for times in _TIMES_WANTED if self._score.arms.store.coarse is None else _TIMES_WANTED[1:]:
            if told is not None:
                break
            wanted = int(times * count) + _FEW
            found = self._buffers.leaders(context is not None, self._carried, wanted)
            if found is None or found[1].shape[1] < count:  # too many, or too few that are different
                return None
            told = self._if_sure(*found, count)
        return told

    def left(self, count: int) -> tuple[AnyArray, AnyArray]:
        """Those that ``Bounds`` finds."""
        return Bounds(self._buffers.upper[None, :], 0.0, self._score).left(count)

    def _first(self) -> Told | None:
        """The arm with the largest bound, if all other bounds are below its score."""
        score, bonus = self._score, self._score.aim.bonus
        (off, slack), shift = score.errors(), score.precision.shift  # while the device is at work
        index, rest, mean, square, taken = self._buffers.leader(self._carried)
        low = mean - off * math.sqrt(square)
        if bonus:
            low += bonus * math.sqrt(max(0.0, (square - taken) / shift - slack * square))
        return (np.array([index], dtype=np.intp), _NOTHING, _NOTHING) if _is_below(rest, low) else None

    def _if_sure(self, rest: float, lines: Matrix, count: int) -> Told | None:
        """These arms, if the bounds of all others, ``rest`` at most, are below the scores of the best."""
        score, (indices, means, squares, taken) = self._score, lines
        quadratics = (squares - taken) / score.precision.shift
        low, high = map(HOST.to_host, score.intervals(HOST.xp, means, squares, quadratics))
        least = float(np.partition(low, len(low) - count)[-count])
        is_sure = len(low) == len(score.arms) or _is_below(rest, least)
        return (indices.astype(np.intp), low, high) if is_sure else None


def _is_below(bound: float, score: float) -> bool:
    """Whether a bound is less than a score, compared in float32."""
    return bound < score - 2.0**-20 * abs(score)


def bounds(score: Scorer) -> CudaBounds | None:
    """Bounds on the scores of these arms; None: there is no quick way, or another thread has the buffers."""
    arms, store = score.arms, score.arms.store
    is_plain = arms.context is None or arms.interaction == "product"
    if not is_plain or arms.places is not None or len(arms.lens) or score.precision.low_rank is None:
        return None
    if _NAME not in store.kept:
        is_quick = dtype_name(store.array) in {"float32", "bfloat16"}
        store.kept[_NAME] = Buffers(store) if is_quick else None
    buffers = store.kept[_NAME]
    if not isinstance(buffers, Buffers) or not buffers.lock.acquire(blocking=False):
        return None
    try:
        return CudaBounds(buffers, score)
    except BaseException:
        buffers.lock.release()
        raise


def _factors(score: Scorer) -> tuple[float, float, float]:
    """Of |z|, of the distance of an arm from its copy, and a number: added up, with x'w they are a bound.

    A context u makes z = x·u of an arm x, and w = u·v of the vector v. What is rounded in x'w = Σ x_j·u_j·v_j
    is at most a share of Σ |z_j·v_j| <= |z||v|: so it grows with |z|, as the width does. An arm that is x + e
    where its copy is x adds at most |e||w| to the product, and max|u|·|e| to the length.
    """
    arms, aim = score.arms, score.aim
    store, context = arms.store, arms.context
    length = length_of(aim.vector) * UP
    reach = aim.bonus / math.sqrt(score.precision.shift) * UP * (1.0 + 2.0 * aim.rounding)
    share = 1.02 * (store.width + 4) * 2.0**-24 + 2.0**-22
    per_norm = (share + aim.rounding) * length + reach
    if context is None:
        return per_norm, 0.0 if store.coarse is None else 1.02 * length, LEAST
    # Squares of z_j are lost below 2^-126, and u_j and w_j that small are zero in float32.
    lost = store.longest * (store.width + per_norm) * 2.0**-124 + math.sqrt(store.width) * per_norm * 2.0**-62
    per_slack = 1.02 * (length_of(arms.folded(aim.vector)[0]) + float(np.abs(context).max()) * per_norm)
    return per_norm * (1.0 + 2.0 * share), 0.0 if store.coarse is None else per_slack, LEAST + lost
