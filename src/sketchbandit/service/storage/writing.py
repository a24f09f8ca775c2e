"""How a batch of records becomes statements."""

from collections.abc import Sequence
from functools import lru_cache

import sqlalchemy as sa

from sketchbandit.service.storage import tables
from sketchbandit.service.storage.records import (
    ActionRow,
    EstimateRow,
    Record,
    RewardRow,
    ScalingRow,
    Slate,
    Statements,
)

_MOST_ROWS = 64


_PUT_ARM = sa.text(
    f"INSERT INTO {tables.arms.name} (bandit, arm, place, features) "  # noqa: S608  (our names)
    "VALUES (:bandit, :arm, :place, :features) "
    "ON CONFLICT (bandit, arm) DO UPDATE SET features = excluded.features"  # it keeps its place
)
_TABLES = {
    tables.rewards: RewardRow,
    tables.estimates: EstimateRow,
    tables.actions: ActionRow,
    tables.scalings: ScalingRow,
}


def write(connection: sa.Connection, records: Sequence[Record]) -> None:
    """Execute the records within the connection's transaction."""
    for record in records:
        if isinstance(record, Statements):
            for statement in record.statements:
                connection.execute(statement)
            if record.arms:
                connection.execute(_PUT_ARM, list(record.arms))
    shown = [row for record in records if isinstance(record, Slate) for row in record.rows]
    _insert(connection, tables.decisions, shown)
    for table, kind in _TABLES.items():
        _insert(connection, table, [record for record in records if isinstance(record, kind)])


def _insert(connection: sa.Connection, table: sa.Table, rows: Sequence[tuple[object, ...]]) -> None:
    """Insert rows, many with one statement.

    Every statement stepped gives up the interpreter's lock and has to wait for it again behind a busy event
    loop; row by row (executemany) a batch of 16 took ten times as long.
    """
    paramstyle = connection.dialect.paramstyle
    for start in range(0, len(rows), _MOST_ROWS):
        some = rows[start : start + _MOST_ROWS]
        values = tuple(value for row in some for value in row)
        connection.exec_driver_sql(_insert_text(table, len(some), paramstyle), values)


@lru_cache(maxsize=4 * _MOST_ROWS)
def _insert_text(table: sa.Table, count: int, paramstyle: str) -> str:
    mark = "?" if paramstyle == "qmark" else "%s"
    columns = ", ".join(f'"{column.name}"' for column in table.columns)
    row = "(" + ", ".join([mark] * len(table.columns)) + ")"
    return f"INSERT INTO {table.name} ({columns}) VALUES " + ", ".join([row] * count)  # noqa: S608  (our names)
