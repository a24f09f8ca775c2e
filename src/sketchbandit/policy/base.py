"""What every policy is, as those who play with it see it."""

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np

from sketchbandit.arrays import AnyArray, Vector
from sketchbandit.policy.health import Health
from sketchbandit.sketch import Sketch
from sketchbandit.sketch.columns import Name
from sketchbandit.storing import Stored


class Policy(Stored):
    """Chooses among arms described by features, and learns from the reward of the one chosen."""

    _kinds: ClassVar[dict[str, type[Any]]] = {}
    _noun = "policy"

    @property
    @abstractmethod
    def dim(self) -> int:
        """Length of an arm."""

    @property
    @abstractmethod
    def dtype(self) -> np.dtype[Any]:
        """The dtype in which arms are read."""

    @property
    @abstractmethod
    def sketch(self) -> Sketch:
        """The sketch of the arms played."""

    @property
    @abstractmethod
    def rounds(self) -> int:
        """How many rewards were learned from."""

    @property
    @abstractmethod
    def columns(self) -> tuple[Name, ...] | None:
        """The names of the features, if arms came as a DataFrame."""

    @property
    @abstractmethod
    def theta(self) -> Vector:
        """The estimate, a copy."""

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Bytes of every array held, the sketch's included."""

    @abstractmethod
    def health(self) -> Health:
        """The certificate, how it grows, and what that means for the regret, in a sentence."""

    @abstractmethod
    def select(self, arms: Any) -> int:
        """The index of the arm chosen."""

    @abstractmethod
    def select_many(self, batch: Any) -> AnyArray:
        """``select`` for many sets of arms at once."""

    @abstractmethod
    def top(self, arms: Any, k: int) -> AnyArray:
        """The indices of the ``k`` best arms, best first."""

    @abstractmethod
    def update(self, arm: Any, reward: Any) -> None:
        """Learn from one arm and its reward, or from many."""

    @abstractmethod
    def merge(self, other: Any) -> None:
        """Take in what another policy of the same settings has learned, both having started from nothing."""
