"""Writes the files of one version, and what they answer: for the test that later versions read them.

Run it with the sources of a release, once, and commit what it writes:

    PYTHONPATH=<clone of that release>/src python tests/files/write.py tests/files/<version>

It uses nothing that the oldest version kept here does not have, or asks first.
"""

import json
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import sketchbandit as sb

DIM, ARMS = 12, 5


def numbers(count: int, seed: int) -> Any:
    """Rows that every machine makes alike, whatever its generators."""
    i, j = np.arange(count)[:, np.newaxis] + 1.0, np.arange(DIM) + 1.0
    return np.sin(0.37 * i * j + 1.7 * seed * i) * 0.85**j


def reward_of(arm: Any) -> float:
    """What an arm pays: between 0 and 1, and at times 1 or 0 exactly."""
    return float(np.clip(0.5 + arm @ np.cos(np.arange(DIM)), 0.0, 1.0))


def sketches() -> dict[str, Any]:
    """One of each kind."""
    half = np.float32
    return {
        "sketch-exact": sb.ExactSketch(DIM),
        "sketch-frequent-directions": sb.FrequentDirections(DIM, size=4),
        "sketch-float32": sb.FrequentDirections(DIM, size=4, compensation=0.5, dtype=half),
        "sketch-dyadic": sb.DyadicBlockSketch(DIM, size=3, epsilon=0.5),
        "sketch-adaptive": sb.AdaptiveSketch(DIM, epsilon=0.5, size=3),
        "sketch-adaptive-horizon": sb.AdaptiveSketch(DIM, epsilon=0.5, size=3, horizon=200),
        "sketch-incremental-svd": sb.IncrementalSVD(DIM, size=4),
        "sketch-random-projection": sb.RandomProjection(DIM, size=4, seed=1),
    }


def policies() -> dict[str, Any]:
    """Every recipe, every rule, every way to scale, and what the version has besides."""
    theorem = sb.Confidence(noise=0.1, theta_norm=2.0, arm_norm=1.0, delta=0.05)
    made = {
        "adaptive": sb.adaptive(DIM, size=3, epsilon=0.5, seed=0),
        "adaptive-warming-up": sb.adaptive(DIM, size=3, epsilon=0.5, seed=9),
        "adaptive-plain": sb.adaptive(DIM, size=3, epsilon=0.5, scaling=None, intercept=False, beta=0.2),
        "oful": sb.oful(DIM, ridge=0.5, beta=theorem),
        "oful-columns": sb.oful(DIM, scaling="columns", intercept=True),
        "soful-rows": sb.soful(DIM, size=3, scaling="rows"),
        "cbscfd": sb.cbscfd(DIM, size=3),
        "dbslinucb": sb.dbslinucb(DIM, size=3, epsilon=0.5),
        "cbrap": sb.cbrap(DIM, size=4, seed=2),
        "thompson": sb.oful(DIM, explore=sb.Thompson(0.3, seed=3)),
        "inverse-gap": sb.oful(DIM, explore=sb.InverseGap(seed=4)),
        "epsilon-greedy": sb.soful(DIM, size=4, explore=sb.EpsilonGreedy(0.2, seed=5)),
        "greedy": sb.oful(DIM, explore=sb.Greedy()),
    }
    if hasattr(sb, "Logistic"):  # from 0.13 on
        made |= {
            "logistic": sb.oful(DIM, rewards=sb.Logistic()),
            "poisson": sb.soful(DIM, size=4, rewards=sb.Poisson()),
            "robust": sb.adaptive(DIM, size=3, epsilon=0.5, rewards=sb.Robust(scale=0.2), seed=6),
            "forgets": sb.adaptive(DIM, size=3, epsilon=0.5, forget=0.99, seed=7),
        }
    return made


def per_action() -> dict[str, Any]:
    """Models by action, with a rule that draws and with one that does not."""
    return {
        "per-action": sb.PerAction(["red", "green", 3], lambda: sb.oful(DIM)),
        "per-action-thompson": sb.PerAction(["a", "b"], lambda: sb.adaptive(DIM, size=3, seed=8)),
    }


def feed_sketch(sketch: Any, seed: int, rounds: int) -> list[int]:
    """Some rows, one, half of them, and the rest."""
    for rows in np.split(numbers(rounds, seed), [1, rounds // 2]):
        sketch.update(rows)
    return []


def describe_sketch(sketch: Any) -> dict[str, Any]:
    """What a sketch answers."""
    bound = sketch.error_bound
    return {
        "count": sketch.count,
        "mass": sketch.mass,
        "alpha": sketch.alpha if np.isfinite(sketch.alpha) else None,
        "error_bound": bound if np.isfinite(bound) else None,
        "applied": (sketch.gram() @ np.cos(np.arange(sketch.gram().shape[1]))).tolist(),
    }


def feed_policy(policy: Any, seed: int, rounds: int) -> list[int]:
    """Some rounds; what was chosen in the first twenty."""
    chosen = []
    for number in range(rounds):
        arms = numbers(ARMS, 100 * seed + number)
        choice = policy.select(arms)
        policy.update(arms[choice], reward=reward_of(arms[choice]))
        chosen.append(choice)
    return chosen[:20]


def describe_policy(policy: Any) -> dict[str, Any]:
    """What a policy answers."""
    arms = numbers(ARMS, 999)
    bound = policy.health().certificate
    return {
        "rounds": policy.rounds,
        "theta": policy.theta.tolist(),
        "mean": policy.mean(arms).tolist(),
        "ucb": policy.ucb(arms).tolist(),
        "certificate": bound if np.isfinite(bound) else None,
    }


def feed_models(models: Any, seed: int, rounds: int) -> list[Any]:
    """Some contexts; what was chosen for the first twenty."""
    chosen = []
    for number, context in enumerate(numbers(rounds, seed)):
        action = models.select(context)
        models.update(context, action, reward=reward_of((1 + number % 3) * context))
        chosen.append(action)
    return chosen[:20]


def describe_models(models: Any) -> dict[str, Any]:
    """What models by action answer."""
    context = numbers(1, 999)[0]
    return {
        "rounds": models.rounds,
        "actions": list(models.actions),
        "mean": models.mean(context).tolist(),
        "ucb": models.ucb(context).tolist(),
    }


Family = tuple[
    Callable[[], dict[str, Any]],  # what there is
    Callable[[Any, int, int], list[Any]],  # how it learns
    Callable[[Any], dict[str, Any]],  # what it answers
]
FAMILIES: dict[str, Family] = {
    "sketch": (sketches, feed_sketch, describe_sketch),
    "policy": (policies, feed_policy, describe_policy),
    "models": (per_action, feed_models, describe_models),
}
ROUNDS = 60


def write(folder: Path) -> None:
    """One file a thing, and ``answers.json``: what it says when it is saved, and after it has gone on."""
    warnings.simplefilter("ignore")  # sizes are small on purpose
    folder.mkdir(parents=True, exist_ok=True)
    lines = []
    for family, (make, feed, describe) in FAMILIES.items():
        for name, thing in make().items():
            feed(thing, 1, 2 if name.endswith("warming-up") else ROUNDS)
            thing.save(folder / f"{name}.safetensors")
            answers = {"family": family, "kind": thing.kind, "saved": describe(thing)}
            answers |= {"chosen": feed(thing, 2, ROUNDS), "later": describe(thing)}
            lines.append(f"{json.dumps(name)}: {json.dumps(answers)}")
    text = ",\n".join(lines)
    (folder / "answers.json").write_text(f"{{\n{text}\n}}\n", encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
