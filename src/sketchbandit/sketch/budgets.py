"""Error budgets: how large the error bound of a sketch may be after t rows."""

import math
from dataclasses import dataclass
from typing import Protocol

_FIRST_ROWS = 2000.0
_FIRST_SHARE = 0.6
# Where the two pieces of Anytime meet: 1 - 1 / (_JOIN + 0) = _FIRST_SHARE.
_JOIN = 1.0 / (1.0 - _FIRST_SHARE)


def order_of_error(regret_order: float, compensation: float) -> float:
    """The p for which an error of O(t^p) leaves a regret of Õ(t^regret_order).

    (2·order - 1)/3 without compensation (the paper's remark on choosing parameters), 2·order - 1 with one,
    whose bound has e^(1/2) in it instead of e^(3/2).

    Examples
    --------
    >>> order_of_error(0.75, compensation=1.0)
    0.5

    """
    exponent = 2.0 * regret_order - 1.0
    return exponent if compensation else exponent / 3.0


class Budget(Protocol):
    """An increasing function of the number of rows seen."""

    def __call__(self, rows: int) -> float:
        """The largest error bound allowed after so many rows."""

    @property
    def limit(self) -> float:
        """What the budget never exceeds; inf if it grows for ever."""

    @property
    def order(self) -> float:
        """The p of its growth t^p; 0 if it is bounded."""


@dataclass(frozen=True)
class Horizon:
    """epsilon·t/T: a constant rate up to T rows, and nothing more after that.

    Examples
    --------
    >>> budget = Horizon(4.0, horizon=1000)
    >>> budget(250), budget(1000), budget(5000)
    (1.0, 4.0, 4.0)

    """

    epsilon: float
    horizon: int
    order = 0.0

    def __call__(self, rows: int) -> float:
        """Linear up to the horizon."""
        return self.epsilon * min(1.0, rows / self.horizon)

    @property
    def limit(self) -> float:
        """epsilon."""
        return self.epsilon


@dataclass(frozen=True)
class Anytime:
    """Below epsilon for ever: 3/5 of it at a constant rate over n = 2000 rows, the rest more and more slowly.

        epsilon · 3t / 5n                        t <= n,
        epsilon · (1 - 1 / (2.5 + log2(t/n)))    t > n.

    Any budget that is bounded must slow down: its rate at t, times t, has a finite integral over log t.
    That of this one falls like 1/log² t.

    Examples
    --------
    >>> budget = Anytime(10.0)
    >>> budget(1000), budget(2000), round(budget(32_000), 3), budget(10**30) < 10.0
    (3.0, 6.0, 8.462, True)

    """

    epsilon: float
    order = 0.0

    def __call__(self, rows: int) -> float:
        """The budget: linear, then concave."""
        if rows <= _FIRST_ROWS:
            return self.epsilon * (_FIRST_SHARE * rows / _FIRST_ROWS)
        return self.epsilon * (1.0 - 1.0 / (_JOIN + math.log2(rows / _FIRST_ROWS)))

    @property
    def limit(self) -> float:
        """epsilon."""
        return self.epsilon


@dataclass(frozen=True)
class Growing:
    """epsilon·t^p, for a regret of a given order at every t.

    Examples
    --------
    >>> budget = Growing(2.0, order=0.5)
    >>> budget(100), budget.limit
    (20.0, inf)

    """

    epsilon: float
    order: float

    def __call__(self, rows: int) -> float:
        """epsilon times a power of the number of rows; 0 before the first row."""
        return self.epsilon * float(rows) ** self.order if rows else 0.0

    @property
    def limit(self) -> float:
        """inf, unless the order is 0."""
        return math.inf if self.order else self.epsilon


def budget_for(epsilon: float, horizon: int | None, order: float | None, compensation: float) -> Budget:
    """The budget of an adaptive sketch with these settings."""
    if horizon is not None:
        return Horizon(epsilon, horizon)
    if order is not None:
        return Growing(epsilon, order_of_error(order, compensation))
    return Anytime(epsilon)
