"""The rows of an evaluation."""

from typing import NamedTuple

LOGGED = "logged"
"""The name of the policy that made the log."""


class Estimate(NamedTuple):
    """The estimated mean reward per decision of a candidate, by one method.

    Attributes
    ----------
    policy, method : str
        The name of the candidate, and the method.
    value : float
        The estimate.
    low, high : float
        The ends of the confidence interval; nan if nothing can be said.
    effective_size : float
        The effective sample size: so many decisions of the candidate itself would say as much.

    """

    policy: str
    method: str
    value: float
    low: float
    high: float
    effective_size: float


class Difference(NamedTuple):
    """How much more one candidate earns per decision than another, by one method, in a paired comparison.

    Attributes
    ----------
    policy, other, method : str
        The two candidates, and the method.
    value : float
        The estimated difference, ``policy`` minus ``other``.
    low, high : float
        The ends of the confidence interval; nan if nothing can be said.
    verdict : str
        Why the difference is not clear, and how many more decisions would decide; empty if it is clear.

    """

    policy: str
    other: str
    method: str
    value: float
    low: float
    high: float
    verdict: str = ""

    @property
    def is_clear(self) -> bool:
        """Whether zero is outside of the interval."""
        return self.low > 0.0 or self.high < 0.0
