"""What sketches share that shrink and may give back what they took."""

import math

from sketchbandit.arrays import Scalars
from sketchbandit.linalg import SCALING_ROUNDING, Shrinkage
from sketchbandit.sketch.base import Sketch

# Of the largest |QQ'|_F so far, which is at most the mass: rounding in float64 that is not charged.
_FREE_IF_LOSSY, _FREE_IF_LOSSLESS = 1e-13, 1e-11


class ShrinkLedger(Sketch):
    """A certificate e, the sum of every shrinkage, of which alpha gives back the part ``compensation``."""

    _compensation: float
    _error: float = 0.0
    _rounding: float = 0.0
    _largest: float = 0.0  # |QQ'|_F of a shrink
    _lossy: float = 0.0  # rounding in float64, of shrinks that lost something and of those that did not,
    _drift: float = 0.0  # as far as it is not charged

    @property
    def compensation(self) -> float:
        """The part of the certificate that alpha gives back."""
        return self._compensation

    @property
    def alpha(self) -> float:
        """compensation · e: X'X is estimated by S'S + alpha I."""
        return self._compensation * self._error

    @property
    def error_bound(self) -> float:
        """The certificate e: the sum of all shrinkage so far, and of what rounding may have taken besides."""
        return self._error

    @property
    def rounding(self) -> float:
        """The part of the certificate that is rounding; S'S may exceed X'X by as much."""
        return self._rounding

    @property
    def uncounted(self) -> float:
        """Rounding in float64 that is not in the certificate: at most some 1e-11 of the mass."""
        return super().uncounted + self._lossy + self._drift

    def _charge(self, done: Shrinkage, most: float = math.inf) -> bool:
        """Add what a shrink took, and rounding beyond what is free; whether all that is nothing.

        A shrink within ``most`` has made room for all of it but the rounding of those that lost nothing: of
        that no more is charged than there is room for, and the rest stays ``uncounted``.
        """
        self._largest = max(self._largest, done.scale)
        if done.amount:
            self._lossy += done.arithmetic
        else:
            self._drift += done.arithmetic
        lossy = max(0.0, self._lossy - _FREE_IF_LOSSY * self._largest)
        drift = max(0.0, self._drift - _FREE_IF_LOSSLESS * self._largest)
        drift = min(drift, max(0.0, most - done.amount - done.stored - lossy))
        self._lossy -= lossy
        self._drift -= drift
        self._charge_rounding(done.stored + lossy + drift)
        self._error += done.amount
        return done.amount + done.stored + lossy + drift == 0.0

    def _charge_rounding(self, amount: float) -> None:
        """Add what rounding may have taken, or added."""
        self._error += amount
        self._rounding += amount

    def _discount(self, factor: float) -> None:
        """All of it was forgotten by that factor, which rounds a little."""
        self._error *= factor
        self._rounding *= factor
        self._largest *= factor
        self._lossy *= factor
        self._drift = self._drift * factor + SCALING_ROUNDING * self.tally.mass

    def _take_over(self, other: "ShrinkLedger") -> None:
        """Certificates add, and what is not in them."""
        self._error += other._error
        self._rounding += other._rounding
        self._largest += other._largest
        self._lossy += other._lossy
        self._drift += other._drift

    def _account(self) -> Scalars:
        """What ``_set_account`` needs."""
        return {
            "error": self._error,
            "rounding": self._rounding,
            "largest": self._largest,
            "lossy": self._lossy,
            "drift": self._drift,
        }

    def _set_account(self, scalars: Scalars) -> None:
        self._error = float(scalars["error"])
        # Files of 0.6 have none of these.
        self._rounding = float(scalars.get("rounding", 0.0))
        self._largest = float(scalars.get("largest", 0.0))
        self._lossy, self._drift = float(scalars.get("lossy", 0.0)), float(scalars.get("drift", 0.0))
