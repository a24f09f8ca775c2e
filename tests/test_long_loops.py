"""Loops that take long: the same numbers, while other threads run."""

import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import sketchbandit as sb
from sketchbandit.kernels import all_are_long, kernels
from tests.policies import saved

pytestmark = [
    pytest.mark.skipif(kernels() is None, reason="there are compiled loops only with numba"),
    pytest.mark.filterwarnings("ignore::sketchbandit.SketchTooSmallWarning"),
]
DIM = 30
POLICIES: dict[str, Callable[[sb.Explore], sb.Policy]] = {
    "matrix": lambda rule: sb.adaptive(DIM, explore=rule),
    "rows": lambda rule: sb.soful(DIM, size=4, explore=rule),
    "projected": lambda rule: sb.cbrap(DIM, size=5, explore=rule),
}


def played(policy: sb.Policy) -> tuple[Any, list[float]]:
    """What it has learned from some rounds, and what it said meanwhile."""
    random, said = np.random.default_rng(0), []
    for arms in random.standard_normal((60, 6, DIM)):
        found = policy.rank(arms, 4, probabilities=False)
        said += [*found.score.tolist(), *policy.ucb(arms).tolist()]
        policy.update(arms[policy.select(arms)], float(random.random()))
    return saved(policy), said


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize(
    "rule", [sb.Thompson(0.1, seed=0), sb.UCB(), sb.InverseGap(seed=0), sb.Greedy()], ids=str
)
def test_long_calls_compute_the_same(name: str, rule: sb.Explore) -> None:
    """To the bit, whatever is asked and learned."""
    plain = played(POLICIES[name](rule))
    with all_are_long():
        assert played(POLICIES[name](rule)) == plain


def test_other_threads_run_while_a_long_call_does() -> None:
    """A ranking of many arms takes a tenth of a second; another thread hardly notices."""
    policy = sb.oful(400)
    policy.update(np.eye(400), np.ones(400))
    arms = np.random.default_rng(0).standard_normal((3000, 400))
    policy.rank(arms, 3000)  # compiled, if it was not
    waits, over = [0.0], threading.Event()

    def tick() -> None:
        before = time.perf_counter()
        while not over.is_set():
            time.sleep(0.0005)
            now = time.perf_counter()
            waits.append(now - before)
            before = now

    thread = threading.Thread(target=tick)
    thread.start()
    started = time.perf_counter()
    policy.rank(arms, 3000)
    took = time.perf_counter() - started
    over.set()
    thread.join()
    assert max(waits) < took / 2
