"""The last arms shown, for the dashboard."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from sketchbandit.service.decision_ids import decision_id
from sketchbandit.service.storage.records import DecisionRow, EstimateRow, RewardRow

_MOST = 20


@dataclass(slots=True)
class RecentArm:
    """One of them, and what became of it."""

    seq: int
    decision: str
    position: int
    at: float
    arm: str
    arms: int
    score: float
    width: float | None
    propensity: float | None
    reward: float | None = None
    kind: str | None = None


class RecentArms:
    """Twenty of them."""

    def __init__(self) -> None:
        self._arms: deque[RecentArm] = deque(maxlen=_MOST)

    def __reversed__(self) -> Iterator[RecentArm]:
        return reversed(self._arms)

    def showed(self, row: DecisionRow) -> None:
        """One more."""
        self._arms.append(
            RecentArm(
                seq=row.seq,
                decision=decision_id(row.seq - row.position, row.tag),
                position=row.position,
                at=row.at,
                arm=arm_name(row),
                arms=row.arm_count,
                score=row.score,
                width=row.width,
                propensity=row.propensity or None,
            )
        )

    def rewarded(self, row: RewardRow) -> None:
        """Its reward has come, or the default."""
        for arm in self._arms:
            if arm.seq == row.decision:
                arm.reward, arm.kind = row.reward, row.kind

    def estimated(self, row: EstimateRow) -> None:
        """Its probability is known now."""
        for arm in self._arms:
            if arm.seq == row.decision:
                arm.propensity = row.propensity


def arm_name(row: DecisionRow) -> str:
    """What people call the arm: its id, or its place."""
    return row.arm_id if row.arm_id is not None else str(row.arm_index)
