"""Runs in processes: a run that kills its worker is a failure, not the end."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from sketchbandit.experiments.runs import Row, Run
from sketchbandit.processes import Answer, ask_all

WORKER = "sketchbandit.experiments.worker"


class Failure(NamedTuple):
    """Why a run gave no rows."""

    run: Run
    reason: str


class Result(NamedTuple):
    """The rows of a finished run."""

    run: Run
    rows: list[Row]


def run_all(runs: Sequence[Run], jobs: int) -> Iterator[list[Result | Failure]]:
    """Perform the runs in ``jobs`` processes; yields what has finished, as it finishes."""
    # In the order of their keys they are well mixed, so that the time left can be told from the time taken.
    for done in ask_all(sorted(runs, key=lambda run: run.key), jobs, WORKER):
        yield [
            Result(found.task, found.content["rows"])
            if isinstance(found, Answer)
            else Failure(found.task, found.reason)
            for found in done
        ]
