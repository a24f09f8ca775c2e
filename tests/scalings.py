"""Policies that read features by a scaling, and raw features for them."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

import sketchbandit as sb
from tests.policies import Matrix, Round

RECIPES: dict[str, Callable[..., Any]] = {
    "oful": sb.oful,
    "soful": partial(sb.soful, size=6),
    "cbscfd": partial(sb.cbscfd, size=6),
    "dbslinucb": partial(sb.dbslinucb, size=4, epsilon=6.0),
    "adaptive": partial(sb.adaptive, size=6, epsilon=8.0, horizon=300),
    "cbrap": partial(sb.cbrap, size=6),
}
SCALINGS: dict[str, Callable[[int], sb.Scaling]] = {
    "as they are": lambda dim: sb.Scaling.none(dim, constant=0.7),
    "rows": sb.Scaling.rows,
    "rows, constant": lambda dim: sb.Scaling.rows(dim, constant=0.5),
    "columns, not centred": lambda dim: sb.Scaling.columns(np.zeros(dim), 0.3 / _spreads(dim), bound=0.4),
    "columns": lambda dim: sb.Scaling.columns(_offsets(dim), 0.3 / _spreads(dim), bound=0.4, constant=0.5),
}
FORMS: dict[str, Callable[[Matrix], Any]] = {
    "float64": lambda rows: rows,
    "float32": lambda rows: rows.astype(np.float32),
    "strided": lambda rows: np.repeat(rows, 2, axis=1)[:, ::2],
    "csr": sparse.csr_array,
    "lists": lambda rows: rows.tolist(),
    "frame": lambda rows: pd.DataFrame(rows, columns=[f"c{j}" for j in range(rows.shape[1])]),
}


def _offsets(dim: int) -> Matrix:
    return np.asarray(np.cos(np.arange(dim)))


def _spreads(dim: int) -> Matrix:
    return np.asarray(10.0 ** (np.arange(dim) % 4 - 1))


def make(name: str, dim: int, scaling: Any = None, *, intercept: Any = False, **more: Any) -> Any:
    """A small policy; UCB with 0.3 unless something else is said."""
    if "explore" not in more:
        more = {"beta": 0.3, **more}
    return RECIPES[name](dim, scaling=scaling, intercept=intercept, **more)


def read_by(name: str, scaling: sb.Scaling, **more: Any) -> Any:
    """A small policy that has this scaling from the start."""
    return make(name, scaling.dim, scaling, intercept=scaling.constant, **more)


def plain(name: str, scaling: sb.Scaling, **more: Any) -> Any:
    """The same recipe for arms that somebody else has scaled."""
    baseline = read_by(name, scaling, **more)._has_baseline
    return make(name, scaling.inner_dim, **{**more, "baseline": baseline})


def raw_rounds(count: int, dim: int, *, seed: int = 0, arms: int = 6) -> Iterator[Round]:
    """Sets of raw arms: columns far apart in scale, off zero, some entries 0; float32 holds them exactly."""
    random = np.random.default_rng(seed)
    theta = random.standard_normal(dim)
    for _ in range(count):
        unit = random.standard_normal((int(random.integers(2, arms + 1)), dim))
        rows = (unit * _spreads(dim) + _offsets(dim)) * (random.random(unit.shape) < 0.8)
        noise = 0.1 * random.standard_normal(len(unit))
        yield Round(rows.astype(np.float32).astype(np.float64), np.tanh(unit @ theta) + noise)


def play(policy: Any, rounds: Iterator[Round], form: Callable[[Matrix], Any] = FORMS["float64"]) -> list[int]:
    """Choose and learn; what was chosen."""
    chosen = []
    for arms, rewards in rounds:
        index = policy.select(form(arms))
        policy.update(form(arms[[index]]), [rewards[index]])
        chosen.append(index)
    return chosen


def offer(policy: Any, arms: Any) -> None:
    """Each arm in a request of its own, so that all are looked at."""
    for place in range(arms.shape[0]):
        policy.select(arms[[place]])
