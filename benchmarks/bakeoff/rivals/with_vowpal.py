"""Vowpal Wabbit: one example for each arm, built without text; its own constant, its own defaults.

Zeros are left out, as its text format leaves them out: given, each would slow its learning down.
"""

import importlib
from typing import Any

import numpy as np
from scipy import sparse

vw: Any = importlib.import_module("vowpal_wabbit_next")


class VowpalWabbit:
    """``--cb_explore_adf`` with the given options; actions are drawn from the probabilities it returns."""

    def __init__(self, seed: int, options: str) -> None:
        self._workspace = vw.Workspace(
            ["--cb_explore_adf", "--quiet", "--random_seed", str(seed), *options.split()]
        )
        self._random = np.random.default_rng(seed)
        self._waiting: dict[int, tuple[Any, int, float]] = {}

    def choose(self, number: int, arms: Any) -> int:
        """Draw from the distribution that comes back."""
        examples = [self._example(indices, values) for indices, values in self._features(arms)]
        actions, weights = zip(*self._workspace.predict_one(examples), strict=True)
        chances = np.array(weights, dtype=np.float64)
        drawn = int(self._random.choice(len(actions), p=chances / chances.sum()))
        self._waiting[number] = examples, actions[drawn], weights[drawn]
        return int(actions[drawn])

    def learn(self, number: int, reward: float) -> None:
        """A cost is the reward with the other sign."""
        examples, chosen, chance = self._waiting.pop(number)
        examples[chosen].set_label(vw.CBLabel(label=(0, -reward, chance)))
        self._workspace.learn_one(examples)

    def bytes(self) -> int:
        """The table of weights."""
        return int(self._workspace.weights().nbytes)

    def _features(self, arms: Any) -> Any:
        if sparse.issparse(arms):
            indices, values = arms.indices.astype(np.uint64), arms.data.astype(np.float32)
            bounds = zip(arms.indptr[:-1], arms.indptr[1:], strict=True)
            return [(indices[start:stop], values[start:stop]) for start, stop in bounds]
        kept = [np.flatnonzero(values) for values in arms]
        return [
            (places.astype(np.uint64), values[places])
            for places, values in zip(kept, arms.astype(np.float32), strict=True)
        ]

    def _example(self, indices: Any, values: Any) -> Any:
        example = vw.Example()
        example["f"].push_many_features(indices, values)
        example.set_label(vw.CBLabel())
        return example


def make(rival: str, dim: int, seed: int, **settings: Any) -> VowpalWabbit:
    """The options say which."""
    del rival, dim
    return VowpalWabbit(seed, **settings)
