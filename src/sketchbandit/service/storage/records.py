"""What is written to the journal: the rows of its tables, and what is committed as one."""

from collections.abc import Callable
from typing import NamedTuple

import sqlalchemy as sa

NewNumber = Callable[[], int]

GIVEN, DEFAULT = "given", "default"
ADDED, RETIRED = "added", "retired"
REMOVED, PROMOTED = "removed", "promoted"


class DecisionRow(NamedTuple):
    """A row of ``decisions``: one arm shown. Its fields are the columns, in order."""

    seq: int
    """Its place in the journal; all records and bandits are numbered in the same sequence."""
    bandit: int
    tag: str
    """What makes the decision's id unguessable."""
    at: float
    arm_index: int
    arm_id: str | None
    arm_count: int
    features: bytes
    """Of the arm chosen."""
    score: float
    mean: float
    propensity: float
    """Of the arm, given those shown before it; 0: not known, unless a row of ``estimates`` says."""
    rounds: int
    """How many rewards the policy had learned from."""
    key: str | None
    """The client's idempotency key, and a digest of its request; on every row of a slate."""
    request: str | None
    top: str | None
    """JSON: the further arms that were asked for."""
    arms: bytes | None
    """All arms, where the bandit logs them."""
    slate: int | None = None
    """The first row of the slate, where this is a further one; theirs are the numbers that follow it."""
    position: int = 0
    """In the slate."""
    width: float | None = None
    """Of the confidence interval, over its radius; rows of format 1 do not have it."""

    @property
    def first(self) -> int:
        """The first row of its slate, by which its decision is known."""
        return self.seq - self.position

    @property
    def arm_name(self) -> str:
        """What people call the arm: its id, or its place."""
        return self.arm_id if self.arm_id is not None else str(self.arm_index)


class RewardRow(NamedTuple):
    """A row of ``rewards``: what became of one arm shown."""

    seq: int
    decision: int
    """The row of the arm."""
    bandit: int
    kind: str
    """GIVEN by a client, or DEFAULT because nobody answered."""
    reward: float | None
    """None: nothing was learned."""
    at: float
    position: int = 0
    """In the slate: ``decision - position`` is its first row."""


class EstimateRow(NamedTuple):
    """A row of ``estimates``: a probability that was not known when the arm was shown."""

    seq: int
    decision: int
    bandit: int
    propensity: float


class ActionRow(NamedTuple):
    """A row of ``actions``: one was ADDED to a bandit, or RETIRED."""

    seq: int
    bandit: int
    action: str
    change: str


class ScalingRow(NamedTuple):
    """A row of ``scalings``: how a bandit reads features from here on."""

    seq: int
    bandit: int
    scaling: bytes
    """As ``scaling_bytes`` writes it."""
    arms: int
    """How many it was fitted to."""
    is_last: bool
    """Whether it is fixed now."""


class CandidateRow(NamedTuple):
    """A row of ``candidates``: one was ADDED to a bandit, REMOVED from it, or PROMOTED."""

    seq: int
    bandit: int
    name: str
    change: str
    settings: str | None
    """JSON: what its policy is made with, where it is added."""
    kept: str | None
    """Where one is promoted: under which name the policy that decided so far goes on as a candidate."""
    at: float


class ChanceRow(NamedTuple):
    """A row of ``chances``: with which probability candidates would have chosen arms that were shown."""

    seq: int
    bandit: int
    chances: bytes
    """As ``chances.encode`` writes them."""


class Slate(NamedTuple):
    """A decision: the rows of all arms shown, mostly one. They are committed together."""

    rows: tuple[DecisionRow, ...]

    @property
    def seq(self) -> int:
        """Of the last row."""
        return self.rows[-1].seq

    def numbered(self, new_number: NewNumber) -> "Slate":
        """With their places in the journal, one after another."""
        first = self.rows[0]._replace(seq=new_number())
        further = (row._replace(seq=new_number(), slate=first.seq) for row in self.rows[1:])
        return Slate((first, *further))


class Statements(NamedTuple):
    """Anything else that is to be committed with the batch: a new bandit, arms, deletions."""

    statements: tuple[sa.Executable, ...]
    arms: tuple[dict[str, object], ...] = ()
    """Rows of ``tables.arms``; an arm that is there gets new features."""


Row = DecisionRow | RewardRow | EstimateRow | ActionRow | ScalingRow | CandidateRow | ChanceRow
"""What a bandit books."""
Record = Slate | RewardRow | EstimateRow | ActionRow | ScalingRow | CandidateRow | ChanceRow | Statements
