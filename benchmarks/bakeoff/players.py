"""Who plays in this process: our policies, chance, and the classifier that knows all labels."""

import time
from typing import Any

import numpy as np
from scipy.special import logsumexp

import sketchbandit as sb


class PolicyPlayer:
    """A policy of ours. Its chance comes from the run's seed, so that a run repeats."""

    def __init__(self, policy: sb.Policy, seed: int) -> None:
        self._policy = policy
        self._random = np.random.default_rng(seed)
        self._waiting: dict[int, Any] = {}
        self._seconds = 0.0

    def choose(self, number: int, arms: Any) -> int:
        """Select; only that is timed."""
        start = time.perf_counter()
        chosen = int(self._policy.select(arms, random=self._random))
        self._seconds += time.perf_counter() - start
        self._waiting[number] = arms[[chosen]]
        return chosen

    def learn(self, number: int, reward: float) -> None:
        """Update; only that is timed."""
        arm = self._waiting.pop(number)
        start = time.perf_counter()
        self._policy.update(arm[0] if isinstance(arm, np.ndarray) else arm, reward)
        self._seconds += time.perf_counter() - start

    def cost(self) -> tuple[float, int]:
        """The policy counts its own arrays."""
        return self._seconds, self._policy.nbytes


class Uniform:
    """Chance, and nothing learned."""

    def __init__(self, seed: int) -> None:
        self._random = np.random.default_rng(seed)

    def choose(self, number: int, arms: Any) -> int:
        """Any arm."""
        del number
        return int(self._random.integers(arms.shape[0]))

    def learn(self, number: int, reward: float) -> None:
        """Nothing."""

    def cost(self) -> tuple[float, int]:
        """None."""
        return 0.0, 0


class Ceiling:
    """A classifier that was trained on every label of the data set: it plays what is likeliest the target."""

    def __init__(self, classifier: Any, target: int) -> None:
        self._classifier, self._target = classifier, target
        self._seconds = 0.0

    def choose(self, number: int, arms: Any) -> int:
        """The arm with the largest probability of the target's label."""
        del number
        start = time.perf_counter()
        scores = self._classifier.decision_function(arms)
        if scores.ndim == 1:  # of two labels the second has the score
            scores = np.column_stack([-scores, scores])
        chosen = int(np.argmax(scores[:, self._target] - logsumexp(scores, axis=1)))
        self._seconds += time.perf_counter() - start
        return chosen

    def learn(self, number: int, reward: float) -> None:
        """Nothing: it knows."""

    def cost(self) -> tuple[float, int]:
        """Its coefficients."""
        return self._seconds, int(self._classifier[-1].coef_.nbytes)
