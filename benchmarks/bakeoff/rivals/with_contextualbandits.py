"""contextualbandits: the linear regression inside its LinUCB and LinTS, shared by all arms."""

import importlib
from typing import Any

import numpy as np
from scipy import sparse

from benchmarks.bakeoff.rivals import shared

linreg: Any = importlib.import_module("contextualbandits.linreg")


class Linear(shared.SharedModel):
    """``LinearRegression`` of ``contextualbandits.linreg``, with its own bound.

    LinTS is as with ``sample_from="ci"``: its other way, ``predict_thompson``, takes the precision for the
    covariance, and plays nearly at random.
    """

    def __init__(self, rival: str, seed: int, strength: float, **settings: Any) -> None:
        super().__init__()
        self._rival, self._strength = rival, strength
        self._random = np.random.default_rng(seed)
        self.model = linreg.LinearRegression(**settings)

    def choose(self, number: int, arms: Any) -> int:
        """As the others; it knows sparse matrices, not sparse arrays."""
        return super().choose(number, sparse.csr_matrix(arms) if sparse.issparse(arms) else arms)

    def scores(self, arms: Any) -> Any:
        """Upper confidence bounds, or draws; chance before the first reward, as it has it."""
        if not self.model.is_fitted_:
            return self._random.random(arms.shape[0])
        if self._rival == "LinUCB":
            return self.model.predict_ucb(arms, self._strength)
        drawn = self._random.normal(size=arms.shape[0], scale=self._strength)
        return self.model.predict_ucb(arms, drawn)

    def fit(self, arm: Any, reward: float) -> None:
        """One exact update."""
        self.model.partial_fit(arm, np.array([reward]))


def make(rival: str, dim: int, seed: int, **settings: Any) -> Linear:
    """LinUCB or LinTS."""
    del dim
    return Linear(rival, seed, **settings)
