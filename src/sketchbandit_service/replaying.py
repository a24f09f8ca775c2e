"""Replays the journal: from a snapshot or from the beginning, up to any record."""

import heapq
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from itertools import chain
from typing import NamedTuple

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from sketchbandit.errors import SketchBanditError
from sketchbandit_service.bandit import Bandit
from sketchbandit_service.problems import Invalid
from sketchbandit_service.storage import checksums, tables
from sketchbandit_service.storage.checksums import LOGGED, ROWS
from sketchbandit_service.storage.records import DecisionRow, Row
from sketchbandit_service.storage.snapshots import Snapshot
from sketchbandit_service.storage.tables import Query, StoredRow, in_order, pages
from sketchbandit_service.vectors import decode

PAGE = 500
"""Rows read at once."""


class Since(NamedTuple):
    """The part of the journal that a bandit needs."""

    seq: int
    waiting: NDArray[np.int64] = np.empty(0, dtype=np.int64)
    """Earlier rows that it needs too: arms that wait for their reward."""


class Failure(NamedTuple):
    """A record that could not be applied."""

    bandit: Bandit
    table: sa.Table
    seq: int
    error: Exception

    @property
    def reason(self) -> str:
        """The failure in a sentence."""
        error = self.error
        if isinstance(error, MemoryError):
            return (
                f"there is not enough memory for record {self.seq} (MemoryError); give the server more "
                "memory and restart it"
            )
        what = f"there is no open decision {error}" if isinstance(error, KeyError) else str(error)
        return (
            f"the journal of bandit {self.bandit.name!r} is damaged at record {self.seq} of "
            f"{self.table.name.removeprefix('sketchbandit_')}: {what or type(error).__name__}; restore the "
            "database from a backup, or use `sketchbandit service repair`"
        )


def refuse(failure: Failure) -> None:
    """Raise the failure as an error."""
    raise SketchBanditError(failure.reason) from failure.error


def since(connection: sa.Connection, bandit: Bandit, snapshot: Snapshot | None) -> Since:
    """What a bandit needs after a snapshot, or from the beginning."""
    if snapshot is None:
        return Since(bandit.number)  # no record of a bandit is older than the bandit
    if "open" not in snapshot.state:  # written by an earlier version
        return Since(snapshot.seq, _was_open(connection, bandit, snapshot))
    return Since(snapshot.seq, snapshot.state["open"])


def _was_open(connection: sa.Connection, bandit: Bandit, snapshot: Snapshot) -> NDArray[np.int64]:
    """The arms that were waiting then, according to the journal."""
    d, r = tables.decisions, tables.rewards
    query = sa.select(d.c.seq).join_from(d, r, r.c.decision == d.c.seq, isouter=True).order_by(d.c.seq)
    query = query.where(d.c.bandit == bandit.number, sa.or_(r.c.seq.is_(None), r.c.seq > snapshot.seq))
    query = query.where(d.c.seq.between(int(snapshot.state["oldest_open"]), snapshot.seq))
    return np.fromiter(connection.execute(query).scalars(), dtype=np.int64)


def replay(
    connection: sa.Connection,
    bandits: Mapping[int, Bandit],
    starts: Mapping[int, Since],
    *,
    until: int | None = None,
    on_failure: Callable[[Failure], None] = refuse,
) -> None:
    """Bring bandits from their snapshots up to the end of the journal, or up to the record ``until``.

    A bandit that cannot take a record is passed to ``on_failure``, and takes no further records.
    """
    left = dict(bandits)

    def take(table: sa.Table, values: StoredRow, owner: Bandit | None = None) -> None:
        try:
            row = checksums.unsealed(table, values)
        except ValueError as error:  # the column ``bandit`` itself may have been changed
            if (owner := owner or _owner(left, values)) is not None:
                fail(Failure(owner, table, values.seq, error))
            return
        if (bandit := left.get(row.bandit)) is not None:
            try:
                apply(bandit, row, starts[bandit.number].seq)
            except Exception as error:  # in any case the other bandits can go on
                fail(Failure(bandit, table, row.seq, error))

    def fail(failure: Failure) -> None:
        del left[failure.bandit.number]
        on_failure(failure)

    for bandit in bandits.values():
        for table, seq, values in _waiting(connection, starts[bandit.number]):
            if bandit.number not in left:
                break
            if values is None:
                fail(Failure(bandit, table, seq, LookupError("it is missing")))
            else:
                take(table, values, bandit)
    start = min((starts[number].seq for number in left), default=0)
    for table, values in _after(connection, start, until) if left else ():
        if values.bandit not in starts or values.seq > starts[values.bandit].seq:
            take(table, values)


def _owner(bandits: Mapping[int, Bandit], values: StoredRow) -> Bandit | None:
    """The bandit of a damaged row: that of the decision it is about, or the one it names."""
    about = getattr(values, "decision", None)
    if isinstance(about, int):
        for bandit in bandits.values():
            if about in bandit.open or about - (getattr(values, "position", 0) or 0) in bandit.open:
                return bandit
    return bandits.get(values.bandit)


def _waiting(connection: sa.Connection, start: Since) -> Iterator[tuple[sa.Table, int, StoredRow | None]]:
    """The rows of arms that waited at a snapshot, None for a missing row; then their estimates."""
    d, e = tables.decisions, tables.estimates
    for at in range(0, len(start.waiting), PAGE):
        wanted = [int(seq) for seq in start.waiting[at : at + PAGE]]
        rows = {row.seq: row for row in connection.execute(without_log().where(d.c.seq.in_(wanted))).all()}
        yield from ((d, seq, rows.get(seq)) for seq in wanted)
        firsts = {row.seq - row.position for row in rows.values()}
        query = sa.select(e).where(e.c.decision.in_(firsts), e.c.seq <= start.seq).order_by(e.c.seq)
        yield from ((e, row.seq, row) for row in connection.execute(query).all())


def _after(connection: sa.Connection, seq: int, until: int | None) -> Iterator[tuple[sa.Table, StoredRow]]:
    """The journal after a record, in order."""

    def rows(table: sa.Table) -> Iterator[tuple[sa.Table, StoredRow]]:
        return ((table, row) for row in rows_after(connection, table, seq, until))

    return heapq.merge(*map(rows, ROWS), key=lambda item: item[1].seq)


def rows_after(
    connection: sa.Connection, table: sa.Table, seq: int, until: int | None
) -> Iterator[StoredRow]:
    """The rows of a table after a record, in order and in bounded memory, without large columns."""
    after = table.c.seq > seq if until is None else table.c.seq.between(seq + 1, until)
    if table is not tables.decisions:
        return in_order(connection, sa.select(table).where(after), table.c.seq, PAGE)
    return chain.from_iterable(pages(connection, without_log().where(after), ("features",)))


def without_log() -> Query:
    """Decisions without the large columns, which no restart reads."""
    columns = tables.decisions.columns
    return sa.select(*(sa.null().label(c.name) if c.name in LOGGED else c for c in columns))


def apply(bandit: Bandit, row: Row, seq: int) -> None:
    """Apply one record to a bandit whose snapshot was at ``seq``."""
    if isinstance(row, DecisionRow):
        decode(row.features, bandit.config.dim)  # raises if the features are damaged
        if row.seq <= seq:
            bandit.reopen(row)
            return
    if (learn := bandit.book(row)) is not None:
        with suppress(Invalid):  # what the policy refused then, it refuses now
            learn()
