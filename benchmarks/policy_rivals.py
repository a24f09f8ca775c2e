"""OFUL as people write it, OFUL as well as numpy allows, and Vowpal Wabbit."""

import importlib.util
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg.blas import dger

Matrix = NDArray[np.float64]


class Contender(Protocol):
    """What is timed."""

    def select(self, arms: Any) -> int:
        """An arm."""

    def update(self, arm: Any, reward: float) -> None:
        """Learn from it."""

    @property
    def nbytes(self) -> int:
        """Bytes of the model."""


class TunedOFUL:
    """The inverse only, updated in place by one BLAS call; the chosen arm's projection is used twice.

    No checks, no copies, nothing that is not arithmetic: the fastest OFUL that numpy and scipy allow.
    (A C-ordered inverse makes the product with the arms a fifth faster than a Fortran-ordered one, and is
    symmetric, so that dger can take its transpose; dsyr would halve the update but needs the slower dsymm.)
    """

    def __init__(self, dim: int, ridge: float = 1.0, beta: float = 0.1) -> None:
        self.inverse = np.eye(dim) / ridge
        self.theta = np.zeros(dim)
        self.beta = beta
        self.projection = self.theta

    def select(self, arms: Matrix) -> int:
        """One matrix product, three vector operations."""
        projections = arms @ self.inverse
        scores = np.vecdot(projections, arms)
        np.sqrt(scores, out=scores)
        scores *= self.beta
        scores += arms @ self.theta
        index = int(scores.argmax())
        self.projection = projections[index]
        return index

    def update(self, arm: Matrix, reward: float) -> None:
        """Sherman-Morrison for the inverse and for theta."""
        k = self.projection
        scale = 1.0 / (1.0 + k.dot(arm))
        self.theta += (scale * (reward - arm.dot(self.theta))) * k
        dger(-scale, k, k, a=self.inverse.T, overwrite_a=1)

    @property
    def nbytes(self) -> int:
        """The inverse and theta."""
        return self.inverse.nbytes + self.theta.nbytes


class TextbookOFUL:
    """Sherman-Morrison by outer products and theta by a product: what one finds in notebooks."""

    def __init__(self, dim: int, ridge: float = 1.0, beta: float = 0.1) -> None:
        self.inverse = np.eye(dim) / ridge
        self.b = np.zeros(dim)
        self.theta = np.zeros(dim)
        self.beta = beta

    def select(self, arms: Matrix) -> int:
        """Means plus widths."""
        widths = np.sqrt(((arms @ self.inverse) * arms).sum(axis=1))
        return int(np.argmax(arms @ self.theta + self.beta * widths))

    def update(self, arm: Matrix, reward: float) -> None:
        """The formula of the book."""
        k = self.inverse @ arm
        self.inverse -= np.outer(k, k) / (1.0 + arm @ k)
        self.b += reward * arm
        self.theta = self.inverse @ self.b

    @property
    def nbytes(self) -> int:
        """The inverse, b and theta."""
        return self.inverse.nbytes + self.b.nbytes + self.theta.nbytes


def has_vowpal_wabbit() -> bool:
    """Whether vowpal-wabbit-next is installed (extra ``[bench]``)."""
    return importlib.util.find_spec("vowpal_wabbit_next") is not None


class VowpalWabbit:
    """vowpal-wabbit-next, --cb_explore_adf --squarecb, fed with numpy arrays; no confidence set."""

    def __init__(self, dim: int) -> None:
        import vowpal_wabbit_next as vw  # noqa: PLC0415  an extra

        bits = max(18, int(np.ceil(np.log2(dim))))
        self.vw = vw
        self.workspace = vw.Workspace(
            ["--cb_explore_adf", "--squarecb", "--quiet", "--noconstant", "-b", str(bits)]
        )
        self.every = np.arange(dim, dtype=np.uint64)
        self.random = np.random.default_rng(0)
        self.examples: list[Any] = []
        self.chosen, self.probability = 0, 1.0

    def select(self, arms: Any) -> int:
        """One example an arm; the action is drawn from the distribution that comes back."""
        self.examples = [self._example(indices, values) for indices, values in self._features(arms)]
        distribution: Any = self.workspace.predict_one(self.examples)  # (action, probability) pairs
        actions, probabilities = zip(*distribution, strict=True)
        drawn = int(np.searchsorted(np.cumsum(probabilities), self.random.random() * sum(probabilities)))
        drawn = min(drawn, len(actions) - 1)
        self.chosen, self.probability = actions[drawn], probabilities[drawn]
        return int(self.chosen)

    def update(self, arm: Any, reward: float) -> None:
        """Cost is the negative reward."""
        del arm
        label = self.vw.CBLabel(label=(0, -float(reward), self.probability))
        self.examples[self.chosen].set_label(label)
        self.workspace.learn_one(self.examples)

    @property
    def nbytes(self) -> int:
        """The weights."""
        return int(self.workspace.weights().nbytes)

    def _features(self, arms: Any) -> Any:
        if sparse.issparse(arms):
            indices = arms.indices.astype(np.uint64)
            values = arms.data.astype(np.float32)
            bounds = zip(arms.indptr[:-1], arms.indptr[1:], strict=True)
            return [(indices[start:stop], values[start:stop]) for start, stop in bounds]
        return [(self.every, values) for values in arms.astype(np.float32)]

    def _example(self, indices: Any, values: Any) -> Any:
        example = self.vw.Example()
        example["f"].push_many_features(indices, values)
        example.set_label(self.vw.CBLabel())
        return example
