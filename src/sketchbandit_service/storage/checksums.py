"""Checksums of rows. A row that somebody else changed in the database is noticed when it is read."""

import struct
import zlib
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import sqlalchemy as sa

from sketchbandit_service.storage import tables
from sketchbandit_service.storage.records import (
    ActionRow,
    CandidateRow,
    ChanceRow,
    DecisionRow,
    EstimateRow,
    RewardRow,
    Row,
    ScalingRow,
)

ROWS: dict[sa.Table, type[Row]] = {
    tables.decisions: DecisionRow,
    tables.rewards: RewardRow,
    tables.estimates: EstimateRow,
    tables.actions: ActionRow,
    tables.scalings: ScalingRow,
    tables.candidates: CandidateRow,
    tables.chances: ChanceRow,
}
"""The type of row in each table of the journal."""
LOGGED = ("top", "arms")
"""Columns of a decision that may be large and that no restart reads. They have their own checksum."""
_NULL, _VALUE = b"\0", b"\1"
_INTEGER, _FLOAT, _LENGTH = struct.Struct("<cq").pack, struct.Struct("<cd").pack, struct.Struct("<cq").pack

Packer = Callable[[Any], bytes]
"""Writes a value of a column."""


def _float(value: float) -> bytes:
    """Write a float as SQLite will return it: it turns -0.0 into 0.0, and NaN into null."""
    return _FLOAT(_VALUE, value + 0.0) if value == value else _NULL  # noqa: PLR0124


def _text(value: str) -> bytes:
    return _bytes(value.encode())


def _bytes(value: bytes) -> bytes:
    return _LENGTH(_VALUE, len(value)) + value


_LOG: tuple[Packer, ...] = (_text, _bytes)


def _left_out(_: object) -> bytes:
    return _NULL


def _packer(column: sa.Column[object]) -> Packer:
    """Write a value so that it is the same for every database: 1 for 1.0, 0 for False."""
    if column.table is tables.decisions and column.name in LOGGED:
        return _left_out
    if isinstance(column.type, sa.Double):
        return _float
    if isinstance(column.type, sa.String):
        return _text
    return _bytes if isinstance(column.type, sa.LargeBinary) else partial(_INTEGER, _VALUE)


@cache
def _packers(table: sa.Table) -> tuple[Packer, ...]:
    return tuple(_packer(c) for c in table.columns if c.name not in ("crc", "crc_logged"))


def _crc(packers: Sequence[Packer], values: Sequence[object]) -> int:
    packed = [_NULL if value is None else pack(value) for pack, value in zip(packers, values, strict=True)]
    return zlib.crc32(b"".join(packed))


def sealed(table: sa.Table, row: Row) -> tuple[object, ...]:
    """The values of a row, followed by its checksums."""
    crc = _crc(_packers(table), row)
    return (*row, crc, _logged(row)) if isinstance(row, DecisionRow) else (*row, crc)


def unsealed(table: sa.Table, values: Sequence[object]) -> Row:
    """Read a sealed row. Raises ValueError if it was changed. Rows of earlier formats have no checksum.

    The columns ``LOGGED`` may have been left out (null).
    """
    count = len(_packers(table))
    row, crc = ROWS[table]._make(values[:count]), values[count]
    if crc is not None and not _is(crc, _packers(table), row):
        raise ValueError("it does not match its checksum, so it was changed in the database")
    return row


def is_whole(table: sa.Table, values: Sequence[object]) -> bool:
    """Whether a row is as it was written."""
    try:
        unsealed(table, values)
    except ValueError:
        return False
    return True


def is_log_whole(row: DecisionRow, crc: int | None) -> bool:
    """Whether the columns ``LOGGED`` are as they were written."""
    return crc is None or _is(crc, _LOG, (row.top, row.arms))


def arm_crc(bandit: int, arm: str, features: bytes) -> int:
    """The checksum of a stored arm. Its place is left out, since it may stay when the arm is replaced."""
    return zlib.crc32(_INTEGER(_VALUE, bandit) + _text(arm) + _bytes(features))


def _logged(row: DecisionRow) -> int:
    return _crc(_LOG, (row.top, row.arms))


def _is(crc: object, packers: Sequence[Packer], values: Sequence[object]) -> bool:
    """Whether this is their checksum. Values of a wrong type are damage too."""
    try:
        return _crc(packers, values) == crc
    except (TypeError, ValueError, AttributeError, struct.error):
        return False
