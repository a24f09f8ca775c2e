"""Snapshots of a bandit: safetensors files, written atomically, checked when read, rotated."""

import shutil
from pathlib import Path
from typing import Any, NamedTuple

from sketchbandit import files
from sketchbandit.errors import FileError, SketchBanditError
from sketchbandit.policy import PerAction, Policy

_KIND = "service-snapshot"


class Snapshot(NamedTuple):
    """A bandit as it was after the record ``seq`` of the journal."""

    seq: int
    policy: Any
    state: dict[str, Any]
    """What else the bandit keeps: counters, history, the oldest open decision."""


class SnapshotFolder:
    """The snapshots of one bandit, ``keep`` of them; the newest first when they are listed."""

    def __init__(self, folder: Path, *, keep: int = 3) -> None:
        self.folder = folder
        self._keep = keep

    def paths(self) -> list[Path]:
        """The files, newest first."""
        return sorted(self.folder.glob("*.safetensors"), reverse=True)

    def write(self, snapshot: Snapshot) -> Path:
        """Add a snapshot and forget the oldest."""
        self.folder.mkdir(parents=True, exist_ok=True)
        policy = snapshot.policy
        scalars, arrays = policy.dump()
        content = {"policy": {"kind": policy.kind, "scalars": scalars}, "state": snapshot.state}
        path = self.folder / f"{snapshot.seq:020d}.safetensors"
        files.write(path, _KIND, {"seq": snapshot.seq, **content}, arrays)
        for old in self.paths()[self._keep :]:
            old.unlink(missing_ok=True)
        return path

    def clean(self) -> None:
        """Remove what a crash in the middle of ``write`` left behind."""
        for path in self.folder.glob(".*.tmp"):
            path.unlink(missing_ok=True)

    def put_aside(self, path: Path) -> None:
        """Take a snapshot that cannot be used out of the way, where somebody can still look at it."""
        path.replace(path.with_name(f"{path.name}.unusable"))

    def delete(self) -> None:
        """Remove all of them."""
        shutil.rmtree(self.folder, ignore_errors=True)


def read(path: Path) -> Snapshot:
    """One snapshot; FileError if it is damaged or something else."""
    contents = files.read(path)
    if contents.kind != _KIND:
        raise FileError(f"{path} is a {contents.kind}, not a snapshot of the service")
    try:
        saved = contents.scalars["policy"]
        family = PerAction if PerAction.has_kind(saved["kind"]) else Policy
        policy = family.of_kind(saved["kind"]).undump(saved["scalars"], contents.arrays)
        return Snapshot(int(contents.scalars["seq"]), policy, dict(contents.scalars["state"]))
    except SketchBanditError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise FileError(f"{path} does not hold a valid snapshot: {error!r}") from error
