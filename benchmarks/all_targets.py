"""Regret and cost together: every label in turn the target, each contender with the ridge that suits it."""

import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

import sketchbandit as sb
from benchmarks.policy_rivals import Contender, TunedOFUL
from benchmarks.policy_speed import BETA, TUNED, gate, play
from benchmarks.policy_streams import Stream, of_environment

ROUNDS = 2000
RIDGES = (0.02, 0.2, 2.0, 20.0)

Make = Callable[[int, float], Any]


def _adaptive(epsilon: float, horizon: int | None) -> Make:
    return lambda dim, ridge: sb.adaptive(
        dim,
        epsilon=epsilon,
        horizon=horizon,
        ridge=ridge,
        beta=BETA,
        scaling=None,
        intercept=False,
    )


OURS: dict[str, Make] = {
    "oful": lambda dim, ridge: sb.oful(dim, ridge=ridge, beta=BETA),
    "cbscfd, l = 50": lambda dim, ridge: sb.cbscfd(dim, size=50, ridge=ridge, beta=BETA),
    "dbslinucb, ε = 8": lambda dim, ridge: sb.dbslinucb(dim, size=50, epsilon=8.0, ridge=ridge, beta=BETA),
    "adaptive, ε = 8": _adaptive(8.0, ROUNDS),
    "adaptive, ε = 4": _adaptive(4.0, ROUNDS),
    "adaptive anytime, ε = 8": _adaptive(8.0, None),
}


class Score(NamedTuple):
    """One contender on one data set: means over the targets."""

    data: str
    contender: str
    ridge: float
    regret: float
    seconds: float
    peak_kib: float


def scores() -> Iterator[Score]:
    """Check the scores, then play; of each contender the ridge with the least mean regret."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sb.SketchTooSmallWarning)
        yield from _scores()


def _scores() -> Iterator[Score]:
    for name, environments in _races():
        found: dict[str, dict[float, list[tuple[float, float, int]]]] = {}
        for turn, environment in enumerate(environments):
            stream = of_environment(name, environment, ROUNDS)
            if not turn:
                for make in OURS.values():
                    gate(_with_ridge_one(make), stream, 260)
            for contender, make in {TUNED: _tuned, **OURS}.items():
                for ridge in RIDGES:
                    played = _played(make(stream.dim, ridge), stream)
                    found.setdefault(contender, {}).setdefault(ridge, []).append(played)
        for contender, by_ridge in found.items():
            means = {ridge: np.mean(played, axis=0) for ridge, played in by_ridge.items()}
            best = min(means, key=lambda ridge: means[ridge][0])
            regret, seconds, peak = means[best]
            yield Score(name, contender, best, regret, seconds, peak / 1024.0)


def _with_ridge_one(make: Make) -> Callable[[int], Any]:
    return lambda dim: make(dim, 1.0)


def _tuned(dim: int, ridge: float) -> Contender:
    return TunedOFUL(dim, ridge, BETA)


def _played(contender: Contender, stream: Stream) -> tuple[float, float, int]:
    """Regret, seconds and the largest model seen. All arms of a round share its noise, which cancels."""
    seconds, reward, peak = play(contender, stream, len(stream.arms))
    best = sum(float(rewards.max()) for rewards in stream.rewards)
    return best - reward * len(stream.arms), seconds, peak


def _races() -> Iterator[tuple[str, Iterator[sb.Environment]]]:
    yield "power-law", (sb.GaussianArms(spectrum="power-law", seed=seed) for seed in range(3))
    for name in ("mnist", "cnae-9"):
        if sb.data.find(name).here:
            data = sb.data.load(name)
            first = sb.Classification(data.features, data.labels)
            yield name, (first.reseeded(label) for label in range(data.classes))
