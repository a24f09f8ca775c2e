"""Rounds per second and peak bytes of every policy beside its rivals, on the same streams in the same run."""

import inspect
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

import sketchbandit as sb
from benchmarks.policy_rivals import (
    Contender,
    TextbookOFUL,
    TunedOFUL,
    VowpalWabbit,
    has_vowpal_wabbit,
)
from benchmarks.policy_streams import Stream, classification, farm_ads, gaussian
from benchmarks.timing import TURNS

Make = Callable[[int], Contender]

SIZE, EPSILON, RIDGE, BETA = 50, 8.0, 1.0, 0.1
PLAIN: dict[str, Any] = (
    {"scaling": None, "intercept": False} if "scaling" in inspect.signature(sb.adaptive).parameters else {}
)
"""Arms as they are: what ``adaptive`` did before it had a choice, and ``versions`` plays that too."""
OURS: dict[str, Callable[[int], Any]] = {
    "oful": lambda dim: sb.oful(dim, ridge=RIDGE, beta=BETA),
    "cbrap": lambda dim: sb.cbrap(dim, size=SIZE, ridge=RIDGE, beta=BETA),
    "soful": lambda dim: sb.soful(dim, size=SIZE, ridge=RIDGE, beta=BETA),
    "cbscfd": lambda dim: sb.cbscfd(dim, size=SIZE, ridge=RIDGE, beta=BETA),
    "dbslinucb": lambda dim: sb.dbslinucb(dim, size=SIZE, epsilon=EPSILON, ridge=RIDGE, beta=BETA),
    "adaptive": lambda dim: sb.adaptive(dim, epsilon=EPSILON, horizon=2000, ridge=RIDGE, beta=BETA, **PLAIN),
}
_SQUARE = ("oful", "dbslinucb", "adaptive")  # d² on a flat spectrum
TUNED, TEXTBOOK, WABBIT = "tuned OFUL", "textbook OFUL", "vw-next squarecb"


class Speed(NamedTuple):
    """One contender on one stream."""

    stream: str
    contender: str
    rounds_per_second: float
    peak_mb: float
    mean_reward: float


def rivals() -> dict[str, Make]:
    """Those that are installed."""
    found: dict[str, Make] = {
        TUNED: lambda dim: TunedOFUL(dim, RIDGE, BETA),
        TEXTBOOK: lambda dim: TextbookOFUL(dim, RIDGE, BETA),
    }
    if has_vowpal_wabbit():
        found[WABBIT] = VowpalWabbit
    return found


def play(contender: Contender, stream: Stream, rounds: int, warm_up: int = 0) -> tuple[float, float, int]:
    """Seconds in select and update after ``warm_up`` rounds, mean reward, and the largest model seen."""
    seconds = reward = 0.0
    peak = 0
    clock = time.perf_counter
    for t in range(rounds):
        arms = stream.arms[t]
        start = clock()
        chosen = contender.select(arms)
        arm = arms[[chosen]] if sparse.issparse(arms) else arms[chosen]
        gained = float(stream.rewards[t][chosen])
        contender.update(arm, gained)
        seconds += clock() - start if t >= warm_up else 0.0
        reward += gained
        if t % 16 == 0:
            peak = max(peak, contender.nbytes)
    return seconds, reward / rounds, peak


def gate(make: Callable[[int], Any], stream: Stream, rounds: int) -> None:
    """Every score must be that of a dense solve of the same system, before anything is timed."""
    policy = make(stream.dim)
    b = np.zeros(stream.dim)
    for t in range(rounds):
        arms = stream.arms[t]
        chosen = policy.select(arms)
        reward = float(stream.rewards[t][chosen])
        arm = arms[[chosen]] if sparse.issparse(arms) else arms[chosen]
        policy.update(arm, reward)
        b += reward * (arm.toarray()[0] if sparse.issparse(arms) else arm)
    arms = stream.arms[rounds]
    dense = arms.toarray().astype(float) if sparse.issparse(arms) else arms
    if isinstance(policy, sb.ProjectedLinUCB):
        dense, b = dense @ policy._projection, policy.dump()[1]["inner.estimate.b"]
    rho = policy.ridge + policy.sketch.alpha
    if dense.shape[1] <= 1000:
        matrix = policy.sketch.covariance() + policy.ridge * np.eye(dense.shape[1])
        theta, images_of = np.linalg.solve(matrix, b), np.linalg.solve(matrix, dense.T)
    else:  # the same by Woodbury's identity, in float64
        rows = policy.sketch.rows.astype(float)
        small = rows @ rows.T + rho * np.eye(len(rows))
        theta = (b - rows.T @ np.linalg.solve(small, rows @ b)) / rho
        images_of = (dense.T - rows.T @ np.linalg.solve(small, rows @ dense.T)) / rho
    scores = dense @ theta + policy.radius * np.sqrt(np.vecdot(dense, images_of.T))
    tolerance = 1e-8 if policy.dtype == np.float64 else 1e-4
    error = float(np.abs(policy.ucb(arms) - scores).max())
    assert error <= tolerance * np.abs(scores).max(), f"{stream.name}: scores off by {error:g}"
    assert scores[policy.select(arms)] >= scores.max() - tolerance, f"{stream.name}: not the best arm"


def speeds(*, quick: bool = False) -> Iterator[Speed]:
    """Check the scores, then time every contender, taking turns."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sb.SketchTooSmallWarning)
        shorter = 10 if quick else 1
        yield from _dense(gaussian(57, 6000 // shorter))
        yield from _dense(gaussian(784, 2000 // shorter))
        yield from _dense(gaussian(5000, 300 // shorter), slow_rounds=40 // shorter)
        yield from _dense(classification(2000 // shorter))
        ads = farm_ads(600 // shorter)
        if ads is not None:
            yield from _sparse(ads)


def _dense(stream: Stream, slow_rounds: int | None = None) -> Iterator[Speed]:
    """``slow_rounds``: how many rounds the d² contenders get, whose rounds all cost the same."""
    ours = {n: make for n, make in OURS.items() if slow_rounds is None or n not in _SQUARE}
    rounds = len(stream.arms)
    for make in ours.values():
        gate(make, stream, min(rounds - 1, 260))
    others = rivals()
    limits = dict.fromkeys((TUNED, TEXTBOOK), slow_rounds or rounds)
    yield from _race(stream, {**others, **ours}, limits)


def _sparse(stream: Stream) -> Iterator[Speed]:
    """d² does not fit: the sketches in float32, and Vowpal Wabbit."""
    contenders: dict[str, Callable[[int], Any]] = {
        "soful float32": lambda dim: sb.soful(dim, size=SIZE, ridge=RIDGE, beta=BETA, dtype=np.float32),
        "cbscfd float32": lambda dim: sb.cbscfd(dim, size=SIZE, ridge=RIDGE, beta=BETA, dtype=np.float32),
    }
    for make in contenders.values():
        gate(make, stream, min(len(stream.arms) - 1, 120))
    wabbit = {n: make for n, make in rivals().items() if n == WABBIT}
    yield from _race(stream, {**wabbit, **contenders}, {})


def _race(stream: Stream, contenders: dict[str, Make], limits: dict[str, int]) -> Iterator[Speed]:
    best: dict[str, tuple[float, float, int]] = {}
    for _ in range(min(TURNS, 3)):
        for name, make in contenders.items():
            rounds = limits.get(name, len(stream.arms))
            seconds, reward, peak = play(make(stream.dim), stream, rounds)
            rate = rounds / seconds
            if name not in best or rate > best[name][0]:
                best[name] = (rate, reward, peak)
    for name, (rate, reward, peak) in best.items():
        yield Speed(stream.name, name, rate, peak / 1e6, reward)


def many_arms(count: int = 1000, *, rounds: int = 500) -> dict[str, float]:
    """Microseconds of ``select`` among many images after some rounds, and of arms @ theta alone."""
    stream = classification(rounds)
    policy = sb.soful(stream.dim, size=SIZE, ridge=RIDGE, beta=BETA)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sb.SketchTooSmallWarning)
        for arms, rewards in zip(stream.arms, stream.rewards, strict=True):
            chosen = policy.select(arms)
            policy.update(arms[chosen], float(rewards[chosen]))
    arms = np.concatenate(stream.arms)[-count:]
    theta = policy.theta
    assert policy.select(arms) == int(np.argmax(policy.ucb(arms)))
    timed: dict[str, Callable[[], Any]] = {
        "arms @ theta": lambda: arms @ theta,
        "select": lambda: policy.select(arms),
    }
    best = dict.fromkeys(timed, float("inf"))
    for _ in range(TURNS):
        for name, call in timed.items():
            start = time.perf_counter()
            for _ in range(50):
                call()
            best[name] = min(best[name], (time.perf_counter() - start) / 50 * 1e6)
    return best
