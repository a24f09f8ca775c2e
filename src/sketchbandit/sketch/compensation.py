"""What sketches share that shrink and may give back what they took."""

from sketchbandit.linalg import Shrinkage
from sketchbandit.sketch.base import Scalars, Sketch

_FREE = 1e-13  # of the mass: what every sum in float64 may get wrong is not counted


class Compensated(Sketch):
    """A certificate e, the sum of every shrinkage, of which alpha gives back the part ``compensation``."""

    _compensation: float
    _error: float = 0.0
    _rounding: float = 0.0
    _unclaimed: float = 0.0  # rounding in float64 that is not charged: at most 1e-13 of the mass

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

    def _charge(self, done: Shrinkage) -> None:
        """Add what a shrink took, and of its rounding what exceeds the rounding of any sum."""
        self._error += done.amount
        self._unclaimed += done.arithmetic
        beyond = max(0.0, self._unclaimed - _FREE * self._mass)
        self._unclaimed -= beyond
        self._charge_rounding(done.stored + beyond)

    def _charge_rounding(self, amount: float) -> None:
        """Add what rounding may have taken, or added."""
        self._error += amount
        self._rounding += amount

    def _take_over(self, other: "Compensated") -> None:
        """Certificates add."""
        self._error += other._error
        self._rounding += other._rounding
        self._unclaimed += other._unclaimed

    def _account(self) -> Scalars:
        """What ``_set_account`` needs."""
        return {"error": self._error, "rounding": self._rounding, "unclaimed": self._unclaimed}

    def _set_account(self, scalars: Scalars) -> None:
        self._error = float(scalars["error"])
        self._rounding = float(scalars.get("rounding", 0.0))  # files of 0.6 have neither
        self._unclaimed = float(scalars.get("unclaimed", 0.0))
