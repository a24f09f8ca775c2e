"""The policies under test, a dense oracle beside them, and streams of arms and rewards."""

import json
import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

import sketchbandit as sb

Matrix = NDArray[np.float64]
Beta = float | sb.Confidence


def rfd(
    dim: int, *, size: int, ridge: float, beta: Beta, dtype: DTypeLike = np.float64, **more: Any
) -> sb.LinUCB:
    """The compensation that has no recipe of its own: half of the loss, Luo et al.'s RFD."""
    sketch = sb.FrequentDirections(dim, size=size, compensation=0.5, dtype=dtype)
    return sb.LinUCB(sketch, ridge=ridge, beta=beta, **more)


def oful(
    dim: int, *, size: int, ridge: float, beta: Beta, dtype: DTypeLike = np.float64, **more: Any
) -> sb.LinUCB:
    """OFUL has no size."""
    del size
    return sb.oful(dim, ridge=ridge, beta=beta, dtype=dtype, **more)


def dbs_fd(
    dim: int, *, size: int, ridge: float, beta: Beta, dtype: DTypeLike = np.float64, **more: Any
) -> sb.LinUCB:
    """DBSLinUCB-FD with an epsilon that a few dozen unit arms fill."""
    return sb.dbslinucb(
        dim, size=size, epsilon=6.0, compensation=0.0, ridge=ridge, beta=beta, dtype=dtype, **more
    )


def dbs_rfd(
    dim: int, *, size: int, ridge: float, beta: Beta, dtype: DTypeLike = np.float64, **more: Any
) -> sb.LinUCB:
    """DBSLinUCB-RFD likewise."""
    return sb.dbslinucb(
        dim, size=size, epsilon=6.0, compensation=1.0, ridge=ridge, beta=beta, dtype=dtype, **more
    )


def adaptive(
    dim: int,
    *,
    size: int,
    ridge: float,
    beta: Beta,
    compensation: float = 1.0,
    dtype: DTypeLike = np.float64,
    **more: Any,
) -> sb.LinUCB:
    """The adaptive sketch with a budget that lets it lose something in a few dozen unit arms."""
    sketch = sb.AdaptiveSketch(
        dim, size=size, epsilon=8.0, horizon=300, compensation=compensation, dtype=dtype
    )
    return sb.LinUCB(sketch, ridge=ridge, beta=beta, **more)


CERTIFIED: dict[str, Callable[..., sb.LinUCB]] = {
    "oful": oful,
    "soful": sb.soful,
    "cbscfd": sb.cbscfd,
    "rfd": rfd,
    "dbs-fd": dbs_fd,
    "dbs-rfd": dbs_rfd,
    "adaptive": adaptive,
    "adaptive-fd": partial(adaptive, compensation=0.0),
}
EVERY: dict[str, Callable[..., Any]] = {**CERTIFIED, "cbrap": sb.cbrap}


class Round(NamedTuple):
    """What one round offers, and the reward of every arm."""

    arms: Matrix
    rewards: Matrix


def rounds(
    count: int, dim: int, *, seed: int, arms: int = 6, decay: float = 1.0, noise: float = 0.1
) -> Iterator[Round]:
    """1 to ``arms`` unit arms a round whose coordinates fade like decay^i; rewards linear plus noise."""
    random = np.random.default_rng(seed)
    theta = unit(random.standard_normal((1, dim)))[0]
    for _ in range(count):
        some = unit(
            random.standard_normal((int(random.integers(1, arms + 1)), dim)) * decay ** np.arange(dim)
        )
        yield Round(some, some @ theta + noise * random.standard_normal(len(some)))


def unit(rows: Matrix) -> Matrix:
    """Rows of length one."""
    normalised: Matrix = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return normalised


def train(policy: Any, count: int, dim: int, *, seed: int = 0, decay: float = 1.0) -> Any:
    """Play so many rounds."""
    for arms, rewards in rounds(count, dim, seed=seed, decay=decay):
        chosen = policy.select(arms)
        policy.update(arms[chosen], rewards[chosen])
    return policy


class Oracle:
    """The same algorithm by dense solves: A from the rows of a sketch of its own, b and theta outright."""

    def __init__(self, sketch: sb.Sketch, ridge: float) -> None:
        self.sketch, self.ridge = sketch, ridge
        self.b = np.zeros(sketch.dim)

    def update(self, arm: Matrix, reward: float) -> None:
        """One row, one reward."""
        self.sketch.update(arm)
        self.b += reward * arm

    @property
    def matrix(self) -> Matrix:
        """A = S'S + (lambda + alpha) I."""
        rows = self.sketch.rows
        return np.asarray(rows.T @ rows + (self.ridge + self.sketch.alpha) * np.eye(self.sketch.dim))

    def theta(self) -> Matrix:
        """A^-1 b."""
        return np.asarray(np.linalg.solve(self.matrix, self.b), dtype=np.float64)

    def width(self, arms: Matrix) -> Matrix:
        """sqrt(x'A^-1 x)."""
        return np.asarray(np.sqrt(np.vecdot(arms, np.linalg.solve(self.matrix, arms.T).T)))


def design_radius(confidence: sb.Confidence, sketch: Any, ridge: float) -> float:
    """The one radius for all compensations, by a dense determinant."""
    dim, rows, e = sketch.dim, sketch.rows, sketch.error_bound
    c = sketch.alpha / e if e else 1.0
    outside = 0 if sketch.is_dense else dim - len(rows)
    spread = min(e, (sketch.mass - float(np.vdot(rows, rows))) / outside) if outside > 0 else e
    log_det = float(np.linalg.slogdet((ridge + spread) * np.eye(dim) + rows.T @ rows)[1])
    information = min(log_det - dim * math.log(ridge), dim * math.log1p(sketch.mass / (dim * ridge)))
    root = math.sqrt(2 * math.log(1 / confidence.delta) + information)
    variance = confidence.noise * math.sqrt(1 + (1 - c) * e / (ridge + c * e)) * root
    bias = confidence.theta_norm * max(ridge + c * e, (1 - c) * e - ridge) / math.sqrt(ridge + c * e)
    return float(variance + bias)


def saved(policy: Any) -> tuple[str, dict[str, bytes]]:
    """Everything a policy would save, to be compared bit for bit."""
    return _comparable(*policy.dump())


def learned(policy: Any) -> tuple[str, dict[str, bytes]]:
    """The same, less the scale of the rewards: that of a ``PerAction`` belongs to all its models."""
    scalars, arrays = policy.dump()
    return _comparable(_without_scale(scalars), arrays)


def _without_scale(saved: Any) -> Any:
    if not isinstance(saved, dict):
        return saved
    return {name: _without_scale(value) for name, value in saved.items() if name != "reward_scale"}


def _comparable(scalars: dict[str, Any], arrays: dict[str, Any]) -> tuple[str, dict[str, bytes]]:
    return json.dumps(scalars, sort_keys=True), {name: array.tobytes() for name, array in arrays.items()}
