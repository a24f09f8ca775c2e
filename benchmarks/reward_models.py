"""Rounds per second of each reward model beside linear rewards, and with forgetting: one stream, one thread.

python -m benchmarks.reward_models [--rounds N] [--repeats N]

The contenders play in turn, so that what disturbs the machine disturbs all of them; of each the best turn
counts. Before anything is timed, every model's theta is compared with the one that numpy's loops give.
"""

import argparse
import os
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import sketchbandit as sb
from benchmarks.policy_streams import Stream, gaussian
from sketchbandit.kernels import kernels

DIM, SIZE = 784, 50
MODELS: dict[str, Callable[[], dict[str, Any]]] = {
    "linear": dict,
    "logistic": lambda: {"rewards": sb.Logistic()},
    "poisson": lambda: {"rewards": sb.Poisson()},
    "robust": lambda: {"rewards": sb.Robust(scale=0.1)},
    "forget=0.999": lambda: {"forget": 0.999},
}


def clicks(rounds: int) -> Stream:
    """Arms of the usual stream, and clicks for rewards: every model has a place for them."""
    stream = gaussian(DIM, rounds)
    random = np.random.default_rng(1)
    chances = [1.0 / (1.0 + np.exp(-4.0 * means)) for means in stream.rewards]
    return stream._replace(rewards=[(random.random(len(p)) < p).astype(np.float64) for p in chances])


def play(stream: Stream, name: str) -> tuple[float, sb.LinUCB]:
    """Seconds of select and update, and the policy."""
    policy = sb.soful(DIM, size=SIZE, ridge=1.0, beta=0.1, **MODELS[name]())
    seconds = 0.0
    for arms, rewards in zip(stream.arms, stream.rewards, strict=True):
        start = time.thread_time()
        chosen = policy.select(arms)
        policy.update(arms[chosen], float(rewards[chosen]))
        seconds += time.thread_time() - start
    return seconds, policy


@contextmanager
def numpy_alone() -> Iterator[None]:
    """No compiled loops."""
    os.environ["SKETCHBANDIT_COMPILED"] = "0"
    kernels.cache_clear()
    try:
        yield
    finally:
        del os.environ["SKETCHBANDIT_COMPILED"]
        kernels.cache_clear()


def main() -> None:
    """The table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=2000)
    parser.add_argument("--repeats", type=int, default=7)
    asked = parser.parse_args()
    threadpool_limits(1)
    warnings.simplefilter("ignore", sb.SketchTooSmallWarning)
    stream = clicks(asked.rounds)
    short = stream._replace(arms=stream.arms[:200], rewards=stream.rewards[:200])
    for name in MODELS:
        with numpy_alone():
            expected = play(short, name)[1].theta
        np.testing.assert_allclose(play(short, name)[1].theta, expected, rtol=1e-6, atol=1e-9)
    best = dict.fromkeys(MODELS, float("inf"))
    for _ in range(asked.repeats):
        for name in MODELS:
            best[name] = min(best[name], play(stream, name)[0])
    print(f"d = {DIM}, size {SIZE}, K = 10, {asked.rounds} rounds, best of {asked.repeats} turns")
    for name, seconds in best.items():
        print(
            f"{name:12} {asked.rounds / seconds:10,.0f} rounds/s  {best['linear'] / seconds:5.2f} of linear"
        )


if __name__ == "__main__":
    main()
