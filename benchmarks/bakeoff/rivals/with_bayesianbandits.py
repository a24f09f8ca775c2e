"""bayesianbandits: Thompson sampling with one of its regressors, shared by all arms."""

import importlib
from typing import Any

import numpy as np
from scipy import sparse

from benchmarks.bakeoff.rivals import shared

bayesianbandits: Any = importlib.import_module("bayesianbandits")


class Thompson(shared.SharedModel):
    """A draw of the weights for each choice, by the regressor's own ``sample``; a constant is appended."""

    def __init__(self, regressor: str, seed: int, **settings: Any) -> None:
        super().__init__()
        self._regressor, self._seed, self._settings = regressor, seed, settings

    def scores(self, arms: Any) -> Any:
        """One draw for all arms."""
        if not hasattr(self, "model"):
            make = getattr(bayesianbandits, self._regressor)
            self.model = make(**self._settings, sparse=sparse.issparse(arms), random_state=self._seed)
        return self.model.sample(_with_constant(arms))[0]

    def fit(self, arm: Any, reward: float) -> None:
        """One exact update."""
        self.model.partial_fit(_with_constant(arm), np.array([reward]))


def _with_constant(arms: Any) -> Any:
    if sparse.issparse(arms):
        return sparse.csc_array(sparse.hstack([arms, np.ones((arms.shape[0], 1))]), dtype=np.float64)
    return np.column_stack([arms, np.ones(len(arms))])


def make(rival: str, dim: int, seed: int, **settings: Any) -> Thompson:
    """By the name of the regressor."""
    del dim
    return Thompson(rival, seed, **settings)
