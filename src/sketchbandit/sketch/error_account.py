"""The account of a sketch that shrinks: its error bound, its compensation, and rounding."""

import math

from sketchbandit.arrays import Scalars
from sketchbandit.linalg import SCALING_ROUNDING, Shrinkage
from sketchbandit.sketch.base import Sketch

# Times the largest |QQ'|_F so far, which is at most the mass: float64 rounding that is not charged.
_FREE_IF_LOSSY, _FREE_IF_LOSSLESS = 1e-13, 1e-11


class ErrorAccount(Sketch):
    """Keeps the error bound e, the sum of all shrinkage. alpha gives back a share of it, ``compensation``."""

    _compensation: float
    _error: float = 0.0
    _rounding: float = 0.0
    _largest: float = 0.0  # |QQ'|_F of a shrink
    _lossy: float = 0.0  # uncharged float64 rounding of shrinks that lost something
    _drift: float = 0.0  # uncharged float64 rounding of shrinks that lost nothing

    @property
    def compensation(self) -> float:
        """The share of the error bound that alpha gives back."""
        return self._compensation

    @property
    def alpha(self) -> float:
        """compensation · e: X'X is estimated by S'S + alpha I."""
        return self._compensation * self._error

    @property
    def error_bound(self) -> float:
        """The error bound e: the sum of all shrinkage so far, plus what rounding may have taken."""
        return self._error

    @property
    def rounding(self) -> float:
        """The part of the error bound that is rounding. S'S may exceed X'X by as much."""
        return self._rounding

    @property
    def uncounted(self) -> float:
        """Rounding in float64 that the error bound leaves out: at most about 1e-11 of the mass."""
        return super().uncounted + self._lossy + self._drift

    def _charge(self, done: Shrinkage, most: float = math.inf) -> bool:
        """Charge what a shrink took, and rounding above the free part. Return whether this is zero.

        A shrink within ``most`` has room for everything except the rounding of lossless shrinks. Of that
        rounding, only as much is charged as there is room for. The rest stays ``uncounted``.
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
        """Charge rounding, in both directions."""
        self._error += amount
        self._rounding += amount

    def _discount(self, factor: float) -> None:
        """Multiply everything by the factor of forgetting, which itself rounds a little."""
        self._error *= factor
        self._rounding *= factor
        self._largest *= factor
        self._lossy *= factor
        self._drift = self._drift * factor + SCALING_ROUNDING * self.row_stats.mass

    def _take_over(self, other: "ErrorAccount") -> None:
        """Add the account of another sketch."""
        self._error += other._error
        self._rounding += other._rounding
        self._largest += other._largest
        self._lossy += other._lossy
        self._drift += other._drift

    def _account(self) -> Scalars:
        """The values that ``_set_account`` needs."""
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
