"""Runs on a Dask cluster instead of processes of our own: the same runs, the same rows."""

import traceback
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from threadpoolctl import threadpool_limits

from sketchbandit.errors import SketchBanditError
from sketchbandit.extras import how_to_install
from sketchbandit.simulation import machine
from sketchbandit.simulation.pool import Failure, Result
from sketchbandit.simulation.runs import Row, Run, perform

if TYPE_CHECKING:
    from distributed import Client, Future


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
        finished: Any = as_completed(futures, loop=client.loop, raise_errors=False)
        for batch in finished.batches():
            yield [_outcome(which[future.key], future) for future in batch]


def _connect(address: str) -> "Client":
    try:
        from sketchbandit.dask.merging import connect  # noqa: PLC0415  (the extra dask)
    except ModuleNotFoundError as error:
        raise SketchBanditError(f"a cluster needs dask: {how_to_install('dask')}") from error
    return connect(address)


def perform_there(text: str) -> list[Row] | str:
    """On a worker: the rows of a run, or what went wrong."""
    _use_one_thread()
    try:
        return [{**row, "machine": machine.describe()} for row in perform(Run.from_json(text))]
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
