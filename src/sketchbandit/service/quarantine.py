"""Bandits that are out of service, while the others go on."""

from typing import NamedTuple


class Quarantined(NamedTuple):
    """A bandit one of whose records could not be applied."""

    number: int
    name: str
    reason: str
