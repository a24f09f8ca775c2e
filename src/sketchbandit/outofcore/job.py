"""The whole job: look at every file, read shards in processes, keep the finished ones, merge them."""

import builtins
import os
import tempfile
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict
from itertools import chain
from pathlib import Path

from sketchbandit import errors
from sketchbandit._version import __version__
from sketchbandit.arrays import Scalars
from sketchbandit.errors import FileError, InputError, InputTypeError, SketchBanditError
from sketchbandit.outofcore.shards import Plan, Shard, ShardFolder, SketchReader, check_alike, divide
from sketchbandit.outofcore.sources import STANDARD_INPUT, MatrixSource, find, leave_out, open_source
from sketchbandit.processes import Answer, NoAnswer, ask_all
from sketchbandit.sketch import Sketch
from sketchbandit.sketch.checks import check_count, check_dtype, check_real

WORKER = "sketchbandit.outofcore.worker"
_TRIES = 3  # for a shard whose worker dies: of something else, mostly


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
