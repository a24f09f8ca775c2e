"""float32 arms, a catalogue of them, and many requests at once: ``python -m benchmarks.embeddings``.

Single-threaded BLAS. Answers are compared before anything is timed; contenders take turns, and the best of
five counts.
"""

import argparse
import time
import tracemalloc
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import sketchbandit as sb
from benchmarks.policy_rivals import TunedOFUL
from benchmarks.policy_speed import BETA, EPSILON, RIDGE, SIZE, gate, play
from benchmarks.policy_streams import Stream, classification, gaussian
from benchmarks.timing import TURNS, best_seconds, unit_rows

RECIPES: dict[str, Callable[[int, Any], Any]] = {
    "soful": lambda dim, dtype: sb.soful(dim, size=SIZE, ridge=RIDGE, beta=BETA, dtype=dtype),
    "cbscfd": lambda dim, dtype: sb.cbscfd(dim, size=SIZE, ridge=RIDGE, beta=BETA, dtype=dtype),
}


def main() -> None:
    """Print three tables."""
    argparse.ArgumentParser(prog="python -m benchmarks.embeddings", description=__doc__).parse_args()
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", sb.SketchTooSmallWarning)
        print(
            f"{'rounds/s':20} {'policy':10} {'float32':>9} {'float64':>9} {'ratio':>6} {'/ tuned OFUL':>13}"
        )
        for stream, slow in ((gaussian(784, 2000), 400), (gaussian(5000, 300), 40)):
            _rounds(stream, RECIPES, slow)
        images = classification(2000)
        horizon = len(images.arms)
        adaptive = {
            "adaptive": lambda dim, dtype: sb.adaptive(
                dim,
                epsilon=EPSILON,
                horizon=horizon,
                ridge=RIDGE,
                beta=BETA,
                dtype=dtype,
                scaling=None,
                intercept=False,
            )
        }
        _rounds(images, adaptive, 400)
        _catalogue(50_000, 768)
        _batch(256, 10, 64)


def _rounds(stream: Stream, recipes: dict[str, Callable[[int, Any], Any]], slow: int) -> None:
    narrow = stream._replace(arms=[np.asarray(arms, dtype=np.float32) for arms in stream.arms])
    wide = stream._replace(arms=[np.asarray(arms, dtype=np.float64) for arms in narrow.arms])
    for name, make in recipes.items():
        for given, dtype in ((narrow, np.float32), (wide, np.float64)):
            gate(partial(_made, make, dtype), given, min(len(given.arms) - 1, 260))
        best = {"float32": 0.0, "float64": 0.0, "tuned": 0.0}
        for _ in range(TURNS):
            for key, given, dtype in (("float32", narrow, np.float32), ("float64", wide, np.float64)):
                policy = make(stream.dim, dtype)
                best[key] = max(best[key], len(given.arms) / play(policy, given, len(given.arms))[0])
            tuned = TunedOFUL(stream.dim, RIDGE, BETA)
            best["tuned"] = max(best["tuned"], slow / play(tuned, wide, slow)[0])
        ratio, faster = best["float32"] / best["float64"], best["float32"] / best["tuned"]
        print(
            f"{stream.name:20} {name:10} {best['float32']:9,.0f} {best['float64']:9,.0f} {ratio:6.2f} "
            f"{faster:13.1f}",
            flush=True,
        )


def _made(make: Callable[[int, Any], Any], dtype: Any, dim: int) -> Any:
    return make(dim, dtype)


def _catalogue(count: int, dim: int) -> None:
    """The best of many embeddings, beside the product that any way of choosing needs."""
    arms = unit_rows(count, dim).astype(np.float32)
    print(f"\n{count:,} float32 arms of {dim} numbers: milliseconds, and transient MB")
    for dtype in (np.float32, np.float64):
        policy = sb.soful(dim, size=SIZE, ridge=RIDGE, beta=BETA, dtype=dtype)
        theta = unit_rows(1, dim, seed=1)[0]
        for arm in arms[:200].astype(dtype):
            policy.update(arm, float(arm @ theta))
        scores = policy.ucb(arms[:500])
        assert policy.select(arms[:500]) == scores.argmax(), "not the best arm"
        assert policy.top(arms[:500], 10).tolist() == np.argsort(-scores, kind="stable")[:10].tolist()
        learned = policy.theta.astype(np.float32)
        seconds = best_seconds(
            {
                "arms @ theta": (np.matmul, (arms, learned)),
                "select": (policy.select, (arms,)),
                "top 10": (policy.top, (arms, 10)),
            }
        )
        product = seconds["arms @ theta"]
        held = {
            "select": _transient(policy.select, arms),
            "top 10": _transient(policy.top, arms, 10),
        }
        for name, took in seconds.items():
            memory = f"{held[name] / 1e6:8.1f} MB" if name in held else ""
            times = f"{1e3 * took:8.1f} {took / product:6.2f} times"
            print(f"  {np.dtype(dtype).name:8} policy  {name:14} {times}{memory}")


def _transient(call: Callable[..., Any], *arguments: Any) -> int:
    """The most that is held besides what was before."""
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        call(*arguments)
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


def _batch(sets: int, each: int, dim: int) -> None:
    """``select_many`` beside a loop of ``select``."""
    print(f"\n{sets} sets of {each} arms of {dim} numbers: microseconds a set")
    batch = np.random.default_rng(0).standard_normal((sets, each, dim)) / np.sqrt(dim)
    for name, policy in (
        ("oful", sb.oful(dim, beta=BETA)),
        ("adaptive", sb.adaptive(dim, beta=BETA, scaling=None, intercept=False)),
        ("soful l = 10", sb.soful(dim, size=10, beta=BETA)),
        ("cbrap l = 10", sb.cbrap(dim, size=10, beta=BETA)),
    ):
        for arms in batch[:100]:
            policy.update(arms[0], float(arms[0, 0]))
        loop = partial(_one_by_one, policy, batch)
        assert policy.select_many(batch).tolist() == loop(), "other choices"
        taken = _repeated({"loop": loop, "select_many": partial(policy.select_many, batch)})
        ratio = taken["loop"] / taken["select_many"]
        print(
            f"  {name:14} loop {1e6 * taken['loop'] / sets:6.2f}   select_many "
            f"{1e6 * taken['select_many'] / sets:6.2f}   {ratio:5.2f} times as fast"
        )


def _one_by_one(policy: Any, batch: Any) -> list[int]:
    return [policy.select(arms) for arms in batch]


def _repeated(calls: dict[str, Callable[[], Any]]) -> dict[str, float]:
    best = dict.fromkeys(calls, float("inf"))
    for _ in range(20 * TURNS):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            best[name] = min(best[name], time.perf_counter() - start)
    return best


if __name__ == "__main__":
    main()
