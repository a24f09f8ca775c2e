"""Runs in processes: a run that kills its worker is a failure, not the end."""

import hashlib
import json
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from sketchbandit.processes import Answer, ask_all
from sketchbandit.simulation.runs import Row, Run

WORKER = "sketchbandit.simulation.worker"


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
