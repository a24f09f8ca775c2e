"""The whole job: which rows each worker reads, the folder of finished shards, and their merging."""

import builtins
import hashlib
import json
import os
import tempfile
from collections.abc import Sequence
from contextlib import closing, suppress
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from typing import Protocol, Self

from sketchbandit import errors, files
from sketchbandit._version import __version__
from sketchbandit.arrays import Arrays, Rows, Scalars
from sketchbandit.errors import FileError, InputError, InputTypeError, SketchBanditError
from sketchbandit.files import lock_folder
from sketchbandit.outofcore.sources import STANDARD_INPUT, MatrixSource, find, leave_out, open_source
from sketchbandit.processes import Answer, NoAnswer, ask_all
from sketchbandit.sketch import AdaptiveSketch, BulkReader, FrequentDirections, Sketch
from sketchbandit.sketch.bulk_reader import CentredReader
from sketchbandit.sketch.checks import check_count, check_dtype, check_real

_KIND = "part-of-a-sketch"
_SHARDS = 16  # of what is there, if that makes shards neither small nor large
_LEAST_BYTES, _MOST_BYTES = 1 << 26, 1 << 30  # of a shard, as float64
MANIFEST = "manifest.json"
_OURS = (MANIFEST, "[0-9][0-9][0-9][0-9][0-9].safetensors", ".*.safetensors.*.tmp", f".{MANIFEST}.*.tmp")
WORKER = "sketchbandit.outofcore.worker"
_TRIES = 3  # for a shard whose worker dies: of something else, mostly


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


# -- the job -------------------------------------------------------------------------------------


class Watcher:
    """Progress callbacks of ``sketch``; each does nothing by default."""

    def left_out(self, columns: Sequence[str]) -> None:
        """These columns are not read; told before ``begin``, if there are any."""

    def names(self, columns: Sequence[str]) -> None:
        """The columns that are read, if they have names; told before ``begin``."""

    def begin(self, rows: int | None, done: int) -> None:
        """There are so many rows, if that is known; some of them were read before."""

    def advance(self, rows: int) -> None:
        """So many more rows were read."""


def sketch(
    inputs: str | Path | Sequence[str | Path],
    *,
    size: int = 100,
    epsilon: float | None = None,
    center: bool = False,
    dtype: str = "float64",
    header: bool | None = None,
    drop: str | Sequence[str] = (),
    drop_text: bool = False,
    out: str | Path | None = None,
    jobs: int | None = None,
    resume: bool = False,
    fresh: bool = False,
    watcher: Watcher | None = None,
) -> Sketch:
    """The sketch of the rows of all inputs together, read a chunk at a time.

    The result does not depend on ``jobs``, nor on interruptions, to the bit (with the same number of BLAS
    threads in the process that asks).

    Parameters
    ----------
    inputs : str, Path, or sequence of them
        Files (.npy, .npz, .csv, .tsv, .txt, .parquet), globs of files, or "-" alone: standard input.
    size : int
        The sketch size: fewer rows than that are kept.
    epsilon : float, optional
        What the certificate may be at most; then as many rows are kept as that takes, and ``size`` is the
        least size.
    center : bool
        Whether the mean of each column is subtracted, in the same single pass. Then the result is a sketch of
        the centred rows Xc: S'S <= Xc'Xc <= S'S + e I. Xc'Xc / (n - 1) is the covariance matrix.
    dtype : str
        "float64", or "float32" for half the space of the result.
    header : bool, optional
        Whether the first line of text files has the names of the columns; by default it has if there is no
        number in it.
    drop : str or sequence of str
        Columns of text and Parquet files that are left out, by name (in text without names by number, from
        0). Every file may have them, and one must.
    drop_text : bool
        Whether columns that are no numbers (words, dates) are left out too. Otherwise they are refused, with
        their names. A column of a text file counts as such if its first lines hold no number; one number or
        one word among the others is an error in any case.
    out : path, optional
        The file for the result, written when all is read. Beside it, what is finished is kept meanwhile.
    jobs : int, optional
        Processes at a time; by default one for each core.
    resume, fresh : bool
        Whether to go on with what an interrupted job left beside ``out``, or to throw it away. Without
        either it is refused.
    watcher : Watcher, optional
        Is told how the work goes, and which columns were left out.

    """
    if hasattr(inputs, "shape"):
        raise InputTypeError(
            f"inputs are paths of files, got {type(inputs).__name__}; for rows in memory use "
            "FrequentDirections(dim, size=100).update(rows)"
        )
    size = check_count("size", size, at_least=2)
    epsilon = None if epsilon is None else check_real("epsilon", epsilon, above=0.0)
    jobs = (os.cpu_count() or 1) if jobs is None else check_count("jobs", jobs, at_least=1)
    if resume and fresh:
        raise InputError("resume goes on with what is there and fresh throws it away: choose one")
    if resume and out is None:
        raise InputError("there is nothing to resume without out: what is finished is kept beside it")
    names = find([str(name) for name in ([inputs] if isinstance(inputs, (str, Path)) else inputs)])
    target = None if out is None else _checked_target(Path(out), names)
    sources = [open_source(name, header) for name in names]
    left_out = leave_out(sources, [drop] if isinstance(drop, str) else drop, drop_text=drop_text)
    check_alike(sources)
    counts = [source.rows for source in sources if source.rows is not None]
    rows = sum(counts) if len(counts) == len(sources) else None
    plan = Plan(sources[0].dim, rows, size, epsilon, check_dtype(dtype).name, header, left_out, center)
    watcher = watcher or Watcher()
    if left_out:
        watcher.left_out(left_out)
    named = next((source.columns for source in sources if source.columns), None)
    if named:
        watcher.names(named)
    if names == [STANDARD_INPUT]:
        if resume:
            raise InputError("what came on standard input is gone: it cannot be resumed")
        if target is not None and not fresh:
            ShardFolder(target).check_absent()
        return _finish(_from_standard_input(plan, sources[0], watcher), target)
    if target is None:
        with tempfile.TemporaryDirectory(prefix="sketchbandit-") as folder:
            return _finish(_read_in_shards(plan, sources, Path(folder), jobs, watcher), None)
    with ShardFolder(target) as kept:
        kept.begin(_settings(plan), resume=resume, fresh=fresh)
        result = _finish(_read_in_shards(plan, sources, kept.path, jobs, watcher), target)
        kept.remove()
        return result


def _checked_target(path: Path, names: Sequence[str]) -> Path:
    if path.is_dir():
        raise InputError(f"cannot write {path}: it is a folder; name a file in it")
    if not path.parent.is_dir():
        raise InputError(f"cannot write {path}: there is no folder {path.parent}")
    if not os.access(path.parent, os.W_OK):
        raise InputError(f"cannot write {path}: the folder may not be written to")
    if path.exists() and not path.is_file():
        raise InputError(f"cannot write {path}: it is no ordinary file")
    if path.exists() and any(Path(name).exists() and path.samefile(name) for name in names):
        raise InputError(
            f"{path} is read: the sketch cannot be written over it; name another file with --out"
        )
    return path


def _from_standard_input(plan: Plan, source: MatrixSource, watcher: Watcher) -> SketchReader:
    bulk = plan.reader()
    watcher.begin(source.rows, 0)
    source.read_into(bulk.update, 0, source.rows or 0, watcher.advance)
    return bulk


def _read_in_shards(
    plan: Plan, sources: Sequence[MatrixSource], folder: Path, jobs: int, watcher: Watcher
) -> SketchReader:
    shards = divide(plan, sources, folder)
    missing = [shard for shard in shards if not _is_done(shard)]
    watcher.begin(plan.rows, sum(shard.rows for shard in shards) - sum(shard.rows for shard in missing))
    _work(missing, jobs, watcher)
    return _together(plan, shards)


def _finish(bulk: SketchReader, target: Path | None) -> Sketch:
    result = bulk.finish()
    result.compress()  # a stream's sketch may hold up to 2·size rows
    if target is not None:
        result.save(target)
    return result


def _settings(plan: Plan) -> Scalars:
    """What must be the same for a job to go on. Of the files, what has changed is read again."""
    settings = {name: value for name, value in asdict(plan).items() if name not in {"dim", "rows"}}
    return {"version": __version__, **settings, "drop": list(plan.drop)}


def _is_done(shard: Shard) -> bool:
    try:
        return shard.read() is not None
    except SketchBanditError:  # damaged: read again
        return False


def _work(shards: list[Shard], jobs: int, watcher: Watcher) -> None:
    """Have every shard read: again if its worker dies; one that cannot be read ends the job."""
    for _ in range(_TRIES):
        dead: list[NoAnswer[Shard]] = []
        with closing(ask_all(shards, jobs, WORKER, lambda news: watcher.advance(news["rows"]))) as answers:
            for found in chain.from_iterable(answers):
                if isinstance(found, Answer):
                    continue
                if not found.died:
                    raise _error(found.reason)
                dead.append(found)
        if not dead:
            return
        shards = [found.task for found in dead]
    raise SketchBanditError(
        f"{shards[0].name}: {_TRIES} workers died of it "
        f"({dead[0].reason}); if memory is short, use fewer jobs. What is finished is kept"
    )


def _error(reason: str) -> SketchBanditError:
    """What a worker raised, raised here."""
    kind, _, message = reason.partition(": ")
    if kind == errors.RowError.__name__:  # which is made of parts; its text says them all
        return errors.InputError(message)
    if kind in errors.__all__:
        return getattr(errors, kind)(message)  # type: ignore[no-any-return]
    is_of_the_system = issubclass(getattr(builtins, kind, type(None)), OSError)
    return SketchBanditError(message if is_of_the_system else reason)


def _together(plan: Plan, shards: Sequence[Shard]) -> SketchReader:
    """The shards merged in their order, whoever read them."""
    total = plan.reader()
    for shard in shards:
        bulk = shard.read()
        if bulk is None:
            raise FileError(f"{shard.out} has gone while the job ran; start again with --resume")
        total.merge(bulk)
    return total
