"""When a policy forgets, and how much."""

import math
from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np

from sketchbandit.errors import InputError, InputTypeError
from sketchbandit.estimate import Estimate
from sketchbandit.sketch import Change, Sketch
from sketchbandit.theory import Confidence

# What is left when it is time: where the sketch is rebuilt anyway, and wherever that does not come.
_AT_A_REBUILD, _AT_THE_LATEST = 0.98, 0.9
_LEAST, _MOST = 1e-300, 1e300


def read_forget(forget: Any) -> float | None:
    """The factor a round of what the user gave: a factor up to 1, a half-life above, or None; None: never.

    >>> read_forget(0.999), round(read_forget(100), 6), read_forget(1.0), read_forget(None)
    (0.999, 0.993092, None, None)
    """
    if forget is None:
        return None
    remedy = "give a factor a round, such as 0.999, or a half-life in rounds, such as 700; None: never"
    if isinstance(forget, (bool, np.bool_)) or not isinstance(forget, Real):
        raise InputTypeError(f"forget is {forget!r:.40} of type {type(forget).__name__}; {remedy}")
    try:
        number = float(forget)
    except OverflowError:  # an integer beyond any float
        number = math.inf
    if not 0.0 < number < math.inf:
        raise InputError(f"forget must be above 0 and finite, got {forget!s:.40}; {remedy}")
    factor = number if number <= 1.0 else math.pow(0.5, 1.0 / number)
    return factor if factor < 1.0 else None


def check_can_forget(sketch: Sketch, estimate: Estimate) -> None:
    """Refuse parts of the user's own that have no way to forget."""
    if type(sketch)._forget is Sketch._forget:
        raise InputTypeError(f"{type(sketch).__name__} cannot forget: it has no method _forget")
    if type(estimate).forget is Estimate.forget:
        raise InputTypeError(f"{type(estimate).__name__} cannot forget: it has no method forget")


class Clock:
    """Gathers the factor of every round, and says when it is to be applied.

    To forget means to derive the precision anew. So it is done where that happens anyway, once 2 % are to be
    forgotten, and otherwise once 10 % are. All rows in between have the same weight.
    """

    __slots__ = ("_at_rebuild", "_at_the_latest", "factor", "last", "merges", "since")

    def __init__(self, factor: float) -> None:
        self.factor = factor
        self.since = 0
        """Rounds whose factors are still to be applied."""
        self.last = 0
        """The round after which something was forgotten last."""
        self.merges = 1.0
        """What a radius has to be more careful by for merges."""
        self._at_rebuild, self._at_the_latest = (
            max(1, math.ceil(math.log(left) / math.log(factor))) for left in (_AT_A_REBUILD, _AT_THE_LATEST)
        )

    def is_due(self, count: int, change: Change, sketch: Sketch) -> bool:
        """So many rounds more: whether it is time now. A matrix takes rows in without being derived anew."""
        self.since += count
        if self.since < self._at_rebuild:
            return False
        return self.since >= self._at_the_latest or (change.rebuilt and not sketch.is_dense)

    def room(self, sketch: Sketch) -> int:
        """How many rounds can come at once such that it is time after the last of them at most."""
        return max(1, min(self._at_the_latest - self.since, sketch.plain_room))

    def strike(self, rounds: int) -> float:
        """The factor gathered, which is applied after so many rounds: it gathers from 1 on again."""
        factor = max(math.pow(self.factor, self.since), _LEAST)
        self.since, self.last = 0, rounds
        return factor

    def careful(self, confidence: Confidence) -> Confidence:
        """With the delta that is left for this moment."""
        return confidence.after_forgetting(self.last, merges=self.merges)

    def add(self, other: "Clock", rounds: int) -> None:
        """Two of the same factor that both have nothing to apply; ``rounds``: of both together."""
        for clock in (self, other):
            self.merges *= (clock.last + 1.0) * (clock.last + 2.0)
        self.merges = min(self.merges * other.merges, _MOST)
        self.last = rounds

    def dump(self) -> Sequence[float]:
        """What ``undump`` makes the same of."""
        return self.factor, self.since, self.last, self.merges

    @classmethod
    def undump(cls, saved: Sequence[float]) -> "Clock":
        """The clock that ``dump`` described."""
        factor, since, last, merges = saved
        if not 0.0 < factor < 1.0:
            raise InputError(f"the factor of forgetting is {factor}")
        clock = cls(float(factor))
        clock.since, clock.last, clock.merges = int(since), int(last), float(merges)
        return clock
