"""The account of a sketch that shrinks: its error bound, its compensation, and rounding."""

import math

from sketchbandit.arrays import Scalars
from sketchbandit.linalg import SCALING_ROUNDING, Shrinkage
from sketchbandit.sketch.checks import check_compensation

# Times the largest |QQ'|_F so far, which is at most the mass: float64 rounding that is not charged.
_FREE_IF_LOSSY, _FREE_IF_LOSSLESS = 1e-13, 1e-11


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


_SAVED = ("error", "rounding", "largest", "lossy", "drift")
