"""Decisions that wait for rewards."""

from dataclasses import dataclass, field

from sketchbandit.service.storage.records import DecisionRow
from sketchbandit.service.vectors import Vector, nbytes

_OVERHEAD = 400  # bytes of an arm that waits, besides its features


def held_bytes(features: Vector) -> int:
    """What an arm costs while it waits, roughly."""
    return nbytes(features) + _OVERHEAD


@dataclass(slots=True)
class Shown:
    """What is kept of an arm until its reward comes."""

    arm: str | None
    features: Vector


@dataclass(slots=True)
class OpenDecision:
    """A decision some of whose arms wait for their reward."""

    tag: str
    at: float
    key: str | None
    arm_count: int
    propensity: float
    """Of the arm shown first; 0: not known."""
    waiting: dict[int, Shown] = field(default_factory=dict)
    """By position."""

    @classmethod
    def of(cls, row: DecisionRow) -> "OpenDecision":
        """As the row of one of its arms tells; nothing waits yet."""
        return cls(row.tag, row.at, row.key, row.arm_count, row.propensity if row.position == 0 else 0.0)

    def positions(self) -> dict[str, int]:
        """Where arms were shown first, by id, as far as that is sure: from the first on while all wait."""
        found: dict[str, int] = {}
        for place, (position, shown) in enumerate(self.waiting.items()):
            if position != place:
                break
            if shown.arm is not None:
                found.setdefault(shown.arm, place)
        return found
