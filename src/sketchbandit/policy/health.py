"""Does the sketch still support the regret bound? The paper's question, answered while the policy runs."""

import math
import warnings
from typing import Any, NamedTuple

from sketchbandit.errors import SketchTooSmallWarning
from sketchbandit.theory import vacuous_exponent

_SMALL = 128  # dimensions, whose matrix is nothing to warn of
_SHARE = 0.25  # of mass / size, the most that the certificate can grow by


class Health(NamedTuple):
    """What ``policy.health()`` tells.

    Attributes
    ----------
    certificate : float
        e, the sketch's ``error_bound``.
    exponent : float
        log(e) / log(t), the growth exponent of the paper's figure; -inf while e = 0.
    growth : float
        The slope of log e over log t since half the rounds ago or more; nan where there was no loss then.
    limit : float
        The exponent from which on the bound is linear: 1/3 for FD, 1 compensated; inf if e is bounded.
    heading_for_linear_regret : bool
        Whether the certificate, as it grows, makes the regret bound vacuous. Without compensation: both
        log(e/ridge) / log(t) and the growth have reached 1/3. With it: since half the rounds ago or more e
        has grown in proportion to t, by a quarter at least of what it can at most, the mass over the size.
    sentence : str
        The same in words.

    """

    certificate: float
    exponent: float
    growth: float
    limit: float
    heading_for_linear_regret: bool
    sentence: str


class HealthWatch:
    """Keeps the certificate of half the rounds ago, and warns once when a fixed size proves too small."""

    def __init__(self) -> None:
        # (rounds, certificate, mass) then and more recently; the first at least half the rounds ago
        self.marks: list[tuple[int, float, float]] = [(1, 0.0, 0.0), (1, 0.0, 0.0)]
        self.has_warned = False

    def look(self, sketch: Any, rounds: int, ridge: float) -> None:
        """After the certificate may have changed."""
        if rounds >= 2 * self.marks[1][0]:
            self.marks = [self.marks[1], (rounds, float(sketch.error_bound), _mass(sketch))]
        if not self.has_warned:
            health = self.report(sketch, rounds, ridge)
            if health.heading_for_linear_regret:
                self.has_warned = True
                warnings.warn(health.sentence, SketchTooSmallWarning, stacklevel=5)

    def report(self, sketch: Any, rounds: int, ridge: float) -> Health:
        """The state of things."""
        error = float(sketch.error_bound)
        exponent = _exponent(error, rounds)
        earlier, error_then, mass_then = self.marks[0]
        growth = math.nan
        if 0.0 < error_then < math.inf and rounds > earlier:
            growth = math.log(error / error_then) / math.log(rounds / earlier)
        most = float(getattr(sketch, "error_limit", math.inf))
        if math.isfinite(most):
            sentence = _bounded_sentence(
                error, most, is_dense=getattr(sketch, "is_dense", False) and sketch.dim > _SMALL
            )
            return Health(error, exponent, growth, math.inf, False, sentence)
        if not math.isfinite(error):
            name = type(sketch).__name__
            sentence = f"{name} certifies nothing: whether its regret stays sublinear cannot be told."
            return Health(error, exponent, growth, math.nan, False, sentence)
        compensation = getattr(sketch, "compensation", sketch.alpha / error if error else 0.0)
        limit = vacuous_exponent(compensation)
        order = float(getattr(sketch, "error_order", math.inf))
        if order < limit:
            return Health(error, exponent, growth, limit, False, _growing_sentence(error, order))
        if limit < 1.0:  # the bound has (1 + e/lambda)^(3/2) in it
            heading = _exponent(error / ridge, rounds) >= limit and growth >= limit
        else:  # e <= mass/size, so that log e / log t takes for ever to come near 1: look at the rate
            gained = (_mass(sketch) - mass_then) / max(getattr(sketch, "size", 1), 1)
            heading = error_then > 0.0 and error - error_then >= _SHARE * gained > 0.0
        return Health(error, exponent, growth, limit, heading, _sentence(sketch, error, exponent, heading))


def _mass(sketch: Any) -> float:
    return float(getattr(sketch, "mass", 0.0))


def _exponent(error: float, rounds: int) -> float:
    if error <= 0.0:
        return -math.inf
    return math.log(error) / math.log(rounds) if rounds > 1 else math.copysign(math.inf, math.log(error))


def _bounded_sentence(error: float, most: float, *, is_dense: bool) -> str:
    if most == 0.0:
        return "The sketch is exact: nothing is lost and the regret is that of OFUL."
    sentence = (
        f"The spectral error is at most {error:.4g} and never exceeds {most:.4g}: the regret stays sublinear."
    )
    if is_dense:
        sentence += (
            " To keep that promise the sketch has become exact, a matrix of dim² numbers; where that is too "
            "much, allow a larger epsilon (inflation), or say the horizon."
        )
    return sentence


def _growing_sentence(error: float, order: float) -> str:
    return (
        f"The spectral error is at most {error:.4g} and grows no faster than t^{order:.3g}: "
        "the regret stays sublinear."
    )


def _sentence(sketch: Any, error: float, exponent: float, heading: bool) -> str:
    kind = type(sketch).__name__
    if hasattr(sketch, "size"):
        kind += f" of size {sketch.size}"
    if heading:
        return (
            f"{kind} is too small for this stream: its spectral error, {error:.4g}, grows so fast that the "
            "regret bound is linear; use a larger size, or adaptive, whose error is bounded (and scale the "
            "arms to about length one, or the ridge to their squared length)."
        )
    if error == 0.0:
        return f"{kind} has lost nothing so far: the regret is that of OFUL."
    return f"{kind} has lost at most {error:.4g} (t^{exponent:.2f}), which the regret bound can bear."
