"""What every environment keeps to."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from sketchbandit.arrays import Vector


class Round(NamedTuple):
    """One round: what a policy sees (``arms``), and what it does not."""

    arms: Any
    """(K, dim), dense or CSR."""
    means: Vector
    """The true mean reward of every arm, (K,)."""
    noise: float
    """What is added to the mean of the arm chosen, whichever it is."""

    def reward(self, chosen: int) -> float:
        """What the policy is told."""
        return float(self.means[chosen]) + self.noise

    def regret(self, chosen: int) -> float:
        """The pseudo-regret of the choice: how far its mean is from the best one. Noise does not count."""
        return float(self.means.max() - self.means[chosen])

    def arm(self, chosen: int) -> Any:
        """The arm itself: (dim,), or (1, dim) where arms are sparse."""
        return self.arms[chosen] if isinstance(self.arms, np.ndarray) else self.arms[[chosen]]


class Environment(ABC):
    """Rounds drawn from a seed. Every call of ``rounds`` begins at the first one again.

    What a round offers does not depend on what was chosen before, so that two policies on one seed see the
    same arms and the same noise.
    """

    dim: int
    """Length of an arm."""
    name: str
    actions: int | None = None
    """Where a round offers one context and so many actions: their number. None: the arms have features."""

    @abstractmethod
    def rounds(self, count: int) -> Iterator[Round]:
        """The first ``count`` rounds; a longer run begins with the same ones."""
