"""When a policy forgets old rounds, and how much."""

import math
from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np

from sketchbandit.errors import InputError, InputTypeError
from sketchbandit.estimate import Estimate
from sketchbandit.sketch import Change, Sketch
from sketchbandit.sketch.checks import check_count, check_real
from sketchbandit.theory import Confidence

# The weight left when forgetting is applied: at a rebuild of the sketch, and at the latest.
_AT_A_REBUILD, _AT_THE_LATEST = 0.98, 0.9
_LEAST, _MOST = 1e-300, 1e300


def read_forget(forget: Any) -> float | None:
    """The factor per round of a ``forget`` setting; None means never.

    A setting up to 1 is the factor itself. A setting above 1 is a half-life in rounds.

    Examples
    --------
    >>> read_forget(0.999), round(read_forget(100), 6), read_forget(1.0), read_forget(None)
    (0.999, 0.993092, None, None)

    """
    if forget is None:
        return None
    remedy = "give a factor per round, such as 0.999, or a half-life in rounds, such as 700; None: never"
    if isinstance(forget, (bool, np.bool_)) or not isinstance(forget, Real):
        raise InputTypeError(f"forget is {forget!r:.40} of type {type(forget).__name__}; {remedy}")
    try:
        number = float(forget)
    except OverflowError:  # an integer too large for a float
        number = math.inf
    if not 0.0 < number < math.inf:
        raise InputError(f"forget must be above 0 and finite, got {forget!s:.40}; {remedy}")
    factor = number if number <= 1.0 else math.pow(0.5, 1.0 / number)
    return factor if factor < 1.0 else None


def check_can_forget(sketch: Sketch, estimate: Estimate) -> None:
    """Raise if a sketch or reward model of the user's own cannot forget."""
    sketch._check_can_forget()
    if type(estimate).forget is Estimate.forget:
        raise InputTypeError(
            f"{type(estimate).__name__} cannot forget: give it a method forget(factor), or leave out forget="
        )


class Clock:
    """Collects the factors of the rounds, and says when to apply them.

    Forgetting means that the precision must be computed again. So it is applied when that happens anyway and
    at least 2 % are to be forgotten, and otherwise once 10 % are. The rows in between have equal weights.
    """

    __slots__ = ("_at_rebuild", "_at_the_latest", "factor", "last", "merges", "seen", "since")

    def __init__(self, factor: float) -> None:
        self.factor = factor
        self.since = 0
        """The number of rounds whose factors are not applied yet."""
        self.last = 0
        """The number of rounds when forgetting was last applied."""
        self.merges = 1.0
        """The factor by which delta shrinks because of merges."""
        self.seen: int | None = None
        """The round of a shared clock up to which ``since`` counts; None if the clock is not shared."""
        self._at_rebuild, self._at_the_latest = (
            max(1, math.ceil(math.log(left) / math.log(factor))) for left in (_AT_A_REBUILD, _AT_THE_LATEST)
        )

    def is_due(self, count: int, change: Change, sketch: Sketch) -> bool:
        """Count more rounds, and say whether forgetting is due now.

        A dense matrix takes rows in without a rebuild, so there it waits for the latest moment.
        """
        self.since += count
        if self.since < self._at_rebuild:
            return False
        return self.since >= self._at_the_latest or (change.rebuilt and not sketch.is_dense)

    def follow(self, now: int) -> None:
        """Count the rounds of a shared clock up to now."""
        self.since += now - (now if self.seen is None else self.seen)
        self.seen = now

    def rounds_left(self, now: int) -> int:
        """The rounds of a shared clock until forgetting is due at the latest."""
        return self._at_the_latest - self.since - (now - (now if self.seen is None else self.seen))

    def room(self, sketch: Sketch) -> int:
        """The number of rounds that can be learned at once before forgetting may be due."""
        return max(1, min(self._at_the_latest - self.since, sketch.plain_room))

    def strike(self, rounds: int) -> float:
        """Return the collected factor, to be applied after ``rounds`` rounds, and start collecting again."""
        factor = max(math.pow(self.factor, self.since), _LEAST)
        self.since, self.last = 0, rounds
        return factor

    def careful(self, confidence: Confidence) -> Confidence:
        """The confidence with the delta that is left at this moment."""
        return confidence.after_forgetting(self.last, merges=self.merges)

    def add(self, other: "Clock", rounds: int) -> None:
        """Merge with a clock of the same factor. Neither may have factors to apply."""
        for clock in (self, other):
            self.merges *= (clock.last + 1.0) * (clock.last + 2.0)
        self.merges = min(self.merges * other.merges, _MOST)
        self.last = rounds

    def dump(self) -> Sequence[float]:
        """The values that ``undump`` takes."""
        own = self.factor, self.since, self.last, self.merges
        return own if self.seen is None else (*own, self.seen)

    @classmethod
    def undump(cls, saved: Sequence[float]) -> "Clock":
        """The clock that ``dump`` described."""
        factor, since, last, merges, *seen = saved
        clock = cls(check_real("the factor of forgetting", factor, above=0.0, below=1.0))
        clock.since = check_count("rounds to be forgotten", since, at_least=0)
        clock.last = check_count("the round of the last forgetting", last, at_least=0)
        clock.merges = check_real("the share of delta for merges", merges, at_least=1.0)
        if seen:  # not in files of 0.14
            clock.seen = check_count("the round of the shared clock", seen[0], at_least=0)
        return clock
