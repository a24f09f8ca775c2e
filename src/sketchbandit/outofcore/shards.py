"""Shards: which rows of which files one worker reads, and the folder that keeps the finished ones."""

import hashlib
import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Protocol, Self

from sketchbandit import files
from sketchbandit.arrays import Arrays, Rows, Scalars
from sketchbandit.errors import FileError, InputError
from sketchbandit.locking import lock_folder
from sketchbandit.outofcore.sources import MatrixSource
from sketchbandit.sketch import AdaptiveSketch, BulkReader, FrequentDirections, Sketch
from sketchbandit.sketch.bulk_reader import CentredReader

_KIND = "part-of-a-sketch"
_SHARDS = 16  # of what is there, if that makes shards neither small nor large
_LEAST_BYTES, _MOST_BYTES = 1 << 26, 1 << 30  # of a shard, as float64
MANIFEST = "manifest.json"
_OURS = (MANIFEST, "[0-9][0-9][0-9][0-9][0-9].safetensors", ".*.safetensors.*.tmp", f".{MANIFEST}.*.tmp")


class SketchReader(Protocol):
    """Makes a sketch of rows that come in pieces: ``BulkReader`` or ``CentredReader``."""

    @property
    def count(self) -> int:
        """The number of rows read."""

    def update(self, rows: Rows) -> None:
        """Add rows."""

    def merge(self, other: Self) -> None:
        """Add what another reader of the same class has read."""

    def finish(self) -> Sketch:
        """The sketch of everything read."""

    def dump(self) -> tuple[Scalars, Arrays]:
        """JSON values and arrays from which the reader can be made again."""


@dataclass(frozen=True)
class Plan:
    """The sketch that is wanted, of rows of length ``dim``, ``rows`` in all if that is known."""

    dim: int
    rows: int | None
    size: int
    epsilon: float | None
    dtype: str
    header: bool | None
    drop: tuple[str, ...] = ()
    """Columns that are not read."""
    center: bool = False
    """Whether the mean of each column is subtracted."""

    def reader(self) -> SketchReader:
        """One for a shard, or for everything."""
        return self.kind(self._sketch())

    @property
    def kind(self) -> type[BulkReader | CentredReader]:
        """The class of the readers."""
        return CentredReader if self.center else BulkReader

    def _sketch(self) -> Sketch:
        if self.epsilon is None:
            return FrequentDirections(self.dim, size=self.size, dtype=self.dtype)
        return AdaptiveSketch(
            self.dim,
            size=self.size,
            epsilon=self.epsilon,
            horizon=self.rows or None,  # that of all rows: the budgets of the shards add up to epsilon
            compensation=0.0,
            dtype=self.dtype,
        )


@dataclass(frozen=True)
class Piece:
    """Rows ``start`` to ``stop`` of a file, which is to be as long and as old as it was."""

    source: str
    start: int
    stop: int
    stamp: tuple[int, int]

    def check_unchanged(self) -> None:
        """Refuse a file that was written to since the job began."""
        if stamp_of(self.source) != self.stamp:
            raise FileError(f"{self.source} has changed since the job began; start again with --fresh")


@dataclass(frozen=True)
class Shard:
    """What one worker reads, and where it writes what came of it."""

    plan: Plan
    pieces: tuple[Piece, ...]
    out: str

    @property
    def rows(self) -> int:
        """How many there are."""
        return sum(piece.stop - piece.start for piece in self.pieces)

    @property
    def name(self) -> str:
        """For messages."""
        first, last = self.pieces[0], self.pieces[-1]
        if first is last:
            return f"{first.source}, rows {first.start} to {first.stop}"
        return f"{first.source} to {last.source}"

    @property
    def key(self) -> str:
        """Names what the shard is of."""
        described = {**asdict(self), "out": None}
        return hashlib.sha256(json.dumps(described, sort_keys=True).encode()).hexdigest()[:20]

    def to_json(self) -> str:
        """For a worker."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "Shard":
        """The inverse of ``to_json``."""
        fields = json.loads(text)
        pieces = [Piece(**{**piece, "stamp": tuple(piece["stamp"])}) for piece in fields["pieces"]]
        plan = {**fields["plan"], "drop": tuple(fields["plan"]["drop"])}
        return cls(Plan(**plan), tuple(pieces), fields["out"])

    def write(self, bulk: SketchReader) -> None:
        """Keep what was read."""
        scalars, arrays = bulk.dump()
        files.write(Path(self.out), _KIND, {"key": self.key, "bulk": scalars}, arrays)

    def read(self) -> SketchReader | None:
        """What was kept; None if that is not there, or of another shard."""
        path = Path(self.out)
        if not path.is_file():
            return None
        contents = files.read(path)
        if contents.kind != _KIND or contents.scalars["key"] != self.key:
            return None
        return self.plan.kind.undump(contents.scalars["bulk"], contents.arrays)


def stamp_of(source: str) -> tuple[int, int]:
    """What tells that a file has changed: its length and the time it was last written to."""
    status = Path(source).stat()
    return status.st_size, status.st_mtime_ns


def check_alike(sources: Sequence[MatrixSource]) -> None:
    """Refuse files that do not belong together."""
    first = sources[0]
    named = next((source for source in sources if source.columns), first)
    for other in sources:
        if other.dim != first.dim:
            raise InputError(
                f"{other.name}: its rows have length {other.dim}, but {first.name} has {first.dim}"
            )
        if not other.columns or not named.columns:
            continue
        for at, (mine, theirs) in enumerate(zip(other.columns, named.columns, strict=True)):
            if mine != theirs:
                raise InputError(
                    f"{other.name}: column {at} is called {mine!r}, but {theirs!r} in {named.name}"
                )


def divide(plan: Plan, sources: Sequence[MatrixSource], folder: Path) -> list[Shard]:
    """Every shard, in the order of the rows: ranges of large files, several small ones together."""
    bytes_a_row = 8 * plan.dim
    wished = (plan.rows or 0) * bytes_a_row // _SHARDS
    most = max(1, min(max(wished, _LEAST_BYTES), _MOST_BYTES) // bytes_a_row)
    groups: list[list[Piece]] = []
    room = 0
    for source in sources:
        stamp = stamp_of(source.name)
        for start, stop in source.divide(most):
            if start == stop:
                continue
            if stop - start > room:
                groups.append([])
                room = most
            groups[-1].append(Piece(source.name, start, stop, stamp))
            room -= stop - start
    return [
        Shard(plan, tuple(group), str(folder / f"{number:05}.safetensors"))
        for number, group in enumerate(groups)
    ]


class ShardFolder:
    """``NAME.parts`` beside a result called NAME, locked between ``with`` and its end.

    Only what we wrote is ever deleted in it.
    """

    def __init__(self, target: Path) -> None:
        self.path = target.with_name(f"{target.name}.parts")

    def __enter__(self) -> Self:
        self.path.mkdir(exist_ok=True)
        try:
            self._lock = lock_folder(self.path)
        except OSError as error:
            raise InputError(f"cannot write to {self.path}: {error.strerror}") from error
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if error is not None and not any(self.path.glob("*.safetensors")):
            self.remove()  # nothing is finished: nothing to go on with
        self._lock.close()

    def begin(self, manifest: Scalars, *, resume: bool, fresh: bool) -> None:
        """Go on with what is there if it is of the same job, or begin with nothing."""
        if fresh:
            self._delete_ours()
        before = self._manifest()
        if before is None:
            strange = [path.name for path in self.path.iterdir() if path.name != ".lock"]
            if strange:
                raise InputError(f"{self.path} holds {strange[0]}, which is not of a job; move it away")
            files.replace_file(self.path / MANIFEST, json.dumps(manifest, indent=1).encode())
            return
        if not resume:
            raise self._interrupted()
        for name, value in manifest.items():
            if before.get(name) != value:
                raise InputError(
                    f"{self.path} is of a job with {name} {before.get(name)!r}, and this one has {value!r}: "
                    "start anew with --fresh"
                )

    def check_absent(self) -> None:
        """Refuse to write the result if parts of an interrupted job lie here."""
        if self._manifest() is not None:
            raise self._interrupted()

    def remove(self) -> None:
        """The result is written: nothing of the job is needed any more."""
        self._delete_ours()
        (self.path / ".lock").unlink(missing_ok=True)
        with suppress(OSError):  # something that is not ours has come into it
            self.path.rmdir()

    def _delete_ours(self) -> None:
        for pattern in _OURS:
            for path in self.path.glob(pattern):
                path.unlink()

    def _manifest(self) -> Scalars | None:
        path = self.path / MANIFEST
        if not path.is_file():
            return None
        try:
            found: Scalars = json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise FileError(f"{path} is damaged; throw the job away with --fresh") from error
        return found

    def _interrupted(self) -> InputError:
        return InputError(
            f"{self.path} holds the parts of an interrupted job: go on with --resume, or throw them away "
            "with --fresh"
        )
