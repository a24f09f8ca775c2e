"""The journal's tables. Rows are only appended, and dropped when they are old."""

from collections.abc import Iterator, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.schema import CreateColumn

FORMAT = 6

_PAGE, _MOST_BYTES = 1000, 4 * 1024 * 1024  # rows and bytes read at once
_ROW = 300  # bytes of a row without features and arms

_metadata = sa.MetaData()
_Sequence = sa.BigInteger().with_variant(sa.Integer, "sqlite")  # SQLite's rowid is called INTEGER


def _crc(name: str = "crc") -> sa.Column[int]:
    """The checksum of a row. It is null in rows of earlier formats."""
    return sa.Column(name, sa.BigInteger)


StoredRow = sa.Row[Any]
"""A row as the database returns it, with its columns as attributes."""
Query = sa.Select[Any]

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
"""One row: the format, the identity of this journal, the number of the last commit, the highest number given
to a record, and the record up to which old rows were dropped."""

bandits = sa.Table(
    "sketchbandit_bandits",
    _metadata,
    sa.Column("id", _Sequence, primary_key=True, autoincrement=False),
    sa.Column("name", sa.String(128), unique=True),
    sa.Column("config", sa.Text, nullable=False),
    sa.Column("created", sa.Double, nullable=False),
    sa.Column("arms_version", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("source", sa.Text),
)
"""A bandit without a name was deleted, and its rows are being removed. ``arms_version`` grows whenever its
stored arms change. ``source`` is JSON: the log that it learned from when it was created."""

arms = sa.Table(
    "sketchbandit_arms",
    _metadata,
    sa.Column("bandit", _Sequence, primary_key=True, autoincrement=False),
    sa.Column("arm", sa.String(128), primary_key=True),
    sa.Column("place", _Sequence, nullable=False),
    sa.Column("features", sa.LargeBinary, nullable=False),
    _crc(),
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
    _crc(),
    _crc("crc_logged"),  # of ``top`` and ``arms``
)

rewards = sa.Table(
    "sketchbandit_rewards",
    _metadata,
    sa.Column("seq", _Sequence, primary_key=True, autoincrement=False),
    sa.Column("decision", sa.BigInteger, nullable=False, unique=True),  # nothing is learned from twice
    sa.Column("bandit", sa.BigInteger, nullable=False),
    sa.Column("kind", sa.String(8), nullable=False),
    sa.Column("reward", sa.Double),
    sa.Column("at", sa.Double, nullable=False),
    sa.Column("position", sa.Integer, nullable=False, server_default="0"),
    _crc(),
)

estimates = sa.Table(
    "sketchbandit_estimates",
    _metadata,
    sa.Column("seq", _Sequence, primary_key=True, autoincrement=False),
    sa.Column("decision", sa.BigInteger, nullable=False, unique=True),
    sa.Column("bandit", sa.BigInteger, nullable=False),
    sa.Column("propensity", sa.Double, nullable=False),
    _crc(),
)

actions = sa.Table(
    "sketchbandit_actions",
    _metadata,
    sa.Column("seq", _Sequence, primary_key=True, autoincrement=False),
    sa.Column("bandit", sa.BigInteger, nullable=False),
    sa.Column("action", sa.String(128), nullable=False),
    sa.Column("change", sa.String(8), nullable=False),
    _crc(),
)

scalings = sa.Table(
    "sketchbandit_scalings",
    _metadata,
    sa.Column("seq", _Sequence, primary_key=True, autoincrement=False),
    sa.Column("bandit", sa.BigInteger, nullable=False),
    sa.Column("scaling", sa.LargeBinary, nullable=False),
    sa.Column("arms", sa.BigInteger, nullable=False),
    sa.Column("is_last", sa.Boolean, nullable=False),
    _crc(),
)

candidates = sa.Table(
    "sketchbandit_candidates",
    _metadata,
    sa.Column("seq", _Sequence, primary_key=True, autoincrement=False),
    sa.Column("bandit", sa.BigInteger, nullable=False),
    sa.Column("name", sa.String(128), nullable=False),
    sa.Column("change", sa.String(8), nullable=False),
    sa.Column("settings", sa.Text),
    sa.Column("kept", sa.String(128)),
    sa.Column("at", sa.Double, nullable=False),
    _crc(),
)

chances = sa.Table(
    "sketchbandit_chances",
    _metadata,
    sa.Column("seq", _Sequence, primary_key=True, autoincrement=False),
    sa.Column("bandit", sa.BigInteger, nullable=False),
    sa.Column("chances", sa.LargeBinary, nullable=False),
    _crc(),
)

snapshots = sa.Table(
    "sketchbandit_snapshots",
    _metadata,
    sa.Column("bandit", _Sequence, primary_key=True, autoincrement=False),
    sa.Column("seq", _Sequence, primary_key=True, autoincrement=False),
    sa.Column("part", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("parts", sa.Integer, nullable=False),
    sa.Column("is_unusable", sa.Boolean, nullable=False),
    sa.Column("content", sa.LargeBinary, nullable=False),
)
"""Snapshots in parts, if they are kept here. A snapshot is complete when all its parts exist."""


def create(connection: sa.Connection) -> None:
    """Make the missing tables."""
    _metadata.create_all(connection)


def migrate(connection: sa.Connection) -> None:
    """Bring tables of an earlier format up to this one. Columns are added, and no row is changed."""
    for table in _metadata.sorted_tables:
        there = {column["name"] for column in sa.inspect(connection).get_columns(table.name)}
        for missing in (column for column in table.columns if column.name not in there):
            column = CreateColumn(missing).compile(dialect=connection.dialect)
            connection.exec_driver_sql(f"ALTER TABLE {table.name} ADD COLUMN {column}")
    connection.execute(service.update().values(format=FORMAT))


def in_order(connection: sa.Connection, query: Query, seq: sa.Column[int], page: int) -> Iterator[StoredRow]:
    """The rows of ``query`` in order, ``page`` at a time. Memory does not depend on their number."""
    after = -1
    while rows := connection.execute(query.where(seq > after).order_by(seq).limit(page)).all():
        yield from rows
        after = rows[-1].seq


def all_rows(connection: sa.Connection, table: sa.Table) -> Iterator[StoredRow]:
    """All rows in order, with all columns, in bounded memory."""
    if table is not decisions:
        yield from in_order(connection, sa.select(table), table.c.seq, _PAGE)
        return
    for rows in pages(connection, sa.select(decisions)):
        yield from rows


def pages(
    connection: sa.Connection, query: Query, large: Sequence[str] = ("features", "arms", "top")
) -> Iterator[Sequence[StoredRow]]:
    """The rows of a query on ``decisions`` in order, some at a time: a few MiB, or one row.

    ``large`` are the columns of the query that can take more than a few bytes.
    """
    seq, sizes = decisions.c.seq, [decisions.c[name] for name in large]
    size = sum((sa.func.coalesce(sa.func.length(column), 0) for column in sizes), sa.literal(_ROW))
    lengths = query.with_only_columns(seq, size.label("size")).order_by(seq).limit(_PAGE)
    after = -1
    while found := connection.execute(lengths.where(seq > after)).all():
        last, held = found[0].seq, 0
        for row in found:
            held += row.size
            if held > _MOST_BYTES and row is not found[0]:
                break
            last = row.seq
        yield connection.execute(query.where(seq > after, seq <= last).order_by(seq)).all()
        after = last
