"""What policies over arms and models per action have in common."""

import copy
from abc import abstractmethod
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from sketchbandit.arrays import Scalars
from sketchbandit.errors import MergeKindError
from sketchbandit.policy.files import restored_generator
from sketchbandit.policy.health import Complaints, say
from sketchbandit.policy.propensity import check_generator, unless_refused
from sketchbandit.policy.scalable import Scalable
from sketchbandit.sketch.columns import ColumnNames, Name
from sketchbandit.thread_safety import both_locks, holds_the_lock


class Learner(Scalable):
    """Base class: it reads features, chooses by a rule, and merges with others of its kind."""

    _dim: int
    _dtype: np.dtype[Any]
    _columns: ColumnNames

    @property
    def dim(self) -> int:
        """The number of features of an arm, or of a context."""
        return self._dim

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype in which features are read and stored. Sums are always float64."""
        return self._dtype

    @property
    def columns(self) -> tuple[Name, ...] | None:
        """The feature names, if features came as a DataFrame; else None.

        Columns of later DataFrames are put into this order.
        """
        return self._columns.names

    @holds_the_lock
    def merge(self, other: Any) -> None:
        """Add what another learner with the same settings has learned.

        Both must have started from nothing. ``other`` stays as it is.

        Parameters
        ----------
        other : same type as this one
            A policy, or a set of models, with the same settings.

        Examples
        --------
        >>> import sketchbandit as sb
        >>> here, there = sb.oful(2), sb.oful(2)
        >>> here.update([1.0, 0.0], 1.0)
        >>> there.update([0.0, 1.0], 1.0)
        >>> here.merge(there)
        >>> here.rounds, here.theta
        (2, array([0.5, 0.5]))

        """
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
        """Do ``merge`` while both locks are held, and return the warnings to give."""

    # -- chance ---------------------------------------------------------------------------------------

    def _generator(self, random: np.random.Generator | None) -> np.random.Generator:
        return self._random if random is None else check_generator(random)

    def _unless_refused(self, random: np.random.Generator) -> AbstractContextManager[None]:
        return unless_refused(random, self._columns)

    def _saved_chance(self) -> Scalars:
        """The state of the generator, as a file holds it."""
        return {"random": self._random.bit_generator.state} if self._explore.is_random else {}

    def _restore_chance(self, scalars: Scalars) -> None:
        if "random" in scalars:
            self._random = restored_generator(scalars["random"])
