"""How many rows were seen, and how much they weigh."""

import numpy as np

from sketchbandit.arrays import Scalars, Vector
from sketchbandit.errors import InputError
from sketchbandit.linalg import running_sums
from sketchbandit.sketch.checks import check_count


class Tally:
    """The one owner of count and mass: of a sketch, a block, or rows that are still to be taken in.

    Attributes
    ----------
    count, nonzero : int
        Rows seen, and those among them that were not zero, forgotten or not.
    forgotten : float
        What of the count is forgotten: rows count by their weights in ``count - forgotten``.
    mass : float
        The sum of their squared norms, by their weights.
    most_mass : float
        What the mass may be: entries of X'X and squared norms of sketch rows reach it.
    version : int
        Grows with every change, whoever made it.

    """

    __slots__ = ("count", "forgotten", "mass", "most_mass", "nonzero", "version")

    def __init__(self, dtype: np.dtype[np.floating]) -> None:
        self.count = self.nonzero = self.version = 0
        self.mass = self.forgotten = 0.0
        self.most_mass = float(np.finfo(dtype).max)

    def check(self, added: float) -> None:
        """Refuse a mass that would overflow."""
        if not self.mass + added <= self.most_mass:
            dtype = "float32" if self.most_mass < 1e39 else "float64"
            raise InputError(
                f"the sum of squared norms would overflow {dtype}: "
                f"{self.mass:g} so far, {added:g} to come; rescale the rows"
            )

    def add_rows(self, norms_sq: Vector) -> None:
        """Rows of these squared norms, one after the other: the sum is that of single rows to the bit."""
        self.version += 1
        self.count += len(norms_sq)
        self.nonzero += int(np.count_nonzero(norms_sq))
        self.mass = float(running_sums(self.mass, norms_sq)[-1])

    def add(self, other: "Tally") -> None:
        """What another has counted."""
        self.version += 1
        self.count += other.count
        self.nonzero += other.nonzero
        self.mass += other.mass
        self.forgotten += other.forgotten

    def forget(self, factor: float) -> None:
        """All rows seen count by this factor from now on; how many were seen stays."""
        self.version += 1
        self.forgotten = self.count - factor * (self.count - self.forgotten)
        self.mass *= factor

    def dump(self) -> Scalars:
        """JSON values that ``restore`` sets."""
        told: Scalars = {"count": self.count, "mass": self.mass, "nonzero": self.nonzero}
        return {**told, "forgotten": self.forgotten} if self.forgotten else told

    def restore(self, scalars: Scalars) -> None:
        """Set what ``dump`` told."""
        self.count = check_count("count", scalars["count"], at_least=0)
        self.mass = float(scalars["mass"])
        self.nonzero = int(scalars.get("nonzero", self.count))  # files of 0.7 have none
        self.forgotten = float(scalars.get("forgotten", 0.0))
