"""Whether the sketch still supports the regret bound: the paper's question, answered while a policy runs."""

import math
import warnings
from collections.abc import Sequence
from typing import NamedTuple

from sketchbandit.arrays import Scalars
from sketchbandit.errors import SketchTooSmallWarning, TooFewDigitsWarning
from sketchbandit.html_repr import amount
from sketchbandit.linalg import SUM_ROUNDING
from sketchbandit.sketch import Sketch
from sketchbandit.theory import vacuous_exponent

_TRY = "To try everything now and then, give the rule a floor, for instance floor=0.02."
_SHOWN = 10  # arms in a sentence
_ROUNDS_A_CHOICE, _FEW_CHOICES = 50, 4
_SMALL = 128  # columns up to which an exact matrix needs no comment


_SHARE = 0.25  # of mass / size, which is the most that the certificate can grow by
_LINEAR = 0.9  # growth exponent from which on e is taken to grow in proportion to t


Complaints = tuple[Warning, ...]


class Health(NamedTuple):
    """What ``policy.health()`` returns.

    The certificate holds for every exploration rule. The regret bound is a theorem for UCB with the radius of
    ``Confidence``. For other rules the verdict says only whether the sketch loses too much.

    Attributes
    ----------
    certificate : float
        e, the ``error_bound`` of the sketch: the spectral error is at most this.
    exponent : float
        log(e) / log(t), the growth exponent of the paper's figure; -inf while e = 0.
    growth : float
        The slope of log e over log t, since half the rounds ago or earlier; nan if there was no loss then.
    limit : float
        The exponent from which on the regret bound is linear: 1/3 without compensation (FD), 1 with it.
        inf if e is bounded.
    heading_for_linear_regret : bool
        Whether the certificate grows so fast that the regret bound becomes linear. Without compensation this
        is so if both log(e/ridge) / log(t) and ``growth`` have reached 1/3. With compensation it is so if e
        has passed the ridge and grows in proportion to t. If e then grows by less than a quarter of its
        maximum, mass / size, the bound is linear with a small factor, and no warning is given.
    sentence : str
        The same in words, with advice if something is wrong.
    enough_digits : bool
        Whether the dtype has enough digits. The sketch's ``uncounted`` must be below the promised error, and
        below the ridge or the certificate. Its ``rounding`` must be below the ridge or below half of the
        certificate.
    scaling : str or None
        How arms are scaled: "rows", "columns" or None. During the warm-up: how far it is.
    effective_rounds : float
        The sum of the weights of all rounds. This is their number, unless the policy forgets.
    world_changed : bool
        Whether predictions have become worse than before (drift), by a sequential test (docs/bandits.md). It
        stays True until ``reset``, or until a policy that forgets has adapted.
    changed_at : int or None
        The number of rounds after which this was last noticed.
    untried : tuple
        What was (nearly) never tried, though there were many rounds. For a model of a ``PerAction``, the name
        of its action. For the arms given to ``health``, their indices.
    out_of_range : tuple
        The columns of which most recent values lay far outside the range that their scaling was learned from:
        their names, or their places (docs/scaling.md).

    Examples
    --------
    >>> import sketchbandit as sb
    >>> health = sb.soful(100, size=10).health()
    >>> health.certificate, health.heading_for_linear_regret
    (0.0, False)
    >>> health.sentence
    'FrequentDirections of size 10 has lost nothing so far, so it adds no regret.'

    """

    certificate: float
    exponent: float
    growth: float
    limit: float
    heading_for_linear_regret: bool
    sentence: str
    enough_digits: bool = True
    scaling: str | None = None
    effective_rounds: float = 0.0
    world_changed: bool = False
    changed_at: int | None = None
    untried: tuple[str | int, ...] = ()
    out_of_range: tuple[str | int, ...] = ()


class Mark(NamedTuple):
    """The error bound and the mass after so many rounds."""

    rounds: int
    error: float
    mass: float


START = Mark(1, 0.0, 0.0)


class HealthWatch:
    """Keeps the certificate of half the rounds ago, and warns once if a fixed size proves too small.

    Marks are set after 2, 4, 8, ... rounds. They do not depend on the batches in which arms came.
    """

    def __init__(self, then: Mark = START, recent: Mark = START, *, has_warned: bool = False) -> None:
        self.has_warned = has_warned
        self.has_warned_of_digits = False
        self._set(then, recent)

    def _set(self, then: Mark, recent: Mark) -> None:
        self.marks = (then, recent)
        """One mark from at least half the rounds ago, and a more recent one."""
        self.next_mark = 2 * recent.rounds
        """The number of rounds at which to look again in any case."""

    def dump(self) -> Scalars:
        """JSON values that ``undump`` turns into the same watch."""
        warned = {"has_warned": self.has_warned, "has_warned_of_digits": self.has_warned_of_digits}
        return {"marks": self.marks, **warned}

    @classmethod
    def undump(cls, scalars: Scalars) -> "HealthWatch":
        """The watch that ``dump`` described."""
        then, recent = (Mark(int(t), float(e), float(m)) for t, e, m in scalars["marks"])
        watch = cls(then, recent, has_warned=bool(scalars["has_warned"]))
        watch.has_warned_of_digits = bool(scalars.get("has_warned_of_digits", False))  # not in files of 0.6
        return watch

    def look(self, sketch: Sketch, rounds: int, ridge: float, *, forgets: bool = False) -> Complaints:
        """The warnings to give now. Each kind is given once."""
        if rounds >= self.next_mark:
            self._set(self.marks[1], Mark(rounds, sketch.error_bound, sketch.mass))
        digits = digits_sentence(sketch, ridge)
        if digits:
            is_news, self.has_warned_of_digits = not self.has_warned_of_digits, True
            return (TooFewDigitsWarning(digits),) if is_news else ()
        if self.has_warned:
            return ()
        health = self.report(sketch, rounds, ridge, forgets=forgets)
        if not health.heading_for_linear_regret:
            return ()
        if health.limit == 1.0 and _rate(sketch, self.marks[0]) < _SHARE:  # linear, with a small factor
            return ()
        self.has_warned = True
        return (SketchTooSmallWarning(health.sentence),)

    def add(self, other: "HealthWatch") -> None:
        """Merge with a watch that ran in parallel. The marks add up."""
        pairs = zip(self.marks, other.marks, strict=True)
        self._set(*(Mark(a.rounds + b.rounds, a.error + b.error, a.mass + b.mass) for a, b in pairs))
        self.has_warned |= other.has_warned
        self.has_warned_of_digits |= other.has_warned_of_digits

    def report(self, sketch: Sketch, rounds: int, ridge: float, *, forgets: bool = False) -> Health:
        """The present ``Health``."""
        error = sketch.error_bound
        exponent = _exponent(error, rounds)
        then = self.marks[0]
        growth = math.nan
        if 0.0 < min(then.error, error) < math.inf and rounds > then.rounds:
            growth = math.log(error / then.error) / math.log(rounds / then.rounds)
        most = sketch.error_limit
        limit, heading, sentence = math.inf, False, ""
        if not math.isfinite(error):
            limit = math.nan
            name = type(sketch).__name__
            sentence = f"{name} certifies nothing: whether the regret is sublinear is not known."
        elif forgets:
            sentence = forgetting_sentence(sketch, error, most)
        elif math.isfinite(most):
            sentence = bounded_sentence(sketch, error, most)
        else:
            limit = vacuous_exponent(getattr(sketch, "compensation", sketch.alpha / error if error else 0.0))
            heading, sentence = self._unbounded(sketch, rounds, ridge, limit, growth)
        digits = digits_sentence(sketch, ridge)
        return Health(
            error,
            exponent,
            growth,
            limit,
            heading,
            digits or sentence,
            enough_digits=not digits,
            effective_rounds=sketch.effective_count,
        )

    def _unbounded(
        self, sketch: Sketch, rounds: int, ridge: float, limit: float, growth: float
    ) -> tuple[bool, str]:
        """Whether an unbounded error makes the regret bound linear, and the sentence that says so."""
        error = sketch.error_bound
        order = sketch.error_order
        if order < limit:
            return False, growing_sentence(error, order)
        if limit < 1.0:  # the bound has (1 + e/lambda)^(3/2) in it
            is_too_small = _exponent(error / ridge, rounds) >= limit and growth >= limit
        else:  # it has (lambda + e)^(1/2); log e / log t comes near 1 very slowly, so look at the rate
            is_too_small = _rate(sketch, self.marks[0]) >= _SHARE
        if is_too_small:
            return True, too_small(sketch, error)
        if limit == 1.0 and error >= ridge and growth >= _LINEAR:
            return True, slowly_linear(sketch, error, rounds)
        return False, bearable(sketch, error, _exponent(error, rounds))


def mass_to_look_at(sketch: Sketch, ridge: float) -> float:
    """The mass from which on float64 may have too few digits."""
    return min(ridge, sketch.error_limit or ridge) / SUM_ROUNDING


def say(complaints: Complaints) -> None:
    """Give the warnings. They point at the caller of the public method that calls this."""
    for complaint in complaints:
        warnings.warn(complaint, stacklevel=3)


def _rate(sketch: Sketch, then: Mark) -> float:
    """The gain of the certificate since then, as a share of its maximum, mass/size; 0 if it was 0 then."""
    gained = (sketch.mass - then.mass) / max(sketch.size, 1)
    return (sketch.error_bound - then.error) / gained if then.error > 0.0 and gained > 0.0 else 0.0


def _exponent(error: float, rounds: int) -> float:
    if error <= 0.0:
        return -math.inf
    return math.log(error) / math.log(rounds) if rounds > 1 else math.copysign(math.inf, math.log(error))


def digits_sentence(sketch: Sketch, ridge: float) -> str:
    """The sentence if the dtype has too few digits; empty if it has enough."""
    error, most = sketch.error_bound, sketch.error_limit
    certified = sketch.rounding
    rounding = sketch.uncounted
    name, remedy = "float64", ""
    if certified > max(ridge, error / 2.0):  # the certificate is mostly rounding
        name, rounding = sketch.dtype.name, certified
        remedy = ", or use float64" if name == "float32" else ""
    elif rounding <= max(error, ridge) and (most == 0.0 or rounding <= most):
        return ""
    beside = f"the ridge, {ridge:.4g}" if rounding > ridge else f"the error that is promised, {most:.4g}"
    return (
        f"The arms are too long for {name}: rounding alone may change the sum of their squares by "
        f"{rounding:.4g}. This is more than {beside}, so neither the error bound nor the radius is reliable. "
        f"Scale the columns to similar lengths of about one{remedy}."
    )


def bounded_sentence(sketch: Sketch, error: float, most: float) -> str:
    """The sentence for an error that is bounded."""
    if most == 0.0:
        return "The sketch is exact: it loses nothing, so it adds no regret."
    so_far = f"at most {error:.4g}" if error else "0 so far"
    return (
        f"The spectral error is {so_far} and never exceeds {most:.4g}: "
        "the regret bound of UCB stays sublinear." + _said_of_matrix(sketch)
    )


def _said_of_matrix(sketch: Sketch) -> str:
    """What to add for a bounded error if the sketch has become a large matrix."""
    if not sketch.is_dense or sketch.dim <= _SMALL:
        return ""
    could_say = getattr(sketch, "horizon", 0) is None and getattr(sketch, "order", None) is None
    return (
        " To keep this bound the sketch has become exact, a matrix of dim² numbers "
        f"({amount(sketch.nbytes)}). To use less memory, allow a larger "
        f"epsilon{' (or inflation), or give the horizon' if could_say else ''}."
    )


def growing_sentence(error: float, order: float) -> str:
    """The sentence for an error that grows slowly enough."""
    return (
        f"The spectral error is at most {error:.4g} and grows no faster than t^{order:.3g}: "
        "the regret bound of UCB stays sublinear."
    )


def world_sentence(noticed: int) -> str:
    """The sentence for predictions that have become worse."""
    return (
        f"The world has changed, noticed after {noticed} rounds: predictions have become worse than before, "
        "by more than noise and confidence widths explain. Start again with policy.reset(), or make the "
        "policy with forget=, for instance forget=1000, a half-life in rounds."
    )


def following_sentence(noticed: int) -> str:
    """The sentence for worse predictions if the policy forgets."""
    return f"The world has changed, noticed after {noticed} rounds. The policy forgets, so it adapts."


def offset_sentence(mean: float, deviation: float) -> str:
    """The sentence for rewards that are far from 0, if they are learned as they are."""
    return (
        f"Rewards lie around {mean:.4g}, with a deviation of only {deviation:.4g}. This policy expects 0 of "
        "an arm that it has not tried, so learning is slow. Make it with baseline=True, or subtract a "
        "typical reward."
    )


def are_enough_to_try(rounds: int, choices: int) -> bool:
    """Whether so many rounds among so many choices are enough to say that one of these was not tried."""
    return rounds >= _ROUNDS_A_CHOICE * max(choices, _FEW_CHOICES)


def untried_action_sentence(action: str | int, times: int, rounds: int) -> str:
    """The sentence for an action that was hardly ever tried."""
    tried = f"tried {times} time{'s' * (times != 1)}" if times else "never tried"
    known = "little of its rewards is known" if times else "its rewards are not known"
    return f"Action {action!r} was {tried} in the {rounds:,} rounds since it was added: {known}. {_TRY}"


def untried_arms_sentence(arms: Sequence[object], rounds: int) -> str:
    """The sentence for arms about which next to nothing is known."""
    shown = ", ".join(map(str, arms[:_SHOWN])) + (f" and {len(arms) - _SHOWN} more" * (len(arms) > _SHOWN))
    return f"In {rounds:,} rounds these arms, or any like them, were hardly ever tried: {shown}. {_TRY}"


def out_of_range_sentence(columns: Sequence[str | int], dim: int) -> str:
    """The sentence for columns that have left the range in which their scaling was learned."""
    return (
        f"{_counted(columns, dim)} far outside the range that the scaling was learned from: "
        f"{_listed(columns)}. What lies outside is cut, so to the policy they are constant. Give features "
        "that keep their range (an age instead of a date), or make a new policy, which learns a new scaling."
    )


def dropped_sentence(columns: Sequence[str | int]) -> str:
    """The sentence for columns whose offset leaves no digits for how they vary."""
    return (
        f"Columns that vary too little beside their size for float64 are taken as constant: "
        f"{_listed(columns)}. Subtract a typical value from them before you offer the arms."
    )


def _counted(columns: Sequence[str | int], dim: int) -> str:
    return f"{len(columns)} of {dim:,} columns {'lies' if len(columns) == 1 else 'lie'}"


def _listed(names: Sequence[str | int]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(map(repr, names[:_SHOWN])) + more


def forgetting_sentence(sketch: Sketch, error: float, most: float) -> str:
    """The sentence for a policy that forgets. Sublinear regret is not promised: the memory is bounded."""
    remembered = f"{sketch.effective_count:.4g} rounds are remembered"
    if most == 0.0:
        return f"The sketch is exact, and {remembered}."
    if most < math.inf:
        said = f"The spectral error is at most {error:.4g} and never exceeds {most:.4g}; {remembered}."
        return said + _said_of_matrix(sketch)
    return (
        f"The spectral error of {_named(sketch)} is at most {error:.4g}; {remembered}. The error stays "
        "bounded, because old rounds are forgotten."
    )


def too_small(sketch: Sketch, error: float) -> str:
    """The sentence for a sketch so small that the regret bound is linear."""
    return (
        f"{_named(sketch)} is too small for this stream: its spectral error, {error:.4g}, grows so fast that "
        "the regret bound is linear. Use a larger size, or adaptive, whose error is bounded. Also scale the "
        "arms to length one or so, or set the ridge to about their squared length."
    )


def slowly_linear(sketch: Sketch, error: float, rounds: int) -> str:
    """The sentence for a regret bound that is linear with a small factor."""
    return (
        f"The spectral error of {_named(sketch)}, {error:.4g}, grows in proportion to t, by "
        f"{error / rounds:.2g} a round. The regret bound is linear, but with a small factor. A larger size "
        "lowers the error, and adaptive bounds it."
    )


def bearable(sketch: Sketch, error: float, exponent: float) -> str:
    """The sentence for an error that the regret bound can bear so far."""
    if error == 0.0:
        return f"{_named(sketch)} has lost nothing so far, so it adds no regret."
    return (
        f"{_named(sketch)} has lost at most {error:.4g} (t^{exponent:.2f}), which the regret bound can bear."
    )


def _named(sketch: Sketch) -> str:
    return f"{type(sketch).__name__} of size {sketch.size}"
