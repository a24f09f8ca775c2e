"""Tables of flat rows: what the paper tabulates, with our numbers."""

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sketchbandit.simulation import policies
from sketchbandit.simulation.runs import DROUGHT
from sketchbandit_paper import bounds
from sketchbandit_paper.results import Results, summary


def write_csv(path: Path, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> Path:
    """Write the rows under their header; returns the path."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(rows)
    return path


def contenders(results: Results, name: str) -> tuple[list[str], list[list[str]]]:
    """Header and rows: every contender of an experiment at the end of its run.

    "worst" is the permutation of the most regret. The difference to the first one is paired by permutation;
    "too small" counts the runs in which the policy warned that its sketch is heading for linear regret.
    """
    kind = results.experiments[name].kind
    if kind != "play":
        return _OF_KIND[kind](results, name)
    lines = summary(results, name)
    signs = {line["sign"]: None for line in lines if line["sign"]}
    header = ["method", "λ", ", ".join(signs), "regret", "worst", f"less {lines[0]['label']}'s"]
    header += ["reward rate", "CPU seconds", "peak KiB", "rows", "certificate", "too small"]
    rows = [
        [
            line["label"],
            f"{line['ridge']:g}" if line["learns"] else "",
            _number(line, signed=len(signs) > 1),
            f"{line['regret']:.1f}",
            f"{line['worst']:.1f}",
            f"{line['beside']:+.1f}".replace("± +", "± ") if line is not lines[0] else "",
            f"{line['rate']:.3f}",
            *_costs(line),
            f"{line['warned']} of {line['permutations']}" if line["warned"] else "",
        ]
        for line in lines
    ]
    return header, rows


def _costs(line: dict[str, Any]) -> list[str]:
    """Time, memory and sketch of who learns; chance has none."""
    if not line["learns"]:
        return [""] * 4
    seconds, kibibytes = f"{line['seconds']:.3f}", f"{line['kibibytes']:,.0f}"
    return [seconds, kibibytes, f"{line['rows']:.0f}", f"{line['certificate']:.3g}"]


def _number(line: dict[str, Any], *, signed: bool) -> str:
    """That of the rule, with its sign where there are several; nothing for a rule without one."""
    if not line["sign"]:
        return ""
    number = f"{line['number']:g}" if np.isfinite(line["number"]) else "as it learns"
    return f"{line['sign']} = {number}" if signed else number


def plain(results: Results, name: str) -> tuple[list[str], list[list[str]]]:
    """What a newcomer asks: how much was lost on average and at worst, how much was earned, at what cost."""
    lines = summary(results, name)
    seeds = max(line["permutations"] for line in lines)
    worst = f"worst of {seeds} seeds" if seeds > 1 else "worst seed"
    header = ["policy", "regret, mean", worst, "reward rate", "time a round", "memory"]
    rows = [
        [
            line["label"],
            f"{line['regret'].mean:,.1f}",
            f"{line['worst']:,.1f}",
            f"{line['rate']:.3f}",
            f"{1e6 * line['seconds_a_round']:,.0f} µs" if line["learns"] else "-",
            f"{line['kibibytes']:,.0f} KiB" if line["learns"] else "-",
        ]
        for line in lines
    ]
    return header, rows


def space(results: Results, name: str) -> tuple[list[str], list[list[str]]]:
    """The paper's table of space with ours beside it."""
    lines = summary(results, name)
    first = lines[0]
    header = ["method", "KiB, the paper", "KiB, ours", f"of {first['label']}'s", "rows at the end", "regret"]
    rows = [
        [
            line["label"],
            f"{series.reported:,.1f}",
            f"{line['kibibytes']:,.1f}",
            f"{line['kibibytes'] / first['kibibytes']:.0%}",
            f"{line['rows']:.0f}",
            f"{line['regret']:.0f}",
        ]
        for series, line in zip(results.experiments[name].series, lines, strict=True)
    ]
    return header, rows


def algorithms(results: Results, name: str) -> tuple[list[str], list[list[str]]]:
    """The paper's table of algorithms with its bounds evaluated, and what was measured."""
    header = ["algorithm", "regret bound, order", "time", "space", "bound below 2T from"]
    header += ["regret, measured", "CPU seconds", "peak KiB"]
    measured = {line["label"]: line for line in summary(results, name)}
    rows = [
        [
            *(bound.algorithm, bound.order, bound.time, bound.space),
            (f"T = {first:.0e}" if np.isfinite(first) else "never") if has_constants else "order only",
            f"{measured[bound.algorithm]['regret']:.1f}",
            f"{measured[bound.algorithm]['seconds']:.2f}",
            f"{measured[bound.algorithm]['kibibytes']:,.0f}",
        ]
        for bound, first, has_constants in bounds.evaluated(results)
    ]
    return header, rows


def droughts(results: Results, name: str) -> tuple[list[str], list[list[str]]]:
    """How many runs earned nothing for 500 rounds, at the start and anywhere, by rule and reading."""
    header = ["rule", "features", f"nothing in the first {DROUGHT} rounds", f"in {DROUGHT} rounds anywhere"]
    rows = []
    for label, members in results.series(name):
        for member in members:
            dry = [results.finals(name, member, f"dry_at_{when}") for when in ("first", "most")]
            starved = [f"{(rounds >= DROUGHT).sum()} of {len(rounds)}" for rounds in dry]
            regrets = results.finals(name, member)
            longest = f"{dry[1].max():.0f}"
            numbers = (longest, f"{regrets.mean():.1f}", f"{regrets.max():.1f}")
            rows.append([label, policies.reading(member), *starved, *numbers])
    return [*header, "longest", "regret", "worst"], rows


def clicks(results: Results, name: str) -> tuple[list[str], list[list[str]]]:
    """Regret, clicks and log loss of every contender."""
    header = ["method", "λ", "number", "regret", "worst", "share of clicks", "log loss a round"]
    rows = []
    for label, members in results.series(name):
        member = members[0]
        rounds = float(results.of(name, member)["rounds"].iloc[0])
        played = [f"{results.final(name, member, column).mean:g}" for column in ("ridge", "number")]
        regret = [f"{results.final(name, member):.1f}", f"{results.finals(name, member).max():.1f}"]
        clicked, loss = (results.final(name, member, column).mean for column in ("reward", "log_loss"))
        rows.append([label, *played, *regret, f"{clicked / rounds:.3f}", f"{loss / rounds:.4f}"])
    return header, rows


def _approximation(results: Results, name: str) -> tuple[list[str], list[list[str]]]:
    rows = []
    for label, members in results.series(name):
        last = results.of(name, members[0]).sort_values("round").iloc[-1]
        numbers = (f"{last[column]:.3f}" for column in ("error", "certificate", "bound"))
        rows.append([label, f"{last['round']:.0f}", f"{last['sketch_rows']:.0f}", *numbers])
    return ["sketch", "rows read", "rows kept", "true error", "certificate", "bound"], rows


_OF_KIND = {"approximate": _approximation, "starve": droughts, "click": clicks}
TABLES = {"space": space, "algorithms": algorithms, "costs": plain}
"""By the ``figure`` of an experiment; the others have the table of contenders."""


def short_table(results: Results, name: str) -> tuple[list[str], list[list[str]]]:
    """What fits a console: of a race the plain table, else the whole one."""
    experiment = results.experiments[name]
    is_race = experiment.kind == "play" and experiment.figure not in TABLES
    return (plain if is_race else table)(results, name)


def table(results: Results, name: str) -> tuple[list[str], list[list[str]]]:
    """The table of an experiment: header and rows. A special one needs every run to be there."""
    special = TABLES.get(results.experiments[name].figure)
    return (special if special and not results.missing(name) else contenders)(results, name)
