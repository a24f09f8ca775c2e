"""The journal's tables. Their rows are only ever appended (and dropped when they are old)."""

import sqlalchemy as sa
from sqlalchemy.schema import CreateColumn

FORMAT = 3

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
    sa.Column("arms_version", sa.BigInteger, nullable=False, server_default="0"),
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
    sa.Column("slate", sa.BigInteger),
    sa.Column("position", sa.Integer, nullable=False, server_default="0"),
    sa.Column("width", sa.Double),
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
    sa.Column("position", sa.Integer, nullable=False, server_default="0"),
)

estimates = sa.Table(
    "sketchbandit_estimates",
    _metadata,
    sa.Column("seq", _Sequence, primary_key=True, autoincrement=False),
    sa.Column("decision", sa.BigInteger, nullable=False, unique=True),
    sa.Column("bandit", sa.BigInteger, nullable=False),
    sa.Column("propensity", sa.Double, nullable=False),
)

actions = sa.Table(
    "sketchbandit_actions",
    _metadata,
    sa.Column("seq", _Sequence, primary_key=True, autoincrement=False),
    sa.Column("bandit", sa.BigInteger, nullable=False),
    sa.Column("action", sa.String(128), nullable=False),
    sa.Column("change", sa.String(8), nullable=False),
)

scalings = sa.Table(
    "sketchbandit_scalings",
    _metadata,
    sa.Column("seq", _Sequence, primary_key=True, autoincrement=False),
    sa.Column("bandit", sa.BigInteger, nullable=False),
    sa.Column("scaling", sa.LargeBinary, nullable=False),
    sa.Column("arms", sa.BigInteger, nullable=False),
    sa.Column("is_last", sa.Boolean, nullable=False),
)

_ADDED: dict[int, list[tuple[sa.Table, str]]] = {
    1: [(decisions, "slate"), (decisions, "position"), (decisions, "width"), (rewards, "position")],
    2: [],  # a table, which ``create`` makes
}
"""By format: the columns that the next one has more."""


def create(connection: sa.Connection) -> None:
    """Make the tables that are missing."""
    _metadata.create_all(connection)


def migrate(connection: sa.Connection, found: int) -> None:
    """Bring the tables of an earlier format up to this one: columns are added, no row is touched."""
    for older in range(found, FORMAT):
        for table, name in _ADDED[older]:
            column = CreateColumn(table.c[name]).compile(dialect=connection.dialect)
            connection.exec_driver_sql(f"ALTER TABLE {table.name} ADD COLUMN {column}")
    connection.execute(service.update().values(format=FORMAT))
