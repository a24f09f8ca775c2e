"""The records of the journal: the rows of its tables, and what is committed together."""

from collections.abc import Callable
from typing import NamedTuple

import sqlalchemy as sa

NewNumber = Callable[[], int]

GIVEN, DEFAULT = "given", "default"
ADDED, RETIRED = "added", "retired"
REMOVED, PROMOTED = "removed", "promoted"


class DecisionRow(NamedTuple):
    """A row of ``decisions``: one shown arm. Its fields are the columns, in order."""

    seq: int
    """Its place in the journal. All records and bandits are numbered in one sequence."""
    bandit: int
    tag: str
    """Makes the id of the decision unguessable."""
    at: float
    arm_index: int
    arm_id: str | None
    arm_count: int
    features: bytes
    """The features of the chosen arm."""
    score: float
    mean: float
    propensity: float
    """The propensity given the arms shown before. 0: not known, unless ``estimates`` has it."""
    rounds: int
    """How many rewards the policy had learned from."""
    key: str | None
    """The client's idempotency key, and a digest of its request. They are on every row of a slate."""
    request: str | None
    top: str | None
    """The requested ranking, as JSON."""
    arms: bytes | None
    """All arms, if the bandit logs them."""
    slate: int | None = None
    """The first row of the slate, if this is a further one. The rows of a slate have consecutive numbers."""
    position: int = 0
    """The position in the slate."""
    width: float | None = None
    """The width of the confidence interval, divided by its radius. Rows of format 1 do not have it."""

    @property
    def first(self) -> int:
        """The first row of its slate, which identifies the decision."""
        return self.seq - self.position

    @property
    def arm_name(self) -> str:
        """The name of the arm for people: its id, or its place."""
        return self.arm_id if self.arm_id is not None else str(self.arm_index)


class RewardRow(NamedTuple):
    """A row of ``rewards``: the outcome of one shown arm."""

    seq: int
    decision: int
    """The row of the arm."""
    bandit: int
    kind: str
    """GIVEN by a client, or DEFAULT because no reward came in time."""
    reward: float | None
    """None: nothing was learned."""
    at: float
    position: int = 0
    """The position in the slate: ``decision - position`` is its first row."""


class EstimateRow(NamedTuple):
    """A row of ``estimates``: a propensity that was not known when the arm was shown."""

    seq: int
    decision: int
    bandit: int
    propensity: float


class ActionRow(NamedTuple):
    """A row of ``actions``: an action was ADDED to a bandit, or RETIRED."""

    seq: int
    bandit: int
    action: str
    change: str


class ScalingRow(NamedTuple):
    """A row of ``scalings``: how a bandit scales features from here on."""

    seq: int
    bandit: int
    scaling: bytes
    """In the form of ``scaling_bytes``."""
    arms: int
    """The number of requests it was fitted to; of arms in records of 0.14."""
    is_last: bool
    """Whether it is final."""


class CandidateRow(NamedTuple):
    """A row of ``candidates``: a candidate was ADDED to a bandit, REMOVED from it, or PROMOTED."""

    seq: int
    bandit: int
    name: str
    change: str
    settings: str | None
    """For an added candidate: the settings of its policy, as JSON."""
    kept: str | None
    """For a promotion: the name under which the old policy becomes a candidate."""
    at: float


class ChanceRow(NamedTuple):
    """A row of ``chances``: the probabilities with which candidates would have chosen shown arms."""

    seq: int
    bandit: int
    chances: bytes
    """In the form of ``chances.encode``."""


class Slate(NamedTuple):
    """A decision: the rows of all shown arms, mostly one. They are committed together."""

    rows: tuple[DecisionRow, ...]

    @property
    def seq(self) -> int:
        """The number of the last row."""
        return self.rows[-1].seq

    def numbered(self, new_number: NewNumber) -> "Slate":
        """The rows with their places in the journal, one after another."""
        first = self.rows[0]._replace(seq=new_number())
        further = (row._replace(seq=new_number(), slate=first.seq) for row in self.rows[1:])
        return Slate((first, *further))


class ArmRow(NamedTuple):
    """A row of ``arms``: a stored arm."""

    bandit: int
    arm: str
    place: int
    features: bytes


class Statements(NamedTuple):
    """Anything else to commit with the batch: a new bandit, arms, deletions."""

    statements: tuple[sa.Executable, ...]
    arms: tuple[ArmRow, ...] = ()
    """An existing arm gets new features."""


Row = DecisionRow | RewardRow | EstimateRow | ActionRow | ScalingRow | CandidateRow | ChanceRow
"""The records that a bandit books."""
Record = Slate | RewardRow | EstimateRow | ActionRow | ScalingRow | CandidateRow | ChanceRow | Statements
