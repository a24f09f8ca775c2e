"""coba: its LinUCB and LinTS learners, with actions given by their features and no context."""

import importlib
import pickle
from typing import Any

from scipy import sparse

from benchmarks.bakeoff.rivals import shared

learners: Any = importlib.import_module("coba.learners")


class Coba:
    """A learner of coba; it draws the action itself."""

    def __init__(self, learner: str, seed: int, **settings: Any) -> None:
        self._learner = getattr(learners, learner)(seed=seed, **settings)
        self._waiting: dict[int, tuple[Any, float]] = {}

    def choose(self, number: int, arms: Any) -> int:
        """What ``predict`` says, found again among the actions."""
        actions = _actions(arms)
        action, chance = self._learner.predict(None, actions)[:2]
        self._waiting[number] = action, chance
        return next(index for index, one in enumerate(actions) if one is action)

    def learn(self, number: int, reward: float) -> None:
        """One reward."""
        action, chance = self._waiting.pop(number)
        self._learner.learn(None, action, reward, chance)

    def bytes(self) -> int:
        """The length of the pickled arrays that it holds."""
        return sum(
            len(pickle.dumps(part)) for part in vars(self._learner).values() if hasattr(part, "nbytes")
        )


def _actions(arms: Any) -> list[Any]:
    if sparse.issparse(arms):
        return [{str(i): v for i, v in zip(*row, strict=True)} for row in shared.rows(arms)]
    return [tuple(values) for _, values in shared.rows(arms)]


def make(rival: str, dim: int, seed: int, **settings: Any) -> Coba:
    """By the name of the learner."""
    del dim
    return Coba(rival, seed, **settings)
