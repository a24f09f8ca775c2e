"""The state after a restart: the newest snapshot that is whole, and the journal since then."""

import heapq
import logging
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import sqlalchemy as sa

from sketchbandit.errors import FileError, SketchBanditError
from sketchbandit.service.arm_store import ArmStore
from sketchbandit.service.bandit import Bandit
from sketchbandit.service.config import BanditConfig
from sketchbandit.service.problems import Invalid
from sketchbandit.service.quarantine import Quarantined
from sketchbandit.service.storage import snapshots, tables
from sketchbandit.service.storage.database import Database
from sketchbandit.service.storage.paging import in_order
from sketchbandit.service.storage.records import (
    ActionRow,
    DecisionRow,
    EstimateRow,
    RewardRow,
    Row,
    ScalingRow,
)
from sketchbandit.service.storage.snapshots import Snapshot, SnapshotFolder
from sketchbandit.service.vectors import DamagedArm, decode

log = logging.getLogger(__name__)

Replayed = tuple[Row, int | None]
"""A row, and for a decision the place of its reward, if any."""

INSTANCE = "instance"
"""A file of the state folder: which journal its snapshots belong to."""
_PAGE = 1000


class Recovered(NamedTuple):
    """Everything that the journal and the snapshots hold."""

    bandits: list[Bandit]
    deleted: list[int]
    """Bandits whose rows are still to be removed."""
    last_seq: int
    last_time: float
    quarantined: list[Quarantined]
    dropped: int
    """Decisions below this place were dropped because of their age."""


def snapshot_folder(state: Path, bandit: int, keep: int = 3) -> SnapshotFolder:
    """Where the snapshots of a bandit lie."""
    return SnapshotFolder(state / "snapshots" / str(bandit), keep=keep)


def recover(database: Database, state: Path, *, keep: int = 3) -> Recovered:
    """Read all bandits back. The journal is not changed."""
    return database.read(lambda connection: _recover(connection, state, keep))


def _recover(connection: sa.Connection, state: Path, keep: int) -> Recovered:
    service = connection.execute(sa.select(tables.service)).one()
    bandits, since, deleted = [], {}, []
    for row in connection.execute(sa.select(tables.bandits).order_by(tables.bandits.c.id)).all():
        if row.name is None:
            deleted.append(row.id)
            continue
        bandit = Bandit(row.id, row.name, BanditConfig.from_json(row.config), created=row.created)
        folder = snapshot_folder(state, bandit.number, keep)
        folder.clean()
        snapshot = newest_whole(folder, bandit, service.seq)
        if snapshot is not None:
            bandit.restore(snapshot)
        since[bandit.number] = Since.of(snapshot)
        if since[bandit.number].oldest_open < service.dropped and bandit.number < service.dropped:
            raise SketchBanditError(
                f"bandit {bandit.name!r} cannot be restored: no snapshot of it is whole, and the journal's "
                f"oldest rows were dropped; put its snapshots back into {folder.folder}"
            )
        _read_arms(connection, bandit)
        bandits.append(bandit)
    replay(connection, {bandit.number: bandit for bandit in bandits}, since)
    return Recovered(bandits, deleted, service.seq, _last_time(connection), [], service.dropped)


def belongs(state: Path, database: Database) -> bool:
    """Whether the snapshots of a folder are of this journal: nothing says otherwise."""
    mark = state / INSTANCE
    said = mark.read_text(encoding="utf-8").strip() if mark.is_file() else ""
    return said == database.instance or not said


class Since(NamedTuple):
    """From where on a bandit needs the journal."""

    seq: int
    oldest_open: int

    @classmethod
    def of(cls, snapshot: Snapshot | None) -> "Since":
        """After a snapshot, or from the beginning."""
        if snapshot is None:
            return cls(0, 0)
        return cls(snapshot.seq, int(snapshot.state["oldest_open"]))


def newest_whole(folder: SnapshotFolder, bandit: Bandit, last_seq: int) -> Snapshot | None:
    """The newest snapshot that can be used; others are put aside, with a warning.

    Not usable are damaged ones, those of another bandit, and those ahead of the journal: they are of a
    database that was replaced by an older copy.
    """
    for path in folder.paths():
        try:
            snapshot = read_snapshot(path, bandit, last_seq)
        except (SketchBanditError, OSError) as error:
            log.warning("a snapshot cannot be used; going on without", extra={"reason": str(error)})
            folder.put_aside(path)
        else:
            return snapshot
    return None


def read_snapshot(path: Path, bandit: Bandit, last_seq: int) -> Snapshot:
    """A snapshot of the bandit; one that does not belong to the journal is refused."""
    snapshot = snapshots.read(path)
    if not bandit.owns(snapshot):
        raise FileError(f"the snapshot at record {snapshot.seq} is of another bandit than {bandit.name!r}")
    if snapshot.seq > last_seq:
        raise FileError(f"the snapshot at record {snapshot.seq} is ahead of the journal, at {last_seq}")
    return snapshot._replace(policy=bandit.config.with_rule(snapshot.policy))


def replay(
    connection: sa.Connection,
    bandits: dict[int, Bandit],
    since: dict[int, Since],
    *,
    until: int | None = None,
) -> None:
    """Bring bandits from their snapshots up to the end of the journal (or the record ``until``)."""
    if not bandits:
        return
    oldest, newest = min(s.oldest_open for s in since.values()), min(s.seq for s in since.values())
    opening: Iterator[Replayed] = _decisions(connection, oldest, until)
    others = (
        _rows(connection, tables.rewards, RewardRow, newest + 1, until),
        _rows(connection, tables.estimates, EstimateRow, oldest, until),
        _rows(connection, tables.actions, ActionRow, newest + 1, until),
        _rows(connection, tables.scalings, ScalingRow, newest + 1, until),
    )
    for row, answered_at in heapq.merge(opening, *others, key=lambda item: item[0].seq):
        if (bandit := bandits.get(row.bandit)) is not None:
            try:
                _replay_one(bandit, row, since[row.bandit], answered_at)
            except (KeyError, ValueError) as error:
                raise SketchBanditError(
                    f"the journal of bandit {bandit.name!r} is damaged at record {row.seq}: "
                    f"{error if isinstance(error, ValueError) else f'there is no open decision {error}'}; "
                    "restore the database from a backup"
                ) from error


def _replay_one(bandit: Bandit, row: Row, start: Since, answered_at: int | None) -> None:
    if isinstance(row, DecisionRow):
        decode(row.features, bandit.config.dim)  # whether it can be
    if row.seq > start.seq or isinstance(row, EstimateRow):
        # open decisions are in no snapshot; of rewards, those that wait for an estimate are
        if (learn := bandit.book(row)) is not None:
            with suppress(Invalid):  # what the policy refused then it refuses now
                learn()
    elif isinstance(row, DecisionRow) and (answered_at is None or answered_at > start.seq):
        if row.seq >= start.oldest_open:
            bandit.reopen(row)


def _decisions(connection: sa.Connection, start: int, until: int | None) -> Iterator[Replayed]:
    """Decisions in order, each with the place of its reward, if any."""
    d, r = tables.decisions, tables.rewards
    needed = [sa.null() if c.name in ("arms", "top") else c for c in d.columns]  # those can be large
    query: sa.Select[Any] = sa.select(*needed, r.c.seq.label("answered")).join_from(
        d, r, r.c.decision == d.c.seq, isouter=True
    )
    query = _up_to(query.where(d.c.seq >= start), d.c.seq, until)
    for row in in_order(connection, query, d.c.seq, _PAGE):
        yield DecisionRow(*row[:-1]), row[-1]


def _rows(
    connection: sa.Connection, table: sa.Table, kind: Callable[..., Row], start: int, until: int | None
) -> Iterator[Replayed]:
    query = _up_to(sa.select(table).where(table.c.seq >= start), table.c.seq, until)
    for row in in_order(connection, query, table.c.seq, _PAGE):
        yield kind(*row), None


def _up_to(query: sa.Select[Any], seq: sa.Column[int], until: int | None) -> sa.Select[Any]:
    return query if until is None else query.where(seq <= until)


def _read_arms(connection: sa.Connection, bandit: Bandit) -> None:
    table = tables.arms
    query = sa.select(table.c.arm, table.c.features).where(table.c.bandit == bandit.number)
    rows = connection.execute(query.order_by(table.c.place)).all()
    ids, payloads = [row.arm for row in rows], [row.features for row in rows]
    try:
        bandit.arms = ArmStore.restored(ids, payloads, bandit.config.dim)
    except DamagedArm as error:
        raise SketchBanditError(
            f"the stored arm {ids[error.place]!r} of bandit {bandit.name!r} is damaged: {error}; restore the "
            "database from a backup"
        ) from error


def _last_time(connection: sa.Connection) -> float:
    """Of the last record: where the clock must go on."""
    times = [0.0]
    for table in (tables.decisions, tables.rewards):
        newest = sa.select(table.c.at).order_by(table.c.seq.desc()).limit(1)
        times.append(connection.execute(newest).scalar() or 0.0)
    times.append(connection.execute(sa.select(sa.func.max(tables.bandits.c.created))).scalar() or 0.0)
    return max(times)
