"""Rows of an evaluation."""

from typing import NamedTuple

LOGGED = "logged"
"""The policy that made the log."""


class Estimate(NamedTuple):
    """What a candidate earns a decision, by one method.

    Attributes
    ----------
    policy, method : str
        Who, and how it was found.
    value : float
        The estimate.
    low, high : float
        The interval; nan where nothing can be said.
    effective_size : float
        So many decisions of the candidate's own would be worth as much.

    """

    policy: str
    method: str
    value: float
    low: float
    high: float
    effective_size: float


class Difference(NamedTuple):
    """What one candidate earns more than another a decision, by one method, paired."""

    policy: str
    other: str
    method: str
    value: float
    low: float
    high: float

    @property
    def is_clear(self) -> bool:
        """Whether the interval leaves out zero."""
        return self.low > 0.0 or self.high < 0.0
