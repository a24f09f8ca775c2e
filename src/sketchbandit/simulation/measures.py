"""Measures beside the rewards of a policy: chance, droughts, calibration, and the errors of sketches."""

import json
import math
from bisect import bisect_right
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from sketchbandit import data
from sketchbandit.arrays import Matrix, Scalars
from sketchbandit.environment import Environment
from sketchbandit.errors import InputError
from sketchbandit.linalg import covariance_error, fd_bound, normalised, row_norms_sq
from sketchbandit.policy import Policy
from sketchbandit.simulation.specs import Spec
from sketchbandit.sketch import DyadicBlockSketch, FrequentDirections, Sketch


def chance(environment: Environment, rounds: int, points: int) -> Iterator[Scalars]:
    """What a uniform choice earns, the reference of every comparison, in rows like those of a policy.

    They hold the exact expectation over the choice, so that nothing is drawn.

    >>> from sketchbandit.environment import Classification
    >>> (row,) = chance(Classification(np.eye(4), [0, 1, 2, 3]), rounds=100, points=1)
    >>> row["reward"], row["regret"]
    (25.0, 75.0)
    """
    every = max(1, rounds // points)
    reward = regret = 0.0
    for number, drawn in enumerate(environment.rounds(rounds), start=1):
        arms = range(len(drawn.means))
        reward += float(np.mean([drawn.reward(arm) for arm in arms]))
        regret += float(np.mean([drawn.regret(arm) for arm in arms]))
        if number % every == 0 or number == rounds:
            held = dict.fromkeys(("bytes", "peak_bytes", "sketch_size", "sketch_rows"), 0)
            yield {
                "round": number,
                "reward": reward,
                "regret": regret,
                "seconds": 0.0,
                "warned": False,
                **held,
            }


DROUGHT = 500
"""Rounds without any reward that count as starving."""


def droughts(policy: Policy, environment: Environment, rounds: int) -> dict[str, float]:
    """Play, and count the rounds before the first reward, and the longest stretch of rounds without any."""
    first = longest = lasting = 0
    reward = regret = 0.0
    for number, drawn in enumerate(environment.rounds(rounds), start=1):
        chosen = policy.select(drawn.arms)
        earned = drawn.reward(chosen)
        policy.update(drawn.arm(chosen), earned)
        reward, regret = reward + earned, regret + drawn.regret(chosen)
        lasting = 0 if earned else lasting + 1
        first, longest = number if lasting == number else first, max(longest, lasting)
    return {"reward": reward, "regret": regret, "dry_at_first": first, "dry_at_most": longest}


EDGES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
"""Between the bins of the predictions."""
LEAST = 0.001
"""For the log loss, predictions are clipped to [LEAST, 1 - LEAST]."""


class Calibration:
    """Counts, predictions and clicks in each bin, and the log loss."""

    def __init__(self) -> None:
        self.log_loss = 0.0
        self._bins = [[0, 0.0, 0.0] for _ in range(len(EDGES) + 1)]

    def see(self, predicted: float, reward: float) -> None:
        """A prediction, and what came."""
        found = self._bins[bisect_right(EDGES, predicted)]
        found[0] += 1
        found[1] += predicted
        found[2] += reward
        chance = min(max(predicted, LEAST), 1.0 - LEAST)
        self.log_loss -= reward * math.log(chance) + (1.0 - reward) * math.log1p(-chance)

    def to_json(self) -> str:
        """For a column of the results: count, sum of the predictions and sum of the clicks of each bin."""
        return json.dumps(self._bins)


def calibration(policy: Policy, environment: Environment, rounds: int, points: int) -> Iterator[Scalars]:
    """Play, and compare the mean reward that was predicted of each arm chosen with the reward."""
    found, every = Calibration(), max(1, rounds // points)
    reward = regret = 0.0
    for number, drawn in enumerate(environment.rounds(rounds), start=1):
        chosen = policy.select(drawn.arms)
        arm, earned = drawn.arm(chosen), drawn.reward(chosen)
        found.see(float(policy.mean(arm)), earned)
        policy.update(arm, earned)
        reward, regret = reward + earned, regret + drawn.regret(chosen)
        if number % every == 0 or number == rounds:
            row = {"round": number, "reward": reward, "regret": regret, "log_loss": found.log_loss}
            yield {**row, "calibration": found.to_json()}


class Studied(NamedTuple):
    """A sketch, the paper's name for it, and the paper's bound on its error."""

    kind: Callable[..., Sketch]
    title: str
    bound_sign: str
    bound: Callable[[Spec, Matrix], float]


def _delta(contender: Spec, covariance: Matrix) -> float:
    """Delta_t of eq. (spectral error)."""
    spectrum = np.maximum(np.linalg.eigvalsh(covariance), 0.0)
    return fd_bound(spectrum, int(contender.get("size")))


SKETCHES = {
    "fd": Studied(FrequentDirections, title="FD", bound_sign="Δ", bound=_delta),
    "dbs": Studied(  # Thm. 1
        DyadicBlockSketch, title="DBS", bound_sign="2ε", bound=lambda dbs, _: 2.0 * float(dbs.get("epsilon"))
    ),
}


def matrix(environment: Spec, count: int, seed: int) -> Matrix:
    """``rows:data=gaussian,dim=500`` or ``rows:data=digits``: that many unit rows, in random order."""
    random = np.random.default_rng(seed)
    name = str(environment.get("data"))
    if name == "gaussian":
        rows = random.standard_normal((count, int(environment.get("dim", 500))))
    else:
        stored = data.load(name).features
        if not isinstance(stored, np.ndarray):
            raise InputError(f"{name} is sparse; its covariance would not fit: choose a dense data set")
        rows = stored.astype(np.float64)
        rows = rows[row_norms_sq(rows) > 0.0]
        rows = rows[random.permutation(len(rows))[:count]]
    return normalised(rows)


def approximation(
    environment: Spec, contender: Spec, count: int, *, seed: int, points: int
) -> Iterator[Scalars]:
    """Stream the matrix through the sketch; a row at each point."""
    rows = matrix(environment, count, seed)
    dim = rows.shape[1]
    studied = SKETCHES[contender.name]
    sketch = studied.kind(dim, **dict(contender.settings))
    covariance = np.zeros((dim, dim))
    every = max(1, len(rows) // points)
    for start in range(0, len(rows), every):
        block = rows[start : start + every]
        covariance += block.T @ block
        sketch.update(block)
        yield {
            "round": sketch.count,
            "error": covariance_error(covariance, sketch.rows),
            "certificate": sketch.error_bound,
            "bound": studied.bound(contender, covariance),
            "sketch_size": sketch.size,
            "sketch_rows": len(sketch.rows),
            "bytes": sketch.nbytes,
        }
