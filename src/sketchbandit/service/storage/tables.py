"""The journal's tables. Decisions and rewards are only ever appended (and dropped when they are old)."""

from typing import NamedTuple

import sqlalchemy as sa

FORMAT = 1

_metadata = sa.MetaData()
_Sequence = sa.BigInteger().with_variant(sa.Integer, "sqlite")  # SQLite's rowid is called INTEGER

service = sa.Table(
    "sketchbandit_service",
    _metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("format", sa.Integer, nullable=False),
    sa.Column("instance", sa.String(32), nullable=False),
    sa.Column("batch", sa.BigInteger, nullable=False),
    sa.Column("seq", sa.BigInteger, nullable=False),
    sa.Column("dropped", sa.BigInteger, nullable=False),
)
"""One row: the format, who this is, the number of the last commit, the highest number that was given to a
record, and up to where old rows were dropped."""

bandits = sa.Table(
    "sketchbandit_bandits",
    _metadata,
    sa.Column("id", _Sequence, primary_key=True, autoincrement=False),
    sa.Column("name", sa.String(128), unique=True),
    sa.Column("config", sa.Text, nullable=False),
    sa.Column("created", sa.Double, nullable=False),
)
"""A bandit without a name was deleted, and its rows are being removed."""

arms = sa.Table(
    "sketchbandit_arms",
    _metadata,
    sa.Column("bandit", _Sequence, primary_key=True, autoincrement=False),
    sa.Column("arm", sa.String(128), primary_key=True),
    sa.Column("place", _Sequence, nullable=False),
    sa.Column("features", sa.LargeBinary, nullable=False),
)

decisions = sa.Table(
    "sketchbandit_decisions",
    _metadata,
    sa.Column("seq", _Sequence, primary_key=True, autoincrement=False),
    sa.Column("bandit", sa.BigInteger, nullable=False),
    sa.Column("tag", sa.String(16), nullable=False),
    sa.Column("at", sa.Double, nullable=False),
    sa.Column("arm_index", sa.Integer, nullable=False),
    sa.Column("arm_id", sa.String(128)),
    sa.Column("arm_count", sa.Integer, nullable=False),
    sa.Column("features", sa.LargeBinary, nullable=False),
    sa.Column("score", sa.Double, nullable=False),
    sa.Column("mean", sa.Double, nullable=False),
    sa.Column("propensity", sa.Double, nullable=False),
    sa.Column("rounds", sa.BigInteger, nullable=False),
    sa.Column("key", sa.String(128)),
    sa.Column("request", sa.String(32)),
    sa.Column("top", sa.Text),
    sa.Column("arms", sa.LargeBinary),
)

rewards = sa.Table(
    "sketchbandit_rewards",
    _metadata,
    sa.Column("seq", _Sequence, primary_key=True, autoincrement=False),
    sa.Column("decision", sa.BigInteger, nullable=False, unique=True),  # none is learned from twice
    sa.Column("bandit", sa.BigInteger, nullable=False),
    sa.Column("kind", sa.String(8), nullable=False),
    sa.Column("reward", sa.Double),
    sa.Column("at", sa.Double, nullable=False),
)

GIVEN = "given"
DEFAULT = "default"


class DecisionRow(NamedTuple):
    """A row of ``decisions``; its fields are the columns, in order."""

    seq: int
    """Its place in the journal; rewards and bandits are numbered in the same sequence."""
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
    rounds: int
    """How many rewards the policy had learned from."""
    key: str | None
    """The client's idempotency key, and a digest of its request."""
    request: str | None
    top: str | None
    """JSON: the further arms that were asked for."""
    arms: bytes | None
    """All arms (npy), where the bandit logs them."""


class RewardRow(NamedTuple):
    """A row of ``rewards``: the end of a decision."""

    seq: int
    decision: int
    bandit: int
    kind: str
    """GIVEN by a client, or DEFAULT because nobody answered."""
    reward: float | None
    """None: nothing was learned."""
    at: float


def create(connection: sa.Connection) -> None:
    """Make the tables that are missing."""
    _metadata.create_all(connection)
