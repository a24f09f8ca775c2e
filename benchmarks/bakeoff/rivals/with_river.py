"""river: its regressions on one dictionary for each arm, shared by all arms."""

import importlib
import random
from typing import Any

from benchmarks.bakeoff.rivals import shared

linear_model: Any = importlib.import_module("river.linear_model")
preprocessing: Any = importlib.import_module("river.preprocessing")


class River(shared.SharedModel):
    """What has features in common is read from dictionaries; zeros of dense arms are given too."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._random = random.Random(seed)  # noqa: S311  river's own generator

    def fit(self, arm: Any, reward: float) -> None:
        """One step."""
        self.model.learn_one(_dictionaries(arm)[0], reward)


class Bayesian(River):
    """``BayesianLinearRegression``: mean + deviation, as its LinUCBDisjoint has it; a constant is added."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.model = linear_model.BayesianLinearRegression()

    def scores(self, arms: Any) -> Any:
        """Upper bounds of the predictive distributions."""
        found = [self.model.predict_one({**x, "constant": 1.0}, with_dist=True) for x in _dictionaries(arms)]
        return [one.mu + one.sigma for one in found]

    def fit(self, arm: Any, reward: float) -> None:
        """One exact update."""
        self.model.learn_one({**_dictionaries(arm)[0], "constant": 1.0}, reward)


class Scaled(River):
    """``StandardScaler | LinearRegression``, river's first example, with a share of random choices."""

    def __init__(self, seed: int, *, epsilon: float) -> None:
        super().__init__(seed)
        self._epsilon = epsilon
        self.model = preprocessing.StandardScaler() | linear_model.LinearRegression()

    def scores(self, arms: Any) -> Any:
        """The predictions, or chance."""
        if self._random.random() < self._epsilon:
            return [self._random.random() for _ in range(arms.shape[0])]
        return [self.model.predict_one(x) for x in _dictionaries(arms)]


def _dictionaries(arms: Any) -> list[dict[Any, float]]:
    return [dict(zip(*row, strict=True)) for row in shared.rows(arms)]


def make(rival: str, dim: int, seed: int, **settings: Any) -> River:
    """Bayesian or Scaled."""
    del dim
    kinds: dict[str, Any] = {"Bayesian": Bayesian, "Scaled": Scaled}
    made: River = kinds[rival](seed, **settings)
    return made
