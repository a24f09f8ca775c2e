"""Whether logged probabilities are the frequencies of the choices: every rule, model, door, degenerate case.

    python -m benchmarks.propensities [--draws 100000] [--jobs 1] [--worst 20] [--out FILE]

draws from each case of the grid (``tests.propensities``), asks its door for the probability of everything
drawn, and prints the table of docs/exploration.md, worst first. It fails if a chi-square p-value is below
1e-4, or if the mean of 1{a}/p of an arm with p > 0.001 is more than 2 % from 1, beyond four standard errors.
Thompson sampling takes as many samples as there are draws; the statistic counts the error of both. With
``--out`` finished cases are kept in a file, so that a second call goes on.
"""

import argparse
import json
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import repeat
from multiprocessing import get_context
from pathlib import Path

from tests.propensities import Cell, Verdict, grid, judge

from sketchbandit_paper.reporting import markdown_table

_LEAST, _MOST = 1e-4, 0.02


def found(draws: int, jobs: int, out: Path | None) -> dict[Cell, Verdict]:
    """The verdict on every case."""
    known: dict[Cell, Verdict] = {}
    if out is not None and out.exists():
        for line in out.read_text().splitlines():
            cell, verdict = json.loads(line)
            known[Cell(*cell)] = Verdict(*verdict)
    left = [cell for cell in grid() if cell not in known]
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        for cell, verdict in zip(left, pool.map(judge, left, repeat(draws), repeat(draws)), strict=True):
            known[cell] = verdict
            if out is not None:
                with out.open("a") as file:
                    file.write(json.dumps([cell, verdict]) + "\n")
    return known


def table(verdicts: dict[Cell, Verdict], worst: int) -> str:
    """The cases with the smallest p-values, and the largest departure of the mean of 1{a}/p."""
    rows = sorted(verdicts.items(), key=lambda pair: pair[1].p_value)[:worst]
    header = ["rule", "rewards", "door", "case", "p-value", "mean of 1{a}/p, off by"]
    return markdown_table(header, [[*cell, f"{v.p_value:.2g}", f"{v.off:.2%}"] for cell, v in rows])


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table; fail if a case is out of bounds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--draws", type=int, default=100_000, help="draws for each case")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--worst", type=int, default=20, help="rows of the table")
    parser.add_argument("--out", type=Path, help="file for finished cases")
    given = parser.parse_args(arguments)
    verdicts = found(given.draws, given.jobs, given.out)
    print(table(verdicts, given.worst))
    least, most = min(v.p_value for v in verdicts.values()), max(v.excess for v in verdicts.values())
    print(f"{len(verdicts)} cases, {given.draws:,} draws each: p-values from {least:.2g}")
    assert least >= _LEAST, "choices are not as frequent as logged"
    assert most <= _MOST, "importance weights are biased"


if __name__ == "__main__":
    main()
