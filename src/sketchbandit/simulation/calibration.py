"""How good the predictions of clicks are: log loss, and the click rate of what was predicted alike."""

import json
import math
from bisect import bisect_right
from collections.abc import Iterator

from sketchbandit.arrays import Scalars
from sketchbandit.environment import Environment
from sketchbandit.policy import Policy

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


def measure(policy: Policy, environment: Environment, rounds: int, points: int) -> Iterator[Scalars]:
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
