"""Restores the state after a restart: the newest intact snapshot, and the journal since then."""

import logging
import time
from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError

from sketchbandit.errors import FileError, InputError, SketchBanditError
from sketchbandit.files import replace_file
from sketchbandit_service.arm_store import ArmStore
from sketchbandit_service.bandit import Bandit, Last
from sketchbandit_service.config import BanditConfig
from sketchbandit_service.origins import begin
from sketchbandit_service.replaying import Failure, Since, replay, since, without_log
from sketchbandit_service.storage import tables
from sketchbandit_service.storage.checksums import ROWS, arm_crc, is_whole
from sketchbandit_service.storage.database import Database, StorageError
from sketchbandit_service.storage.snapshots import Snapshot, SnapshotStore
from sketchbandit_service.storage.tables import StoredRow
from sketchbandit_service.vectors import DamagedArm

log = logging.getLogger(__name__)

INSTANCE = "instance"
"""A file in the state folder. It says which journal the snapshots belong to."""
_DAY = 86_400.0
_LEAP = 30 * _DAY
_LOOKED_AT = 100  # newest rows in which an intact one is looked for


class Quarantined(NamedTuple):
    """A bandit out of service. Nothing of it is lost, and no request to it is answered."""

    number: int
    name: str
    reason: str


class Recovered(NamedTuple):
    """Everything that the journal and the snapshots hold."""

    bandits: list[Bandit]
    quarantined: list[Quarantined]
    """Bandits that cannot be used."""
    deleted: list[int]
    """Deleted bandits whose rows are still to be removed."""
    last_seq: int
    last_time: float
    dropped: int
    """Decisions below this record were dropped because of their age, except for waiting ones."""
    has_leapt: bool
    """Whether the clock is so far ahead of the last record that a person should check it."""


def recover(database: Database, snapshots: SnapshotStore) -> Recovered:
    """Read all bandits back. The journal is not changed.

    A bandit that cannot be read is put out of service and logged. All others start.
    """
    try:
        return database.read(lambda connection: recover_from(connection, snapshots))
    except MemoryError as error:
        raise SketchBanditError(
            "there is not enough memory to read the journal; give the server more"
        ) from error


def recover_from(
    connection: sa.Connection,
    snapshots: SnapshotStore,
    *,
    is_owner: bool = True,
    only: Collection[int] | None = None,
) -> Recovered:
    """The same within a transaction, for all bandits or for ``only`` some.

    Without ``is_owner`` another server is running, and its snapshots are not touched.
    """
    service = connection.execute(sa.select(tables.service)).one()
    bandits: dict[int, Bandit] = {}
    starts: dict[int, Since] = {}
    quarantined: list[Quarantined] = []
    deleted = []

    def set_aside(number: int, name: str, reason: str) -> None:
        log.error("a bandit is out of service", extra={"bandit": name, "reason": reason})
        quarantined.append(Quarantined(number, name, f"bandit {name!r} is out of service: {reason}"))

    def failed(failure: Failure) -> None:
        del bandits[failure.bandit.number]
        set_aside(failure.bandit.number, failure.bandit.name, failure.reason)

    for row in connection.execute(sa.select(tables.bandits).order_by(tables.bandits.c.id)).all():
        if row.name is None:
            deleted.append(row.id)
            continue
        if only is not None and row.id not in only:
            continue
        try:
            bandit, starts[row.id] = load(connection, snapshots, row, service, is_owner=is_owner)
        except Exception as error:  # in any case the other bandits can go on
            if _is_of_all(error, connection):
                raise
            set_aside(row.id, row.name, reason_of(error))
        else:
            bandits[row.id] = bandit
    replay(connection, dict(bandits), starts, on_failure=failed)
    last, found = last_time(connection), list(bandits.values())
    leapt = has_leapt(last, time.time(), found)
    return Recovered(found, quarantined, deleted, service.seq, last, service.dropped, leapt)


def _is_of_all(error: Exception, connection: sa.Connection) -> bool:
    """Whether an error concerns all bandits: the database is away, or has ended the transaction."""
    return isinstance(error, StorageError) or (
        isinstance(error, DBAPIError) and connection.dialect.name == "postgresql"
    )


def recognise(state: Path, database: Database) -> None:
    """Check that snapshots and journal belong together. A new folder belongs to this journal from now on."""
    if not belongs(state, database):
        raise InputError(
            f"{state} holds snapshots of another journal than {database}; give the database that belongs to "
            "this folder, or an empty folder"
        )
    replace_file(state / INSTANCE, database.instance.encode())


def reason_of(error: Exception) -> str:
    """Why a bandit cannot be loaded."""
    if isinstance(error, MemoryError):
        return "there is not enough memory for it (MemoryError); give the server more memory and restart it"
    return str(error) if isinstance(error, SketchBanditError) else f"it cannot be read: {error!r}"


def load(
    connection: sa.Connection,
    snapshots: SnapshotStore,
    row: StoredRow,
    service: StoredRow,
    *,
    is_owner: bool = True,
) -> tuple[Bandit, Since]:
    """A bandit as of its newest intact snapshot, and what it needs of the journal."""
    bandit = build(row)
    if is_owner:
        snapshots.clean(bandit.number)
    snapshot = newest_whole(connection, snapshots, bandit, service, is_owner=is_owner)
    if snapshot is not None:
        bandit.restore(snapshot)
    else:
        begin(connection, bandit)
    start = since(connection, bandit, snapshot)
    if max(start.seq, bandit.number) + 1 < service.dropped:
        raise SketchBanditError(
            f"bandit {bandit.name!r} cannot be restored: it has no intact snapshot, and the oldest rows of "
            "the journal were dropped; put its snapshots back, such as "
            f"{snapshots.name(bandit.number, service.dropped)}"
        )
    read_arms(connection, bandit)
    return bandit, start


def build(row: StoredRow) -> Bandit:
    """A bandit from its row. It has learned nothing yet."""
    config = config_of(row)
    try:
        return Bandit(row.id, row.name, config, created=row.created, source=row.source)
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        raise _unreadable(row, error) from error


def config_of(row: StoredRow) -> BanditConfig:
    """The settings of a bandit, from its row."""
    try:
        return BanditConfig.from_json(row.config)
    except (SketchBanditError, TypeError, ValueError, KeyError, AttributeError) as error:
        raise _unreadable(row, error) from error


def _unreadable(row: StoredRow, error: Exception) -> SketchBanditError:
    return SketchBanditError(
        f"the settings of bandit {row.name!r} cannot be read: {error}; restore the database from a backup"
    )


def belongs(state: Path, database: Database) -> bool:
    """Whether the snapshots of a folder may belong to this journal: nothing says otherwise."""
    mark = state / INSTANCE
    try:
        said = mark.read_text(encoding="utf-8").strip() if mark.exists() else ""
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"{mark} cannot be read ({error}): it says which journal the snapshots belong to; "
            f"remove it if they belong to {database}"
        ) from error
    return said == database.instance or not said


def newest_whole(
    connection: sa.Connection, snapshots: SnapshotStore, bandit: Bandit, service: StoredRow, *, is_owner: bool
) -> Snapshot | None:
    """The newest usable snapshot. Others are set aside, with a warning.

    Three kinds are not usable: damaged ones, those of another bandit, and those of records that the journal
    does not have because the database was replaced by an older copy.
    """
    for seq in snapshots.places(bandit.number):
        try:
            return read_snapshot(connection, snapshots, bandit, seq, service)
        except StorageError:
            raise  # it concerns all snapshots in the database, not this one
        except OSError as error:
            log.warning("a snapshot cannot be read; trying an older one", extra={"reason": str(error)})
        except SketchBanditError as error:
            log.warning("a snapshot cannot be used; trying an older one", extra={"reason": str(error)})
            if is_owner:
                snapshots.put_aside(bandit.number, seq)
    return None


def read_snapshot(
    connection: sa.Connection, snapshots: SnapshotStore, bandit: Bandit, seq: int, service: StoredRow
) -> Snapshot:
    """Read a snapshot of the bandit. One that does not belong to the journal is refused."""
    snapshot = snapshots.read(bandit.number, seq)
    if not bandit.owns(snapshot):
        raise FileError(
            f"the snapshot at record {snapshot.seq} belongs to another bandit than {bandit.name!r}"
        )
    if snapshot.seq > service.seq:
        raise FileError(f"the snapshot at record {snapshot.seq} is ahead of the journal, at {service.seq}")
    if not _is_of_journal(connection, snapshot):
        raise FileError(f"the snapshot at record {snapshot.seq} belongs to another history of the journal")
    if "promoted" in snapshot.state:  # written by a version whose snapshots hold the rule
        return snapshot
    return snapshot._replace(policy=bandit.original.with_rule(snapshot.policy))


def _is_of_journal(connection: sa.Connection, snapshot: Snapshot) -> bool:
    """Whether the journal still has the last decision and the last reward of a snapshot.

    A database that was replaced by an older copy and then used has other rows under their numbers. Rows that
    are missing may have been dropped, and prove nothing.
    """
    last: Last = snapshot.state.get("last", {})  # snapshots of earlier versions do not have it
    for mine, column in ((tables.decisions, "tag"), (tables.rewards, "at")):
        seq, known = last.get(mine.name, (0, ""))
        for table in ROWS:
            found = connection.execute(sa.select(table).where(table.c.seq == seq)).one_or_none()
            is_it = table is mine and found is not None and getattr(found, column) == known
            if found is not None and not is_it and is_whole(table, found):
                return False
    return True


def has_leapt(last: float, now: float, bandits: list[Bandit]) -> bool:
    """Whether the clock is so far ahead of the journal that every waiting arm would expire, maybe wrongly.

    Up to thirty days without a record, the service is assumed to have been switched off.
    """
    timeouts = [bandit.config.reward_timeout or 0.0 for bandit in bandits if bandit.open]
    return last > 0.0 and any(timeouts) and now - last > max(_LEAP, *timeouts)


def read_arms(connection: sa.Connection, bandit: Bandit) -> None:
    """Read the stored arms of a bandit."""
    table = tables.arms
    query = sa.select(table).where(table.c.bandit == bandit.number).order_by(table.c.place)
    rows = connection.execute(query).all()
    for row in rows:
        if row.crc not in (None, arm_crc(bandit.number, row.arm, row.features)):
            raise _damaged(
                bandit, row.arm, "it does not match its checksum, so it was changed in the database"
            )
    try:
        payloads = [bytes(row.features) for row in rows]
        bandit.arms = ArmStore.restored([row.arm for row in rows], payloads, bandit.config.stored_dim)
    except DamagedArm as error:
        raise _damaged(bandit, rows[error.place].arm, str(error)) from error


def _damaged(bandit: Bandit, arm: str, why: str) -> SketchBanditError:
    return SketchBanditError(
        f"the stored arm {arm!r} of bandit {bandit.name!r} is damaged: {why}; restore the database from a "
        "backup, or DELETE the arm's row"
    )


def last_time(connection: sa.Connection) -> float:
    """The time of the last intact record, from which the clock must go on."""
    found = []
    for table, query in ((tables.decisions, without_log()), (tables.rewards, sa.select(tables.rewards))):
        newest = query.order_by(table.c.seq.desc()).limit(1)
        for place in range(
            _LOOKED_AT
        ):  # one by one: rows may be large, and the first is nearly always intact
            row = connection.execute(newest.offset(place)).one_or_none()
            if row is None or (isinstance(row.at, float) and is_whole(table, row)):
                found += [] if row is None else [row.at]
                break
    return max(found, default=0.0)
