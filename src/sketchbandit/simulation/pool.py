"""Many runs, in processes of our own or on a Dask cluster: the same rows; one that fails is not the end."""

import hashlib
import json
import os
import platform
import traceback
from collections.abc import Iterator, Sequence
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from threadpoolctl import threadpool_limits

from sketchbandit.errors import SketchBanditError
from sketchbandit.extras import how_to_install
from sketchbandit.kernels import kernels
from sketchbandit.processes import Answer, Message, Tell, ask_all, serve
from sketchbandit.simulation.runs import Row, Run, perform

if TYPE_CHECKING:
    from distributed import Client, Future

WORKER = "sketchbandit.simulation.pool"


class Failure(NamedTuple):
    """Why a run gave no rows."""

    run: Run
    reason: str


class Result(NamedTuple):
    """The rows of a finished run."""

    run: Run
    rows: list[Row]


def in_order(runs: Sequence[Run]) -> list[Run]:
    """Those that see the same rounds one after another: a worker draws them once.

    Streams, and the runs of one, are well mixed, so that the time left can be told from the time taken, and
    nobody's timings are all of a busy hour.
    """

    def place(run: Run) -> tuple[str, str]:
        seen = json.dumps([run.environment, run.seed])
        return hashlib.sha256(seen.encode()).hexdigest(), run.key

    return sorted(runs, key=place)


def run_all(runs: Sequence[Run], jobs: int) -> Iterator[list[Result | Failure]]:
    """Perform the runs in ``jobs`` processes; yields what has finished, as it finishes."""
    for done in ask_all(in_order(runs), jobs, WORKER):
        yield [
            Result(found.task, found.content["rows"])
            if isinstance(found, Answer)
            else Failure(found.task, found.reason)
            for found in done
        ]


def handle(task: str, tell: Tell) -> Message:
    """In a process: the rows of a run."""
    del tell
    return {"rows": perform(Run.from_json(task))}


def run_on_cluster(runs: Sequence[Run], address: str) -> Iterator[list[Result | Failure]]:
    """Perform the runs on the scheduler at ``address``; yields what has finished, as it finishes.

    A worker that dies has its runs done by others, three times at most, as Dask does; the rest go on.
    """
    if not runs:
        return
    with _connect(address) as client:
        from distributed import as_completed  # noqa: PLC0415  (the extra dask)

        ordered = sorted(runs, key=lambda run: run.key)
        futures = client.map(perform_there, [run.to_json() for run in ordered], pure=False)
        which = {future.key: run for future, run in zip(futures, ordered, strict=True)}
        finished = as_completed(futures, loop=client.loop, raise_errors=False)
        for batch in finished.batches():
            yield [_outcome(which[future.key], future) for future in batch]


def _connect(address: str) -> "Client":
    try:
        from sketchbandit.dask.partitions import connect  # noqa: PLC0415  (the extra dask)
    except ModuleNotFoundError as error:
        raise SketchBanditError(f"a cluster needs dask: {how_to_install('dask')}") from error
    return connect(address)


def perform_there(text: str) -> list[Row] | str:
    """On a worker: the rows of a run, or what went wrong."""
    _use_one_thread()
    try:
        return [{**row, "machine": describe_machine()} for row in perform(Run.from_json(text))]
    except (SketchBanditError, OSError, MemoryError) as error:
        return f"{type(error).__name__}: {error}"
    except Exception:
        return traceback.format_exc(limit=-3)


@lru_cache(maxsize=1)
def _use_one_thread() -> None:
    """As in a process of ours. Set once: per-task limits race."""
    threadpool_limits(1)


def _outcome(run: Run, future: "Future[list[Row] | str]") -> Result | Failure:
    if future.status != "finished":
        return Failure(run, f"on the cluster: {future.exception()}")
    found = future.result()
    return Failure(run, found) if isinstance(found, str) else Result(run, found)


@lru_cache(maxsize=1)
def describe_machine() -> str:
    """What a timing was measured on: processor, cores, system, Python, numpy, and numba if it compiles."""
    loops = f"numba {version('numba')}" if kernels() is not None else "loops in numpy"
    cores = os.cpu_count() or 1
    return (
        f"{_processor()}, {cores} cores, {platform.system()}, Python {platform.python_version()}, "
        f"numpy {version('numpy')}, {loops}"
    )


def _processor() -> str:
    information = Path("/proc/cpuinfo")
    if information.is_file():
        for line in information.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


if __name__ == "__main__":
    threadpool_limits(1)
    serve(handle)
