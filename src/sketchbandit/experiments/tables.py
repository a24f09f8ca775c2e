"""Tables of flat rows: what the paper tabulates, with our numbers."""

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from sketchbandit import theory
from sketchbandit.experiments.definitions import DBS_FD
from sketchbandit.experiments.plan import rounds_of
from sketchbandit.experiments.results import Results, summary
from sketchbandit.experiments.specs import spec

PAPERS_KIBIBYTES = {
    "OFUL": 4802.0,
    "SOFUL, l = 20": 682.9,
    "SOFUL, l = 100": 1528.3,
    "SOFUL, l = 150": 2529.3,
    "DBSLinUCB-FD": 2842.0,
}
HORIZONS = tuple(10**k for k in range(3, 16))
"""Where bounds are evaluated."""


def write_csv(path: Path, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> Path:
    """Write the rows under their header; returns the path."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(rows)
    return path


def contenders(results: Results, name: str) -> tuple[list[str], list[list[str]]]:
    """Header and rows: every contender of an experiment at the end of its run.

    The difference to the first one is paired by permutation; "too small" counts the runs in which the policy
    warned that its sketch is heading for linear regret.
    """
    if results.experiments[name].kind == "approximate":
        return _approximation(results, name)
    lines = summary(results, name)
    header = ["method", "λ", "β", "regret", f"less {lines[0]['label']}'s", "CPU seconds", "peak KiB"]
    header += ["rows", "certificate", "too small"]
    rows = [
        [
            line["label"],
            f"{line['ridge']:g}",
            f"{line['beta']:g}",
            f"{line['regret']:.1f}",
            f"{line['beside']:+.1f}".replace("± +", "± ") if line is not lines[0] else "",
            f"{line['seconds']:.3f}",
            f"{line['kibibytes']:,.0f}",
            f"{line['rows']:.0f}",
            f"{line['certificate']:.3g}",
            f"{line['warned']} of {line['permutations']}" if line["warned"] else "",
        ]
        for line in lines
    ]
    return header, rows


def space(results: Results, name: str) -> tuple[list[str], list[list[str]]]:
    """The paper's table of space with ours beside it."""
    header = ["method", "KiB, the paper", "KiB, ours", "of OFUL's", "rows at the end", "regret"]
    lines = {line["label"]: line for line in summary(results, name)}
    exact = lines["OFUL"]["kibibytes"]
    rows = [
        [
            label,
            f"{PAPERS_KIBIBYTES[label]:,.1f}",
            f"{line['kibibytes']:,.1f}",
            f"{line['kibibytes'] / exact:.0%}",
            f"{line['rows']:.0f}",
            f"{line['regret']:.0f}",
        ]
        for label, line in lines.items()
    ]
    return header, rows


def algorithms(results: Results) -> list[dict[str, Any]]:
    """The table of algorithms: from which horizon on each bound, with its constants, says anything.

    ``first`` is the first power of ten at which it is below the trivial 2T; None if there is none up to
    10^15. Delta_T is that of the arms SOFUL chose, and grows on in proportion to T, as it does where the
    spectrum is flat. Bounds take ridge 1, noise 0.1, unit arms and theta, delta = 1/T; CBRAP's has no
    constants in the paper.
    """
    name, size, dim = "algorithms", 50, 500
    played = rounds_of(results.experiments[name], results.profile)
    delta = results.final(name, spec("soful", size=size), "delta").mean
    below: dict[str, int] = {}
    for horizon in HORIZONS:
        bounds = theory.table(
            theory.Confidence(noise=0.1, theta_norm=1.0, arm_norm=1.0, delta=1.0 / horizon),
            horizon=horizon,
            dim=dim,
            size=size,
            ridge=1.0,
            delta_t=delta * horizon / played,
            epsilon=float(DBS_FD.get("epsilon")),
            last_size=dim,
        )
        for bound in bounds:
            if bound.regret < 2.0 * horizon:
                below.setdefault(bound.algorithm, horizon)
    measured = {line["label"]: line for line in summary(results, name)}
    return [
        {
            **measured[bound.algorithm],
            **{key: getattr(bound, key) for key in ("algorithm", "order", "time", "space")},
            "first": below.get(bound.algorithm),
        }
        for bound in bounds
    ]


def algorithms_table(results: Results, name: str) -> tuple[list[str], list[list[str]]]:
    """Header and rows of the table of algorithms."""
    del name
    header = ["algorithm", "regret bound, order", "time", "space", "bound below 2T from"]
    header += ["regret, measured", "CPU seconds", "peak KiB"]
    rows = []
    for row in algorithms(results):
        first = (
            "order only"
            if row["algorithm"] == "CBRAP"
            else f"T = {row['first']:.0e}"
            if row["first"]
            else "never"
        )
        rows.append(
            [
                *(str(row[key]) for key in ("algorithm", "order", "time", "space")),
                first,
                f"{row['regret']:.1f}",
                f"{row['seconds']:.2f}",
                f"{row['kibibytes']:,.0f}",
            ]
        )
    return header, rows


def _approximation(results: Results, name: str) -> tuple[list[str], list[list[str]]]:
    rows = []
    for label, members in results.series(name):
        last = results.of(name, members[0]).sort_values("round").iloc[-1]
        numbers = (f"{last[column]:.3f}" for column in ("error", "certificate", "bound"))
        rows.append([label, f"{last['round']:.0f}", f"{last['sketch_rows']:.0f}", *numbers])
    return ["sketch", "rows read", "rows kept", "true error", "certificate", "bound"], rows


TABLES = {"space": space, "algorithms": algorithms_table}
"""By the ``figure`` of an experiment; the others have the table of contenders."""


def table(results: Results, name: str) -> tuple[list[str], list[list[str]]]:
    """The table of an experiment: header and rows. A special one needs every run to be there."""
    special = TABLES.get(results.experiments[name].figure)
    return (special if special and not results.missing(name) else contenders)(results, name)
