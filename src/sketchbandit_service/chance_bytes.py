"""Encodes the probabilities with which candidates would have chosen the shown arms."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

_KIND = np.dtype([("decision", "<i8"), ("candidate", "<i8"), ("chance", "<f8")])


class Chance(NamedTuple):
    """The probability for one decision, by its first row, and one candidate, by its number."""

    decision: int
    candidate: int
    chance: float


def encode(chances: Iterable[Chance]) -> bytes:
    """The bytes in a record of the journal.

    >>> decode(encode([Chance(7, 2, 0.25)]))
    [Chance(decision=7, candidate=2, chance=0.25)]
    """
    return np.array([*map(tuple, chances)], dtype=_KIND).tobytes()


def decode(payload: bytes) -> list[Chance]:
    """Read what ``encode`` has written. Raises ValueError for other bytes."""
    return [Chance(*row) for row in np.frombuffer(payload, dtype=_KIND).tolist()]
