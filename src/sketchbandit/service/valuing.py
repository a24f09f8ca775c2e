"""What a candidate would have earned, by the decisions of the policy that decides.

A decision whose arm was chosen with probability p counts with the weight w = q/p, q being the probability
with which the candidate would have chosen that arm (inverse propensities). The mean of w r is unbiased for
the mean reward of the candidate, as it was when each decision was made. Weights are not clipped: the
confidence sequence (``evaluation.sequences``, an empirical-Bernstein one by a mixture) needs no bound on
them. Its lower end rests on w u, its upper end on w (1 - u), u being the reward scaled to [0, 1] by the range
that was given.

Decisions are added in stretches, which end by the clock. V = sum (x - g)² has the same g in all of a stretch:
the mean of what was there before it, and so nothing that the stretch itself tells.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from sketchbandit.evaluation.sequences import mixture_boundary
from sketchbandit.service.weighed import NOTHING, Weighed

LEVEL = 0.95
"""With which the interval holds, at all times together."""


class Interval(NamedTuple):
    """A mean reward, and an interval that holds at any time; no ends where a reward was out of its range."""

    value: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Valued:
    """What a candidate would have earned, and what was earned by the same decisions."""

    count: int
    effective: float
    """Decisions of equal weight that they are worth."""
    candidate: Interval
    live: Interval


class Value:
    """The state of an estimate: sums, and the V of four confidence sequences."""

    def __init__(self, total: Weighed = NOTHING, variances: tuple[float, ...] = (0.0,) * 4) -> None:
        self.total = total
        self._variances = variances

    def plus(self, stretch: Weighed) -> "Value":
        """With the decisions of a stretch."""
        pairs = zip(self._variances, _series(self.total), _series(stretch), strict=True)
        total, count = self.total, stretch.count
        variances = []
        for variance, (before, _), (added, squares) in pairs:
            guess = min(max((0.5 + before) / (total.count + 1), 0.0), 1.0)  # 1/2 counts as one more
            seen = squares - 2.0 * guess * added + count * guess * guess
            variances.append(variance + max(seen, 0.0))
        return Value(total + stretch, tuple(variances))

    def told(self, reward_range: tuple[float, float]) -> Valued | None:
        """In the unit of rewards; None: there is nothing yet."""
        total, (least, most) = self.total, reward_range
        if not total.count:
            return None
        sums = np.array([one for one, _ in _series(total)])
        reach = mixture_boundary(np.array(self._variances), (1.0 - LEVEL) / 2.0)
        bounds = np.clip((sums - reach) / total.count, 0.0, 1.0)
        width = most - least

        def interval(mean: float, low: float, high: float) -> Interval:
            value = least + width * mean
            if total.outside:
                return Interval(value, None, None)
            return Interval(value, least + width * low, most - width * high)

        low, high, own_low, own_high = bounds.tolist()
        worth = total.weight * total.weight / total.weight_sq if total.weight_sq else 0.0
        candidate = interval(total.up / total.count, low, high)
        return Valued(total.count, worth, candidate, interval(total.own / total.count, own_low, own_high))

    def dump(self) -> list[Any]:
        """As JSON."""
        return [list(self.total), list(self._variances)]

    @classmethod
    def undump(cls, saved: list[Any]) -> "Value":
        """Back from ``dump``."""
        return cls(Weighed(*saved[0]), tuple(saved[1]))


def _series(of: Weighed) -> tuple[tuple[float, float], ...]:
    """Sums, and sums of squares, of w u, w (1 - u), u and 1 - u."""
    return (
        (of.up, of.up_sq),
        (of.weight - of.up, of.down_sq),
        (of.own, of.own_sq),
        (of.count - of.own, of.count - 2.0 * of.own + of.own_sq),
    )
