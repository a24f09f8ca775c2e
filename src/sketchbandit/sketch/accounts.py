"""What a sketch tells of itself: what an update changed, the rows seen, the errors made."""

import math
from typing import NamedTuple

import numpy as np

from sketchbandit.arrays import Scalars, Vector
from sketchbandit.errors import InputError
from sketchbandit.linalg import SCALING_ROUNDING, Shrinkage, running_sums
from sketchbandit.sketch.checks import check_compensation, check_count

# Times the largest |QQ'|_F so far, which is at most the mass: float64 rounding that is not charged.
_FREE_IF_LOSSY, _FREE_IF_LOSSLESS = 1e-13, 1e-11
_SAVED = ("error", "rounding", "largest", "lossy", "drift")


class Change(NamedTuple):
    """What an update did to ``rows``, for callers that keep something computed from them.

    Attributes
    ----------
    appended : int
        The number of new rows after the old ones. If not ``rebuilt``, the old rows, alpha and the error bound
        are unchanged.
    rebuilt : bool
        Whether any row, or alpha, may have changed. Then read the sketch again.
    lossless : bool
        Known even if ``rebuilt``: S'S has grown by exactly the rows given, and alpha is unchanged.
    orthogonal : bool
        Known even if ``rebuilt``: the rows are now orthogonal to one another.

    Examples
    --------
    >>> import sketchbandit as sb
    >>> sb.FrequentDirections(3, size=2).update([1.0, 0.0, 0.0])
    Change(appended=1, rebuilt=False, lossless=False, orthogonal=False)

    """

    appended: int = 0
    rebuilt: bool = False
    lossless: bool = False
    orthogonal: bool = False

    @property
    def additive(self) -> bool:
        """Whether S'S has grown by exactly the rows given, and alpha is unchanged."""
        return self.lossless or not self.rebuilt

    def then(self, later: "Change") -> "Change":
        """This change followed by another."""
        if later == NO_CHANGE:
            return self
        if not (self.rebuilt or later.rebuilt):
            return Change(self.appended + later.appended)
        return Change(0, True, self.additive and later.additive, later.orthogonal)


NO_CHANGE = Change()
ONE_APPENDED = Change(1)
ADDED = Change(rebuilt=True, lossless=True)
"""Rows were added to a matrix."""


class RowStats:
    """The only place for count and mass: of a sketch, of a block, or of rows that are still to be taken in.

    Attributes
    ----------
    count, nonzero : int
        The number of rows seen, and of those that were not zero, whether forgotten or not.
    forgotten : float
        The forgotten part of the count: ``count - forgotten`` is the sum of the weights.
    mass : float
        The sum of the squared norms of the rows, times their weights.
    most_mass : float
        The limit for the mass, which entries of X'X and squared norms of sketch rows can reach.
    version : int
        It increases with every change.

    """

    __slots__ = ("count", "forgotten", "mass", "most_mass", "nonzero", "version")

    def __init__(self, dtype: np.dtype[np.floating]) -> None:
        self.count = self.nonzero = self.version = 0
        self.mass = self.forgotten = 0.0
        self.most_mass = float(np.finfo(dtype).max)

    def check(self, added: float) -> None:
        """Raise if a mass would overflow."""
        if not self.mass + added <= self.most_mass:
            dtype = "float32" if self.most_mass < 1e39 else "float64"
            raise InputError(
                f"the sum of squared norms would overflow {dtype}: "
                f"{self.mass:g} so far, {added:g} to come; rescale the rows"
            )

    def add_rows(self, norms_sq: Vector) -> None:
        """Count rows with these squared norms. The sum is equal to that of single rows, to the bit."""
        self.version += 1
        self.count += len(norms_sq)
        self.nonzero += int(np.count_nonzero(norms_sq))
        self.mass = float(running_sums(self.mass, norms_sq)[-1])

    def add(self, other: "RowStats") -> None:
        """Add another row_stats."""
        self.version += 1
        self.count += other.count
        self.nonzero += other.nonzero
        self.mass += other.mass
        self.forgotten += other.forgotten

    def forget(self, factor: float) -> None:
        """Multiply all weights by this factor. The count stays."""
        self.version += 1
        self.forgotten = self.count - factor * (self.count - self.forgotten)
        self.mass *= factor

    def dump(self) -> Scalars:
        """The JSON values that ``restore`` takes."""
        told: Scalars = {"count": self.count, "mass": self.mass, "nonzero": self.nonzero}
        return {**told, "forgotten": self.forgotten} if self.forgotten else told

    def restore(self, scalars: Scalars) -> None:
        """Restore what ``dump`` returned."""
        self.count = check_count("count", scalars["count"], at_least=0)
        self.mass = float(scalars["mass"])
        self.nonzero = int(scalars.get("nonzero", self.count))  # files of 0.7 have none
        self.forgotten = float(scalars.get("forgotten", 0.0))


class ErrorAccount:
    """The error bound e: the sum of all shrinkage, and of rounding. alpha gives back a share of it.

    Attributes
    ----------
    compensation : float
        The share of e that alpha gives back.
    error, rounding : float
        e, and the part of it that is rounding: S'S may exceed X'X by as much.
    lossy, drift : float
        Float64 rounding that is not charged: of shrinks that lost something, and of those that lost nothing.
    largest : float
        The largest |QQ'|_F of a shrink.

    """

    def __init__(self, compensation: float) -> None:
        self.compensation = check_compensation(compensation)
        self.error = self.rounding = self.largest = self.lossy = self.drift = 0.0

    @property
    def alpha(self) -> float:
        """compensation · e."""
        return self.compensation * self.error

    def charge(self, done: Shrinkage, most: float = math.inf) -> bool:
        """Charge what a shrink took, and rounding above the free part. Return whether this is zero.

        A shrink within ``most`` has room for everything except the rounding of lossless shrinks. Of that
        rounding, only as much is charged as there is room for. The rest stays uncharged.
        """
        self.largest = max(self.largest, done.scale)
        if done.amount:
            self.lossy += done.arithmetic
        else:
            self.drift += done.arithmetic
        lossy = max(0.0, self.lossy - _FREE_IF_LOSSY * self.largest)
        drift = max(0.0, self.drift - _FREE_IF_LOSSLESS * self.largest)
        drift = min(drift, max(0.0, most - done.amount - done.stored - lossy))
        self.lossy -= lossy
        self.drift -= drift
        self.charge_rounding(done.stored + lossy + drift)
        self.error += done.amount
        return done.amount + done.stored + lossy + drift == 0.0

    def charge_rounding(self, amount: float) -> None:
        """Charge rounding, in both directions."""
        self.error += amount
        self.rounding += amount

    def forget(self, factor: float, mass: float) -> None:
        """Multiply everything by the factor. This itself rounds a little of the ``mass`` that is left."""
        self.error *= factor
        self.rounding *= factor
        self.largest *= factor
        self.lossy *= factor
        self.drift = self.drift * factor + SCALING_ROUNDING * mass

    def add(self, other: "ErrorAccount") -> None:
        """Add the account of another sketch."""
        self.error += other.error
        self.rounding += other.rounding
        self.largest += other.largest
        self.lossy += other.lossy
        self.drift += other.drift

    def dump(self) -> Scalars:
        """The JSON values that ``restore`` takes."""
        return {name: getattr(self, name) for name in _SAVED}

    def restore(self, scalars: Scalars) -> None:
        """Restore what ``dump`` returned. Files of 0.6 have the error alone."""
        for name in _SAVED:
            setattr(self, name, float(scalars[name] if name == "error" else scalars.get(name, 0.0)))
