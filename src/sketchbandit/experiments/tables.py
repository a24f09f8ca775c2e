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
LATE = 10**9
"""A horizon at which bounds say something."""


def write_csv(path: Path, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> Path:
    """Write the rows under their header; returns the path."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(rows)
    return path


def contenders(results: Results, name: str) -> tuple[list[str], list[list[str]]]:
    """Header and rows: every contender of an experiment at the end of its run."""
    if results.experiments[name].kind == "approximate":
        return _approximation(results, name)
    header = ["method", "λ", "β", "regret", "CPU seconds", "peak KiB", "rows", "certificate"]
    rows = [
        [
            line["label"],
            f"{line['ridge']:g}",
            f"{line['beta']:g}",
            f"{line['regret']:.1f}",
            f"{line['seconds']:.3f}",
            f"{line['kibibytes']:,.0f}",
            f"{line['rows']:.0f}",
            f"{line['certificate']:.3g}",
        ]
        for line in summary(results, name)
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
    """The table of algorithms: each bound, with constants, as a share of the trivial one, at T and later.

    Delta_T is that of the arms SOFUL chose; for later horizons it grows in proportion to T, as it does where
    the spectrum is flat. Bounds take ridge 1, noise 0.1, unit arms and theta, delta = 1/T.
    """
    name, size = "algorithms", 50
    horizon = rounds_of(results.experiments[name], results.profile)
    delta = results.final(name, spec("soful", size=size), "delta").mean
    last = int(results.final(name, DBS_FD, "sketch_size").mean)
    dim = 500
    tables = {}
    for rounds, last_size in ((horizon, last), (LATE, dim)):
        confidence = theory.Confidence(noise=0.1, theta_norm=1.0, arm_norm=1.0, delta=1.0 / rounds)
        tables[rounds] = theory.table(
            confidence,
            horizon=rounds,
            dim=dim,
            size=size,
            ridge=1.0,
            delta_t=delta * rounds / horizon,
            epsilon=float(DBS_FD.get("epsilon")),
            last_size=last_size,
        )
    measured = {line["label"]: line for line in summary(results, name)}
    rows = []
    for now, late in zip(tables[horizon], tables[LATE], strict=True):
        line = measured[now.algorithm]
        rows.append(
            {
                "algorithm": now.algorithm,
                "order": now.order,
                "time": now.time,
                "space": now.space,
                "horizon": horizon,
                "share": now.regret / (2.0 * horizon),
                "share_late": late.regret / (2.0 * LATE),
                "regret": line["regret"],
                "seconds": line["seconds"],
                "kibibytes": line["kibibytes"],
            }
        )
    return rows


def algorithms_table(results: Results, name: str) -> tuple[list[str], list[list[str]]]:
    """Header and rows of the table of algorithms."""
    del name
    found = algorithms(results)
    header = ["algorithm", "regret bound, order", "time", "space"]
    header += [f"bound / 2T, T = {found[0]['horizon']:,}", "bound / 2T, T = 10⁹"]
    header += ["regret, measured", "CPU seconds", "peak KiB"]
    rows = [
        [
            *(str(row[key]) for key in ("algorithm", "order", "time", "space")),
            f"{row['share']:.0%}",
            f"{row['share_late']:.1%}",
            f"{row['regret']:.1f}",
            f"{row['seconds']:.2f}",
            f"{row['kibibytes']:,.0f}",
        ]
        for row in found
    ]
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
