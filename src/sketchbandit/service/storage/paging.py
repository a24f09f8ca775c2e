"""Reading long tables: memory does not depend on their length, on any database."""

from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa


def in_order(
    connection: sa.Connection, query: sa.Select[Any], seq: sa.Column[int], page: int
) -> Iterator[Any]:
    """The rows of ``query`` in the order of their number, fetched ``page`` at a time."""
    after = -1
    while rows := connection.execute(query.where(seq > after).order_by(seq).limit(page)).all():
        yield from rows
        after = rows[-1].seq
