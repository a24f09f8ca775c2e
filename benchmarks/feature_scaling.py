"""What an intercept and a scaling cost: ``python -m benchmarks.feature_scaling``.

A round is a choice among 10 arms and an update. Each policy stands beside a plain one that does the same in
its space: the intercept beside arms as they are (in brackets: beside arms that have the constant already),
the scaling beside arms that were scaled before the clock started. Choices are compared first. All play the
same rounds from the same state, in turns; of each round the best turn counts, so that others who use the
machine matter little.
"""

import argparse
import copy
import time
import tracemalloc
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

import sketchbandit as sb

ARMS, WARM, TIMED, TURNS, SIZE = 10, 300, 100, 40, 50
DIMS = (57, 784, 5000)
RULES: dict[str, Callable[[], sb.Explore]] = {
    "UCB": lambda: sb.UCB(0.1),
    "Thompson": lambda: sb.Thompson(0.1, seed=0),
}
RECIPES: dict[str, Callable[..., Any]] = {
    "soful": lambda dim, **more: sb.soful(dim, size=SIZE, **more),
    "adaptive": sb.adaptive,
}
Sets = NDArray[np.float64]


class Contender(NamedTuple):
    """A policy, and the arms that it is given."""

    policy: Any
    sets: Sets


def main() -> None:
    """Print two tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.feature_scaling", description=__doc__)
    parser.add_argument("--dims", type=int, nargs="*", default=DIMS)
    parser.add_argument("--turns", type=int, default=TURNS, help="how often each plays; the best counts")
    options = parser.parse_args()
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", sb.SketchTooSmallWarning)
        print(
            f"{'d':>5} {'policy':9} {'rule':9} {'plain':>9} {'intercept':>10} {'scaling':>9}   rounds/s, cost"
        )
        for dim in options.dims:
            for recipe in RECIPES:
                if dim > 1000 and recipe == "adaptive":  # d² on rows like these
                    continue
                for rule in RULES:
                    _compare(dim, recipe, rule, options.turns)
        _many_arms()


def images(dim: int, rounds: int, seed: int = 0) -> tuple[Sets, NDArray[np.float64]]:
    """Sets of rows like those of images: of few patterns, most entries 0, none negative; and rewards."""
    random = np.random.default_rng(seed)
    patterns = np.maximum(random.standard_normal((40, dim)), 0.0)
    weights = np.square(random.standard_normal((rounds * ARMS, 40))) * 0.9 ** np.arange(40)
    rows = np.maximum(weights @ patterns - 0.8 * weights.sum(axis=1, keepdims=True), 0.0)
    rows += np.maximum(random.standard_normal(rows.shape) - 1.5, 0.0)
    rows /= np.sqrt(np.square(rows).sum(axis=1).mean())  # of length one in the mean
    rewards = np.tanh(rows @ random.standard_normal(dim))
    return rows.reshape(rounds, ARMS, dim), rewards.reshape(rounds, ARMS)


def _compare(dim: int, recipe: str, rule: str, turns: int) -> None:
    sets, rewards = images(dim, WARM + TIMED)
    scout = sb.oful(dim, scaling="columns", intercept=True)
    for arms in sets[:WARM]:
        scout.select(arms)
    known = scout.scaling
    assert known is not None
    constant = known.constant
    scaled = known.apply(sets.reshape(-1, dim)).reshape(*sets.shape[:2], -1)
    longer = np.concatenate([sets, np.full((*sets.shape[:2], 1), constant)], axis=2)

    def made(width: int, scaling: Any, intercept: Any) -> Any:
        return RECIPES[recipe](width, explore=RULES[rule](), scaling=scaling, intercept=intercept)

    contenders = {
        "plain": Contender(made(dim, None, False), sets),
        "intercept": Contender(made(dim, None, constant), sets),
        "plain, a column more": Contender(made(dim + 1, None, False), longer),
        "scaling": Contender(made(dim, known, constant), sets),
        "plain, scaled": Contender(made(dim + 1, None, False), scaled),
    }
    chosen = {name: _play(*contender, rewards, range(WARM)) for name, contender in contenders.items()}
    assert chosen["intercept"] == chosen["plain, a column more"], "the intercept chooses otherwise"
    assert chosen["scaling"] == chosen["plain, scaled"], "the scaling chooses otherwise"
    least = {name: np.full(TIMED, np.inf) for name in contenders}
    for _ in range(turns):
        for name, (policy, given) in contenders.items():
            np.minimum(least[name], _seconds(copy.deepcopy(policy), given, rewards), out=least[name])
    best = {name: float(seconds.sum()) for name, seconds in least.items()}
    rates = {name: TIMED / seconds for name, seconds in best.items()}
    intercept = best["intercept"] / best["plain"] - 1.0
    own = best["intercept"] / best["plain, a column more"] - 1.0
    scaling = best["scaling"] / best["plain, scaled"] - 1.0
    print(
        f"{dim:5} {recipe:9} {rule:9} {rates['plain']:9,.0f} {rates['intercept']:10,.0f} "
        f"{rates['scaling']:9,.0f}   intercept {intercept:+.1%} ({own:+.1%}), scaling {scaling:+.1%}",
        flush=True,
    )


def _play(policy: Any, sets: Sets, rewards: NDArray[np.float64], rounds: range) -> list[int]:
    chosen = []
    for t in rounds:
        index = policy.select(sets[t])
        policy.update(sets[t, index], float(rewards[t, index]))
        chosen.append(index)
    return chosen


def _seconds(policy: Any, sets: Sets, rewards: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of every round."""
    clock = [time.perf_counter()]
    for arms, paid in zip(sets[WARM:], rewards[WARM:], strict=True):
        index = policy.select(arms)
        policy.update(arms[index], float(paid[index]))
        clock.append(time.perf_counter())
    return np.diff(clock)


def _many_arms(count: int = 50_000, dim: int = 784) -> None:
    random = np.random.default_rng(0)
    arms = random.standard_normal((count, dim), dtype=np.float32)
    known = sb.Scaling.columns(np.full(dim, 0.1), np.full(dim, dim**-0.5), bound=0.1, constant=0.5)
    print(f"\n{count:,} float32 arms, d = {dim}: milliseconds of a choice, MB at most held while choosing")
    for rule, explore in RULES.items():
        policies = {
            "plain": sb.soful(dim, explore=explore()),
            "scaling": sb.soful(dim, explore=explore(), scaling=known, intercept=0.5),
        }
        best, peaks = dict.fromkeys(policies, float("inf")), {}
        for policy in policies.values():
            policy.update(arms[:500], np.tanh(arms[:500, 0]))
        for turn in range(8):
            for name, policy in policies.items():
                if not turn:
                    tracemalloc.start()
                start = time.perf_counter()
                policy.select(arms)
                best[name] = min(best[name], time.perf_counter() - start)
                if not turn:
                    peaks[name] = tracemalloc.get_traced_memory()[1]
                    tracemalloc.stop()
        print(
            f"{rule:9} plain {1e3 * best['plain']:6.1f} ms, {peaks['plain'] / 1e6:5.1f} MB;  "
            f"scaling {1e3 * best['scaling']:6.1f} ms, {peaks['scaling'] / 1e6:5.1f} MB;  "
            f"arms {arms.nbytes / 1e6:.0f} MB",
            flush=True,
        )


if __name__ == "__main__":
    main()
