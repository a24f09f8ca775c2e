"""The interface of an environment."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from sketchbandit.arrays import Rows, Vector


class Round(NamedTuple):
    """One round: the arms, which a policy sees, and the true means and the noise, which it does not.

    Examples
    --------
    >>> from sketchbandit import GaussianArms
    >>> (first,) = GaussianArms(dim=5, arms=3).rounds(1)
    >>> first.arms.shape, first.regret(int(first.means.argmax()))
    ((3, 5), 0.0)

    """

    arms: Rows
    """The arms (K, dim), dense or CSR."""
    means: Vector
    """The true mean reward of every arm, (K,)."""
    noise: float
    """The noise, which is added to the mean of whichever arm is chosen."""

    def reward(self, chosen: int) -> float:
        """The reward that the policy gets for its choice."""
        return float(self.means[chosen]) + self.noise

    def regret(self, chosen: int) -> float:
        """The pseudo-regret: the best mean minus the mean of the arm chosen. Noise does not count."""
        return float(self.means.max() - self.means[chosen])

    def arm(self, chosen: int) -> Rows:
        """The features of an arm: (dim,), or (1, dim) if arms are sparse."""
        return self.arms[chosen] if isinstance(self.arms, np.ndarray) else self.arms[[chosen]]


class Environment(ABC):
    """Base class of environments: rounds drawn from a seed. ``rounds`` always starts from the first one.

    The arms of a round do not depend on earlier choices. So two policies with one seed see the same arms and
    the same noise. A subclass sets ``dim`` and ``name``, and implements ``rounds``.

    Examples
    --------
    >>> import sketchbandit as sb
    >>> environment = sb.GaussianArms(dim=20, arms=5, seed=1)
    >>> isinstance(environment, sb.Environment), len(list(environment.rounds(10)))
    (True, 10)

    """

    dim: int
    """The number of features of an arm."""
    name: str
    actions: int | None = None
    """Where a round offers one context and so many actions: their number. None: the arms have features."""

    @abstractmethod
    def rounds(self, count: int) -> Iterator[Round]:
        """Yield the first ``count`` rounds. A longer run starts with the same ones."""
