"""Runs of experiments in the process of the test: a worker takes two seconds to start.

That workers give the same results, and what happens when they fail, is what test_runner.py is about.
"""

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest

from sketchbandit.simulation.pool import Failure, Result, in_order
from sketchbandit.simulation.runs import Run, perform


def perform_here(runs: Sequence[Run], jobs: int) -> Iterator[list[Result | Failure]]:
    """As ``run_all``, but without processes; an error is an error of the test."""
    assert jobs >= 1
    for run in in_order(runs):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # as in a worker
            rows = perform(run)
        yield [Result(run, rows)]


@contextmanager
def in_process() -> Iterator[None]:
    """No workers are started."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sketchbandit_paper.runner.run_all", perform_here)
        yield
