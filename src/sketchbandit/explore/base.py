"""How a choice follows from means and widths: the contract of an exploration rule."""

import math
from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np

from sketchbandit.arms import Scan, own_copy
from sketchbandit.arrays import AnyArray, Arrays, Scalars, Vector
from sketchbandit.errors import InputTypeError
from sketchbandit.kinds import Kinds
from sketchbandit.precision import Leverage, Precision


class Candidates:
    """A set of arms as a rule sees it.

    Attributes
    ----------
    means : array
        The mean reward of every arm, (K,).
    radius : float
        beta, by which widths count.

    """

    def __init__(self, scan: Scan, precision: Precision, radius: float) -> None:
        self.means = scan.means
        self.radius = radius
        self._scan = scan
        self._precision = precision
        self._looked_at: tuple[int, Leverage] | None = None

    def __len__(self) -> int:
        return len(self.means)

    def width(self, index: int) -> float:
        """sqrt(x'A^-1 x) of one arm: a pass over the sketch, so ask for as few as can be."""
        norm_sq = self._scan.norm_sq(index)
        leverage = self._precision.leverage_in(self._scan.arms, index, norm_sq, self._scan.products)
        self._looked_at = index, leverage
        return math.sqrt(self._precision.inverse.quadratic(leverage, norm_sq))

    def widths(self) -> Vector:
        """The width of every arm."""
        return np.array([self.width(index) for index in range(len(self))])

    def most_widths(self) -> Vector:
        """No width is larger, to the last bit: width² <= |x|² / rho. It costs nothing."""
        return np.sqrt(self._scan.norms_sq / self._precision.shift)

    def drawn(self, random: np.random.Generator) -> Vector:
        """Means plus x'v, v drawn from N(0, radius²·A^-1): one draw for all arms.

        Where means are x'theta, they are those of a theta that was drawn.
        """
        return self.means + self.radius * self._scan.arms.times(self._precision.half(random))

    def keep(self) -> None:
        """What the last width took to compute will be needed: that arm may well be chosen."""
        if self._looked_at is not None:
            index, leverage = self._looked_at
            self._precision.last_choice = own_copy(self._scan.arms.vector(index)), leverage


class Explore(Kinds, ABC):
    """A way to choose. A policy makes a copy of the rule that it is given.

    Subclasses set ``kind``, a name of their own, if their policies are to be saved.
    """

    _kinds: ClassVar[dict[str, type[Any]]] = {}
    _noun = "exploration rule"

    @abstractmethod
    def choose(self, candidates: Candidates, count: int) -> list[int]:
        """The indices of ``count`` arms, the best first."""

    def search(self, arms: AnyArray, theta: Vector, precision: Precision, radius: float) -> int | None:
        """The best of dense arms whose means are x'theta, where a rule has a quicker way to find it.

        None: it has none. -1: a score is not finite.
        """
        del arms, theta, precision, radius
        return None

    def search_many(
        self, arms: AnyArray, bounds: AnyArray, theta: Vector, precision: Precision, radius: float
    ) -> AnyArray | None:
        """``search`` for many sets, of which the i-th has the arms bounds[i] to bounds[i + 1].

        None: there is no quicker way. Negative: this one has to be chosen by itself.
        """
        del arms, bounds, theta, precision, radius
        return None

    def check_kind(self) -> None:
        """Refuse a rule of which a file would lose something."""
        super().check_kind()
        if vars(self) and type(self).dump is Explore.dump:
            raise InputTypeError(
                f"{type(self).__name__} has attributes ({', '.join(vars(self))}) but no method dump: a file "
                "would lose them"
            )

    def dump(self) -> tuple[Scalars, Arrays]:
        """JSON values and arrays that ``undump`` turns into the same rule."""
        return {}, {}

    @classmethod
    def undump(cls, scalars: Scalars, arrays: Arrays) -> "Explore":
        """The rule that ``dump`` described."""
        del arrays
        return cls(**scalars)
