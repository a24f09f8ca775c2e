"""Do some runs of a folder again, and see whether they give what is written there."""

import random
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from sketchbandit.simulation.runs import Run, perform
from sketchbandit_paper import plan
from sketchbandit_paper.results import Results
from sketchbandit_paper.store import SCHEMA

if TYPE_CHECKING:
    import pandas as pd

_OF_THE_MACHINE = ["seconds", "machine"]


class Verified(NamedTuple):
    """A run that was done again, and the columns in which it differs; none: the same to the bit."""

    run: Run
    different: list[str]


def verify(folder: Path, *, runs: int, seed: int | None = None) -> list[Verified]:
    """Draw so many finished runs of a folder, do them again, and compare everything but the seconds."""
    results = Results.read(folder)
    experiments = list(results.experiments.values())
    planned = plan.tuning_runs(experiments, results.profile)
    planned += plan.final_runs(experiments, results.profile, results.choices)
    known = set(results.all_rows["run"])
    finished = sorted((run for run in planned if run.key in known), key=lambda run: run.key)
    drawn = random.Random(seed).sample(finished, min(runs, len(finished)))  # noqa: S311  (nothing secret)
    return [Verified(run, _differences(results.all_rows, run)) for run in drawn]


def _differences(rows: "pd.DataFrame", run: Run) -> list[str]:
    again: pd.DataFrame = pa.Table.from_pylist(perform(run), schema=SCHEMA).to_pandas()
    order = ["ridge", "number", "round"]
    here, there = (
        found.sort_values(order).reset_index(drop=True).drop(columns=_OF_THE_MACHINE)
        for found in (again, rows[rows["run"] == run.key])
    )
    if len(here) != len(there):
        return ["rows"]
    return [name for name in here.columns if not here[name].equals(there[name].astype(here[name].dtype))]
