"""What sketches share that shrink and may give back what they took."""


class Compensated:
    """A certificate e, the sum of every shrinkage, of which alpha gives back the part ``compensation``."""

    _compensation: float
    _error: float

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
        """The certificate e: the sum of all shrinkage so far."""
        return self._error
