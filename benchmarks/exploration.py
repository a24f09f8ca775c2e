"""What exploration costs: ``python -m benchmarks.exploration``.

First the rules beside UCB on the same sketch, then our Thompson sampling beside that of other packages
(``pip install bayesianbandits contextualbandits river``; what is missing is said and left out).
Single-threaded BLAS, the same stream for all. Posteriors are compared before anything is timed; the best of
several turns counts.
"""

import argparse
import importlib.util
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import sketchbandit as sb
from benchmarks.policy_streams import Stream, gaussian
from benchmarks.thompson_rivals import BayesianBandits, ContextualBandits, River
from benchmarks.timing import TURNS, unit_rows

RIDGE, SCALE, SIZE, ARMS = 1.0, 0.1, 50, 10
RANK = 40  # of the arms beside the rivals: a sketch of size 50 keeps them exactly
RULES: dict[str, Callable[[], sb.Explore]] = {
    "UCB": lambda: sb.UCB(SCALE),
    "UCB, floor 0.01": lambda: sb.UCB(SCALE, floor=0.01, seed=0),
    "Thompson": lambda: sb.Thompson(SCALE, seed=0),
    "InverseGap": lambda: sb.InverseGap(10.0, growth=0.5, seed=0),
    "EpsilonGreedy": lambda: sb.EpsilonGreedy(0.05, seed=0),
    "Greedy": sb.Greedy,
}
RIVALS: dict[str, tuple[Any, int]] = {  # and how many rounds are timed
    "bayesianbandits": (BayesianBandits, 40),
    "contextualbandits": (ContextualBandits, 60),
    "river": (River, 10),
}


def main() -> None:
    """Print two tables."""
    argparse.ArgumentParser(prog="python -m benchmarks.exploration", description=__doc__).parse_args()
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", sb.SketchTooSmallWarning)
        _rules(gaussian(784, 2000))
        _rules(gaussian(5000, 300))
        _thompson(784)


def _rules(stream: Stream) -> None:
    print(f"\n{stream.name}, soful of size {SIZE}, {ARMS} arms: rounds/s, and beside UCB")
    best = dict.fromkeys(RULES, 0.0)
    for _ in range(TURNS):
        for name, rule in RULES.items():
            policy = sb.soful(stream.dim, size=SIZE, ridge=RIDGE, explore=rule())
            best[name] = max(best[name], _rate(policy, stream.arms, stream.rewards))
    for name, rate in best.items():
        print(f"{name:18} {rate:9,.0f} {rate / best['UCB']:6.2f}", flush=True)


def _rate(policy: Any, sets: Any, rewards: Any) -> float:
    start = time.perf_counter()
    for arms, paid in zip(sets, rewards, strict=True):
        index = policy.select(arms)
        policy.update(arms[index], float(paid[index]))
    return len(sets) / (time.perf_counter() - start)


def _thompson(dim: int) -> None:
    rounds, random = 600, np.random.default_rng(0)
    basis = np.linalg.qr(random.standard_normal((dim, RANK)))[0].T
    sets = [rows @ basis for rows in unit_rows(rounds * ARMS, RANK).reshape(rounds, ARMS, RANK)]
    theta = unit_rows(1, RANK, seed=1)[0] @ basis
    rewards = [arms @ theta for arms in sets]
    print(f"\nThompson sampling, d = {dim}, arms of rank {RANK}: rounds/s, ours as a multiple")
    ours: dict[str, Callable[[], Any]] = {
        f"soful, size {SIZE}": lambda: sb.soful(dim, size=SIZE, ridge=RIDGE, explore=RULES["Thompson"]()),
        "adaptive": lambda: sb.adaptive(
            dim, ridge=RIDGE, explore=RULES["Thompson"](), scaling=None, intercept=False
        ),
        "oful": lambda: sb.oful(dim, ridge=RIDGE, explore=RULES["Thompson"]()),
    }
    rates = {name: max(_rate(make(), sets, rewards) for _ in range(TURNS)) for name, make in ours.items()}
    for name, rate in rates.items():
        print(f"{'sketchbandit ' + name:28} {rate:9,.0f}")
    for name, (make, timed) in RIVALS.items():
        if importlib.util.find_spec(make.package) is None:
            print(f"{name:28} is not installed")
            continue
        _compare_posteriors(name, make, ours, sets, rewards)
        rival = make(dim, RIDGE, SCALE)
        for arms, paid in zip(sets[:5], rewards[:5], strict=True):
            rival.update(arms[rival.select(arms)], float(paid[0]))
        rate = max(_rate(rival, sets[5 : 5 + timed], rewards[5 : 5 + timed]) for _ in range(3))
        beside = ", ".join(f"{label} {other / rate:,.0f}x" for label, other in rates.items())
        print(f"{name:28} {rate:9,.1f}   {beside}", flush=True)


def _compare_posteriors(
    name: str, make: Any, ours: dict[str, Callable[[], Any]], sets: Any, rewards: Any
) -> None:
    """The same rewards, the same means and variances."""
    rival = make(sets[0].shape[1], RIDGE, SCALE)
    policies = {label: build() for label, build in ours.items()}
    for arms, paid in zip(sets[:8], rewards[:8], strict=True):
        for learner in (rival, *policies.values()):
            learner.update(arms[0], float(paid[0]))
    means, variances = rival.posterior(sets[9])
    for label, policy in policies.items():
        same = np.allclose(policy.mean(sets[9]), means, atol=1e-8)
        assert same, f"{label} and {name} have other means"
        widths = SCALE * policy.width(sets[9])
        assert np.allclose(np.square(widths), variances, atol=1e-8), f"{label} and {name}: other variances"


if __name__ == "__main__":
    main()
