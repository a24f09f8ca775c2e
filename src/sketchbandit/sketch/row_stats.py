"""The number of rows seen, and their mass."""

import numpy as np

from sketchbandit.arrays import Scalars, Vector
from sketchbandit.errors import InputError
from sketchbandit.linalg import running_sums
from sketchbandit.sketch.checks import check_count


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
