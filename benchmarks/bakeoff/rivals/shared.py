"""What the rivals have in common: one linear model over the arms' features."""

import pickle
from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from scipy import sparse


class SharedModel(ABC):
    """Remembers the arm of every round until its reward comes."""

    model: Any

    def __init__(self) -> None:
        self._waiting: dict[int, Any] = {}

    def choose(self, number: int, arms: Any) -> int:
        """The arm with the best score; the first of equals."""
        chosen = int(np.argmax(self.scores(arms)))
        self._waiting[number] = arms[[chosen]]
        return chosen

    def learn(self, number: int, reward: float) -> None:
        """The reward of that round."""
        self.fit(self._waiting.pop(number), reward)

    @abstractmethod
    def scores(self, arms: Any) -> Any:
        """(K,), the best is played."""

    @abstractmethod
    def fit(self, arm: Any, reward: float) -> None:
        """One row and its reward."""

    def bytes(self) -> int:
        """The length of the pickled model."""
        return len(pickle.dumps(self.model))


def rows(arms: Any) -> list[tuple[list[int], list[float]]]:
    """Each arm as the indices and the values of its features: only those stored where arms are sparse."""
    if sparse.issparse(arms):
        bounds = zip(arms.indptr[:-1], arms.indptr[1:], strict=True)
        return [(arms.indices[a:b].tolist(), arms.data[a:b].tolist()) for a, b in bounds]
    every = list(range(arms.shape[1]))
    return [(every, arm.tolist()) for arm in arms]
