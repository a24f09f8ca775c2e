"""Snapshots of bandits as safetensors, in a folder or in the database. They are checked and rotated."""

import shutil
from abc import ABC, abstractmethod
from pathlib import Path
from typing import NamedTuple

import numpy as np
import sqlalchemy as sa

from sketchbandit import files
from sketchbandit.arrays import Arrays, Scalars, taken_from, under
from sketchbandit.errors import FileError, SketchBanditError
from sketchbandit.policy import PerAction, Policy
from sketchbandit.policy.learner import POLICIES
from sketchbandit_service.storage.database import Database
from sketchbandit_service.storage.tables import snapshots as table
from sketchbandit_service.types import AnyPolicy

_KIND = "service-snapshot"
_STATE, _CANDIDATE = "service", "candidate{}"
_PART = 4 * 1024 * 1024


class Snapshot(NamedTuple):
    """A bandit as it was after the record ``seq`` of the journal."""

    seq: int
    policy: AnyPolicy
    state: Scalars
    """Everything else of the bandit: counters, history, and the array ``open``, the rows of waiting arms."""
    candidates: dict[int, AnyPolicy] = {}  # noqa: RUF012  (nobody changes it)
    """The policies of its candidates, by their numbers."""


class SnapshotStore(ABC):
    """Snapshots of bandits, by the number of the bandit and the record at which they were taken."""

    @abstractmethod
    def places(self, bandit: int) -> list[int]:
        """The records at which there are snapshots, the newest first."""

    @abstractmethod
    def name(self, bandit: int, seq: int) -> str:
        """The name under which people can find a snapshot."""

    @abstractmethod
    def read(self, bandit: int, seq: int) -> Snapshot:
        """Read a snapshot. Raises FileError if it is damaged or something else."""

    @abstractmethod
    def write(self, bandit: int, snapshot: Snapshot) -> None:
        """Add a snapshot, or replace the one at the same record."""

    @abstractmethod
    def remove(self, bandit: int, seq: int) -> None:
        """Delete a snapshot."""

    @abstractmethod
    def put_aside(self, bandit: int, seq: int) -> None:
        """Set an unusable snapshot aside, where it can still be examined."""

    @abstractmethod
    def clean(self, bandit: int) -> None:
        """Remove what a crash during ``write`` left behind."""

    @abstractmethod
    def delete(self, bandit: int) -> None:
        """Delete all snapshots of a bandit."""


class Snapshots(SnapshotStore):
    """Writes to the first of several stores and reads from all, so a server can change the store.

    For each bandit, ``keep`` snapshots are kept.
    """

    def __init__(self, *stores: SnapshotStore, keep: int = 3) -> None:
        self._stores = stores
        self._keep = keep

    def places(self, bandit: int) -> list[int]:
        """The records in any of the stores."""
        return sorted({seq for store in self._stores for seq in store.places(bandit)}, reverse=True)

    def name(self, bandit: int, seq: int) -> str:
        """The name where it is, or would be."""
        return self._holding(bandit, seq).name(bandit, seq)

    def read(self, bandit: int, seq: int) -> Snapshot:
        """Read it from the store that has it."""
        return self._holding(bandit, seq).read(bandit, seq)

    def write(self, bandit: int, snapshot: Snapshot) -> None:
        """Write to the first store, and delete the oldest snapshots."""
        self._stores[0].write(bandit, snapshot)
        for old in self.places(bandit)[self._keep :]:
            self.remove(bandit, old)

    def rewrite(self, bandit: int, snapshot: Snapshot) -> None:
        """Replace a snapshot in the store that has it."""
        for store in self._stores:
            if snapshot.seq in store.places(bandit):
                store.write(bandit, snapshot)

    def remove(self, bandit: int, seq: int) -> None:
        """Delete it from all stores."""
        for store in self._stores:
            store.remove(bandit, seq)

    def put_aside(self, bandit: int, seq: int) -> None:
        """Set it aside in the store that has it."""
        self._holding(bandit, seq).put_aside(bandit, seq)

    def clean(self, bandit: int) -> None:
        """Clean all stores."""
        for store in self._stores:
            store.clean(bandit)

    def delete(self, bandit: int) -> None:
        """Delete from all stores."""
        for store in self._stores:
            store.delete(bandit)

    def _holding(self, bandit: int, seq: int) -> SnapshotStore:
        return next((store for store in self._stores if seq in store.places(bandit)), self._stores[0])


class SnapshotFolder(SnapshotStore):
    """A folder for each bandit. Files are written atomically."""

    def __init__(self, state: Path) -> None:
        self._folder = state / "snapshots"

    def places(self, bandit: int) -> list[int]:
        """The records, by the names of the files."""
        names = (path.stem for path in (self._folder / str(bandit)).glob("*.safetensors"))
        return sorted((int(name) for name in names if name.isdecimal()), reverse=True)

    def name(self, bandit: int, seq: int) -> str:
        """The path of the file."""
        return str(self._path(bandit, seq))

    def read(self, bandit: int, seq: int) -> Snapshot:
        """Read a file."""
        return read(self._path(bandit, seq))

    def write(self, bandit: int, snapshot: Snapshot) -> None:
        """Write a file atomically."""
        path = self._path(bandit, snapshot.seq)
        path.parent.mkdir(parents=True, exist_ok=True)
        files.replace_file(path, *_dump(snapshot))

    def remove(self, bandit: int, seq: int) -> None:
        """Delete the file."""
        self._path(bandit, seq).unlink(missing_ok=True)

    def put_aside(self, bandit: int, seq: int) -> None:
        """Give the file another name."""
        path = self._path(bandit, seq)
        path.replace(path.with_name(f"{path.name}.unusable"))

    def clean(self, bandit: int) -> None:
        """Remove temporary files."""
        for path in (self._folder / str(bandit)).glob(".*.tmp"):
            path.unlink(missing_ok=True)

    def delete(self, bandit: int) -> None:
        """Delete all files and the folder."""
        shutil.rmtree(self._folder / str(bandit), ignore_errors=True)

    def _path(self, bandit: int, seq: int) -> Path:
        return self._folder / str(bandit) / f"{seq:020d}.safetensors"


class SnapshotTable(SnapshotStore):
    """Parts in a table. Each has its own transaction, so a commit of the journal never waits for long."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def places(self, bandit: int) -> list[int]:
        """The records for which all parts exist."""
        mine = (table.c.bandit == bandit) & table.c.is_unusable.is_(False)
        query = sa.select(table.c.seq).where(mine).group_by(table.c.seq)
        whole = query.having(sa.func.count() == sa.func.max(table.c.parts)).order_by(table.c.seq.desc())
        return list(self._database.read(lambda connection: connection.execute(whole).scalars().all()))

    def name(self, bandit: int, seq: int) -> str:
        """A description of the rows."""
        return f"{table.name}, bandit {bandit}, seq {seq}"

    def read(self, bandit: int, seq: int) -> Snapshot:
        """Read all parts."""
        query = sa.select(table.c.content).where(_is(bandit, seq)).order_by(table.c.part)
        parts = self._database.read(lambda connection: connection.execute(query).scalars().all())
        name = self.name(bandit, seq)
        return _load(files.from_bytes(b"".join(parts), name), name)

    def write(self, bandit: int, snapshot: Snapshot) -> None:
        """Write part by part."""
        content, seq = b"".join(_dump(snapshot)), snapshot.seq
        self.remove(bandit, seq)
        count = -(-len(content) // _PART)
        common = {"bandit": bandit, "seq": seq, "parts": count, "is_unusable": False}
        for part in range(count):
            piece = content[part * _PART : (part + 1) * _PART]
            self._execute(table.insert().values(part=part, content=piece, **common))

    def remove(self, bandit: int, seq: int) -> None:
        """Delete the rows."""
        self._execute(table.delete().where(_is(bandit, seq)))

    def put_aside(self, bandit: int, seq: int) -> None:
        """Mark the rows."""
        self._execute(table.update().where(_is(bandit, seq)).values(is_unusable=True))

    def clean(self, bandit: int) -> None:
        """Remove incomplete snapshots."""
        whole = self.places(bandit)
        mine = (table.c.bandit == bandit) & table.c.is_unusable.is_(False)
        self._execute(table.delete().where(mine, table.c.seq.not_in(whole)))

    def delete(self, bandit: int) -> None:
        """Delete all rows, including those set aside."""
        self._execute(table.delete().where(table.c.bandit == bandit))

    def _execute(self, statement: sa.Executable) -> None:
        self._database.write_apart(lambda connection: connection.execute(statement))


def _is(bandit: int, seq: int) -> sa.ColumnElement[bool]:
    return (table.c.bandit == bandit) & (table.c.seq == seq)


def _dump(snapshot: Snapshot) -> list[bytes | memoryview]:
    state = dict(snapshot.state)
    held = [name for name, value in state.items() if isinstance(value, np.ndarray)]
    saved, arrays = _dump_policy(snapshot.policy)
    arrays = arrays | under(_STATE, {name: state.pop(name) for name in held})
    content: Scalars = {"seq": snapshot.seq, "policy": saved, "state": state}
    for number, policy in snapshot.candidates.items():
        saved, own = _dump_policy(policy)
        content.setdefault("candidates", {})[str(number)] = saved
        arrays |= under(_CANDIDATE.format(number), own)
    return files.to_parts(_KIND, content, arrays)


def _dump_policy(policy: AnyPolicy) -> tuple[Scalars, Arrays]:
    scalars, arrays = policy.dump()
    return {"kind": policy.kind, "scalars": scalars}, arrays


def _undump_policy(saved: Scalars, arrays: Arrays) -> AnyPolicy:
    policy = POLICIES.of_kind(saved["kind"]).undump(saved["scalars"], arrays)
    assert isinstance(policy, (PerAction, Policy))  # noqa: S101  (for the type checker)
    return policy


def _load(contents: files.Contents, name: str) -> Snapshot:
    if contents.kind != _KIND:
        raise FileError(f"{name} is a {contents.kind}, not a snapshot of the service")
    try:
        saved, state = contents.scalars["policy"], dict(contents.scalars["state"])
        state |= taken_from(_STATE, contents.arrays)
        candidates = {
            int(number): _undump_policy(one, taken_from(_CANDIDATE.format(number), contents.arrays))
            for number, one in contents.scalars.get("candidates", {}).items()
        }
        policy = _undump_policy(saved, contents.arrays)
        return Snapshot(int(contents.scalars["seq"]), policy, state, candidates)
    except SketchBanditError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise FileError(f"{name} does not hold a valid snapshot: {error!r}") from error


def read(path: Path) -> Snapshot:
    """Read a snapshot from a file. Raises FileError if it is damaged or something else."""
    return _load(files.read(path), str(path))


def snapshots_of(state: Path, database: Database, *, in_database: bool = False, keep: int = 3) -> Snapshots:
    """The snapshots of a service. They are written to its folder or database, and read from both."""
    folder, table_ = SnapshotFolder(state), SnapshotTable(database)
    return Snapshots(*((table_, folder) if in_database else (folder, table_)), keep=keep)
