"""Bandits that cannot be used. All others are not affected."""

from typing import NamedTuple


class Quarantined(NamedTuple):
    """A bandit out of service. Nothing of it is lost, and no request to it is answered."""

    number: int
    name: str
    reason: str
