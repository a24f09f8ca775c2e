"""How the cost of a round grows over d, the sketch rows r, and the number of arms K."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import sketchbandit as sb
from benchmarks.policy_rivals import TunedOFUL
from benchmarks.policy_speed import play
from benchmarks.policy_streams import Stream, gaussian
from benchmarks.scaling import Point
from benchmarks.timing import unit_rows

BASE = {"dimension d": 784, "sketch size l": 50, "arms K": 10}
RANGES = {
    "dimension d": (200, 400, 800, 1600, 3200),
    "sketch size l": (12, 25, 50, 100, 200),
    "arms K": (1, 10, 100, 1000),
}
CONTENDERS: dict[str, Callable[[int, int], Any]] = {
    "soful": lambda dim, size: sb.soful(dim, size=size),
    "oful, nothing to prune": lambda dim, size: _filled(sb.oful(dim)),  # noqa: ARG005  it has none
    "tuned OFUL": lambda dim, size: TunedOFUL(dim),  # noqa: ARG005  it has none
}


def points() -> list[Point]:
    """Seconds a round, averaged over two fills of the sketch's buffer, once it has been full."""
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sb.SketchTooSmallWarning)
        for axis, values in RANGES.items():
            for value in values:
                at = {**BASE, axis: value}
                dim, size, arms = at["dimension d"], at["sketch size l"], at["arms K"]
                rounds = 4 * size
                stream = _repeated(gaussian(dim, min(rounds, 40), arms), rounds)
                for name, make in CONTENDERS.items():
                    # With a full covariance the cost of a round does not depend on how many came before.
                    warm_up, limit = (2 * size, rounds) if name == "soful" else (0, min(rounds, 30))
                    seconds = min(play(make(dim, size), stream, limit, warm_up)[0] for _ in range(2))
                    found.append(Point(axis, value, name, seconds / (limit - warm_up)))
    return found


def _filled(policy: sb.LinUCB) -> sb.LinUCB:
    """With a covariance of full rank, as after a long time, and no signal at all: every width matters."""
    policy.update(unit_rows(policy.dim, policy.dim, seed=2), np.zeros(policy.dim))
    assert policy.sketch.is_dense
    return policy


def _repeated(stream: Stream, rounds: int) -> Stream:
    """Longer than its arms take memory: the same arms again, their features in another order."""
    random = np.random.default_rng(1)
    arms, rewards = list(stream.arms), list(stream.rewards)
    for t in range(len(arms), rounds):
        order = random.permutation(stream.dim)
        arms.append(np.ascontiguousarray(stream.arms[t % len(stream.arms)][:, order]))
        rewards.append(stream.rewards[t % len(stream.arms)])
    return Stream(stream.name, stream.dim, arms, rewards)
