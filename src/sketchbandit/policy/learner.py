"""What a policy and a set of models have in common."""

import copy
from abc import abstractmethod
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from sketchbandit.arrays import Scalars
from sketchbandit.errors import MergeKindError
from sketchbandit.policy.chance import check_generator, unless_refused
from sketchbandit.policy.files import restored_generator
from sketchbandit.policy.health import Complaints, say
from sketchbandit.policy.scalable import Scalable
from sketchbandit.sharing import both_locks, holds_the_lock
from sketchbandit.sketch.columns import ColumnNames, Name


class Learner(Scalable):
    """Reads features, chooses by a rule, merges with others of its kind."""

    _dim: int
    _dtype: np.dtype[Any]
    _columns: ColumnNames

    @property
    def dim(self) -> int:
        """Length of an arm, or of a context."""
        return self._dim

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype in which features are read and stored; sums are float64 whatever it is."""
        return self._dtype

    @property
    def columns(self) -> tuple[Name, ...] | None:
        """The names of the features, if they came as a DataFrame; later ones are put in this order."""
        return self._columns.names

    @holds_the_lock
    def merge(self, other: Any) -> None:
        """Take in what another of the same settings has learned, both having started from nothing."""
        if type(other) is not type(self):
            raise MergeKindError(f"cannot merge {type(other).__name__} into {type(self).__name__}")
        if other is self:
            other = copy.deepcopy(self)
        with both_locks(self, other):
            complaints = self._absorb(other)
        if complaints:
            say(complaints)

    @abstractmethod
    def _absorb(self, other: Any) -> Complaints:
        """``merge`` for whoever holds both locks: what there is to warn of is returned."""

    # -- chance ---------------------------------------------------------------------------------------

    def _generator(self, random: np.random.Generator | None) -> np.random.Generator:
        return self._random if random is None else check_generator(random)

    def _unless_refused(self, random: np.random.Generator) -> AbstractContextManager[None]:
        return unless_refused(random, self._columns)

    def _saved_chance(self) -> Scalars:
        """What a file holds of the generator."""
        return {"random": self._random.bit_generator.state} if self._explore.is_random else {}

    def _restore_chance(self, scalars: Scalars) -> None:
        if "random" in scalars:
            self._random = restored_generator(scalars["random"])
