"""Turns a batch of records into statements."""

from collections.abc import Sequence
from functools import lru_cache

import sqlalchemy as sa

from sketchbandit_service.storage import tables
from sketchbandit_service.storage.checksums import ROWS, arm_crc, sealed
from sketchbandit_service.storage.records import ArmRow, Record, Row, Slate, Statements

_MOST_ROWS = 64
_REPLACE = " ON CONFLICT (bandit, arm) DO UPDATE SET features = excluded.features, crc = excluded.crc"


def write(connection: sa.Connection, records: Sequence[Record]) -> None:
    """Execute the records within the connection's transaction."""
    for record in records:
        if isinstance(record, Statements):
            for statement in record.statements:
                connection.execute(statement)
            for start in range(0, len(record.arms), _MOST_ROWS):
                _put_arms(connection, record.arms[start : start + _MOST_ROWS])
    rows = [row for record in records for row in _rows(record)]
    for table, kind in ROWS.items():
        _insert(connection, table, [row for row in rows if isinstance(row, kind)])


def _rows(record: Record) -> tuple[Row, ...]:
    if isinstance(record, Slate):
        return record.rows
    return () if isinstance(record, Statements) else (record,)


def _put_arms(connection: sa.Connection, arms: Sequence[ArmRow]) -> None:
    """Store arms. An existing arm keeps its place and gets new features."""
    text = _insert_text(tables.arms, len(arms), connection.dialect.paramstyle)
    values = tuple(value for arm in arms for value in (*arm, arm_crc(arm.bandit, arm.arm, arm.features)))
    connection.exec_driver_sql(text + _REPLACE, values)


def _insert(connection: sa.Connection, table: sa.Table, rows: Sequence[Row]) -> None:
    """Insert rows, many with one statement.

    Every statement releases the interpreter's lock, and then waits for it again behind a busy event loop. Row
    by row (executemany), a batch of 16 took ten times as long.
    """
    paramstyle = connection.dialect.paramstyle
    for start in range(0, len(rows), _MOST_ROWS):
        some = rows[start : start + _MOST_ROWS]
        values = tuple(value for row in some for value in sealed(table, row))
        connection.exec_driver_sql(_insert_text(table, len(some), paramstyle), values)


@lru_cache(maxsize=4 * _MOST_ROWS)
def _insert_text(table: sa.Table, count: int, paramstyle: str) -> str:
    mark = "?" if paramstyle == "qmark" else "%s"
    columns = ", ".join(f'"{column.name}"' for column in table.columns)
    row = "(" + ", ".join([mark] * len(table.columns)) + ")"
    return f"INSERT INTO {table.name} ({columns}) VALUES " + ", ".join([row] * count)  # noqa: S608  (our names)
