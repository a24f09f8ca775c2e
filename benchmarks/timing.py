"""Timing on one thread: the best of several turns, contenders alternating so that drift hits all alike."""

import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sketchbandit.linalg import normalised

TURNS = 5


def best_seconds(contenders: Mapping[str, tuple[Callable[..., Any], tuple[Any, ...]]]) -> dict[str, float]:
    """Name -> the shortest of TURNS runs of ``call(*arguments)``."""
    best = dict.fromkeys(contenders, float("inf"))
    for _ in range(TURNS):
        for name, (call, arguments) in contenders.items():
            start = time.perf_counter()
            call(*arguments)
            best[name] = min(best[name], time.perf_counter() - start)
    return best


def unit_rows(count: int, dim: int, seed: int = 0) -> NDArray[np.float64]:
    """Gaussian rows of unit length."""
    return normalised(np.random.default_rng(seed).standard_normal((count, dim)))
