"""Sums over decisions, weighted by how likely a candidate would have made them."""

from operator import add
from typing import NamedTuple


class Weighed(NamedTuple):
    """Sums over decisions with weights w and rewards u, scaled to [0, 1].

    >>> found = weighed(2.0, 0.25) + weighed(0.0, 1.0)
    >>> found.count, found.weight, found.up, found.down_sq, found.own
    (2, 2.0, 0.5, 2.25, 1.25)
    """

    count: int  # type: ignore[assignment]  # tuples have a method of that name
    weight: float
    weight_sq: float
    up: float
    """The sum of w u, ..."""
    up_sq: float
    """... the sum of its squares, ..."""
    down_sq: float
    """... and the sum of the squares of w (1 - u)."""
    own: float
    """The sum of u, ..."""
    own_sq: float
    """... and the sum of its squares."""
    outside: int
    """Rewards outside their range."""

    def __add__(self, other: "Weighed") -> "Weighed":  # type: ignore[override]
        return Weighed(*map(add, self, other))


NOTHING = Weighed(0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0)


def weighed(weight: float, u: float) -> Weighed:
    """The sums for one decision."""
    up, down = weight * u, weight * (1.0 - u)
    is_outside = not 0.0 <= u <= 1.0
    return Weighed(1, weight, weight * weight, up, up * up, down * down, u, u * u, int(is_outside))
