"""The whole job: look at every file, read the parts in processes, keep what is done, put it together."""

import json
import os
import shutil
from collections.abc import Sequence
from contextlib import ExitStack, closing
from itertools import chain
from pathlib import Path
from typing import Any

from sketchbandit import errors, files
from sketchbandit._version import __version__
from sketchbandit.errors import FileError, InputError, SketchBanditError
from sketchbandit.locking import lock_folder
from sketchbandit.outofcore.parts import Part, Plan, check_alike, divide
from sketchbandit.outofcore.reading import read_into
from sketchbandit.outofcore.sources import STANDARD_INPUT, Source, find, open_source
from sketchbandit.outofcore.worker import read_part
from sketchbandit.processes import Answer, NoAnswer, ask_all
from sketchbandit.sketch import Bulk, Sketch
from sketchbandit.sketch.checks import check_count, check_dtype, check_real

WORKER = "sketchbandit.outofcore.worker"
MANIFEST = "manifest.json"
_TRIES = 3  # for a part whose worker dies: of something else, mostly


class Watcher:
    """Who is told how the work goes: this one keeps it to itself, a progress bar shows it."""

    def begin(self, rows: int | None, done: int) -> None:
        """There are so many rows, if that is known; some of them were read before."""

    def advance(self, rows: int) -> None:
        """So many more rows were read."""


def sketch(
    inputs: Sequence[str | Path],
    *,
    size: int = 100,
    epsilon: float | None = None,
    dtype: str = "float64",
    out: str | Path | None = None,
    jobs: int | None = None,
    resume: bool = False,
    fresh: bool = False,
    watcher: Watcher | None = None,
) -> Sketch:
    """The sketch of the rows of all inputs together, read a chunk at a time.

    Parameters
    ----------
    inputs : sequence of str or Path
        Files (.npy, .npz, .csv, .tsv, .txt, .parquet), globs of files, or "-" alone: standard input.
    size : int
        The sketch size: fewer rows than that are kept.
    epsilon : float, optional
        What the certificate may be at most; then as many rows are kept as that takes, and ``size`` is the
        least size.
    dtype : str
        "float64", or "float32" for half the space of the result.
    out : path, optional
        The file for the result, written when all is read. Beside it, what is finished is kept meanwhile.
    jobs : int, optional
        Processes at a time; by default one for each core.
    resume, fresh : bool
        Whether to go on with what an interrupted job left beside ``out``, or to throw it away. Without
        either it is refused.
    watcher : Watcher, optional
        Is told how the work goes.

    The result does not depend on ``jobs``, nor on interruptions.

    """
    size = check_count("size", size, at_least=2)
    epsilon = None if epsilon is None else check_real("epsilon", epsilon, above=0.0)
    jobs = (os.cpu_count() or 1) if jobs is None else check_count("jobs", jobs, at_least=1)
    target = None if out is None else _writable(Path(out))
    if resume and fresh:
        raise InputError("resume goes on with what is there and fresh throws it away: choose one")
    if resume and target is None:
        raise InputError("there is nothing to resume without out: what is finished is kept beside it")
    names = find([str(name) for name in inputs])
    sources = [open_source(name) for name in names]
    check_alike(sources)
    counts = [source.rows for source in sources if source.rows is not None]
    rows = sum(counts) if len(counts) == len(sources) else None
    plan = Plan(sources[0].dim, rows, size, epsilon, check_dtype(dtype).name)
    watcher = watcher or Watcher()
    if names == [STANDARD_INPUT]:
        if resume:
            raise InputError("what came on standard input is gone: it cannot be resumed")
        result = _read_here(plan, sources[0], watcher)
    else:
        result = _read_in_parts(plan, sources, target, jobs, watcher, resume=resume, fresh=fresh)
    if target is not None:
        result.save(target)
        shutil.rmtree(_folder(target), ignore_errors=True)
    return result


def _writable(path: Path) -> Path:
    if path.is_dir():
        raise InputError(f"cannot write {path}: it is a folder; name a file in it")
    if not path.parent.is_dir():
        raise InputError(f"cannot write {path}: there is no folder {path.parent}")
    if not os.access(path.parent, os.W_OK):
        raise InputError(f"cannot write {path}: the folder may not be written to")
    return path


def _read_here(plan: Plan, source: Source, watcher: Watcher) -> Sketch:
    bulk = plan.reader()
    watcher.begin(source.rows, 0)
    read_into(bulk, source, 0, source.rows or 0, watcher.advance)
    return bulk.finish()


def _folder(target: Path) -> Path:
    return target.with_name(f"{target.name}.parts")


def _read_in_parts(
    plan: Plan,
    sources: Sequence[Source],
    target: Path | None,
    jobs: int,
    watcher: Watcher,
    *,
    resume: bool,
    fresh: bool,
) -> Sketch:
    with ExitStack() as stack:
        if target is None:
            import tempfile  # noqa: PLC0415  (rarely)

            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="sketchbandit-")))
        else:
            folder = _folder(target)
            folder.mkdir(exist_ok=True)
            stack.enter_context(lock_folder(folder))
            _begin(folder, _manifest(plan, sources), resume=resume, fresh=fresh)
        parts = divide(plan, sources, folder)
        finished = [part for part in parts if _is_done(part)]
        watcher.begin(plan.rows, sum(part.stop - part.start for part in finished))
        _work([part for part in parts if part not in finished], jobs, watcher)
        return _together(plan, parts).finish()


def _manifest(plan: Plan, sources: Sequence[Source]) -> dict[str, Any]:
    """What must be the same for a job to go on with what is there."""
    described = {}
    for source in sources:
        status = Path(source.name).stat()
        described[str(Path(source.name).resolve())] = [status.st_size, status.st_mtime_ns]
    return {
        "version": __version__,
        "size": plan.size,
        "epsilon": plan.epsilon,
        "dtype": plan.dtype,
        "inputs": described,
    }


def _begin(folder: Path, manifest: dict[str, Any], *, resume: bool, fresh: bool) -> None:
    path = folder / MANIFEST
    if path.is_file() and not fresh:
        try:
            before = json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise FileError(f"{path} is damaged; throw it away with fresh (--fresh)") from error
        if not resume:
            raise InputError(
                f"{folder} holds the parts of an interrupted job: go on with --resume, or throw them away "
                "with --fresh"
            )
        differing = [name for name in manifest if before.get(name) != manifest[name]]
        if differing:
            raise InputError(
                f"{folder} is of a job with other {', '.join(differing)}: start anew with --fresh"
            )
        return
    for old in folder.glob("*.safetensors"):
        old.unlink()
    files.replace_file(path, json.dumps(manifest, indent=1).encode())


def _is_done(part: Part) -> bool:
    try:
        return read_part(part) is not None
    except SketchBanditError:  # damaged: read again
        return False


def _work(parts: list[Part], jobs: int, watcher: Watcher) -> None:
    """Have every part read. A part whose worker dies is tried again; one that cannot be read ends the job."""
    for attempt in range(1, _TRIES + 1):
        dead: list[NoAnswer[Part]] = []
        with closing(ask_all(parts, jobs, WORKER, lambda news: watcher.advance(news["rows"]))) as answers:
            for found in chain.from_iterable(answers):
                if isinstance(found, Answer):
                    continue
                if not found.died:
                    raise _error(found.reason)
                dead.append(found)
        if not dead:
            return
        parts = [found.task for found in dead]
        if attempt == _TRIES:
            part = dead[0].task
            raise SketchBanditError(
                f"{part.source}, rows {part.start} to {part.stop}: {_TRIES} workers died of it "
                f"({dead[0].reason}); if memory is short, use fewer jobs. What is finished is kept"
            )


def _error(reason: str) -> SketchBanditError:
    """What a worker raised, raised here."""
    kind, _, message = reason.partition(": ")
    if kind in errors.__all__:
        return getattr(errors, kind)(message)  # type: ignore[no-any-return]
    return SketchBanditError(reason)


def _together(plan: Plan, parts: Sequence[Part]) -> Bulk:
    """The parts merged in their order, whoever read them."""
    total = plan.reader()
    for part in parts:
        bulk = read_part(part)
        if bulk is None:
            raise FileError(f"{part.out} has gone while the job ran; start again with --resume")
        total.merge(bulk)
    return total
