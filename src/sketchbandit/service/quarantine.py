"""Bandits that cannot be used, while all others can."""

from typing import NamedTuple


class Quarantined(NamedTuple):
    """A bandit that is set aside: nothing of it is lost, and nothing of it is served."""

    number: int
    name: str
    reason: str
