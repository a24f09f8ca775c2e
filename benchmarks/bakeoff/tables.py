"""The results as tables of Markdown."""

import math
from collections.abc import Sequence

from benchmarks.bakeoff.board import Board, Cell
from benchmarks.bakeoff.contestants import CEILING, CONTESTANTS, DEFAULT, UNIFORM, Contestant
from benchmarks.bakeoff.judging import WORST_SHARE, Verdict
from benchmarks.bakeoff.libraries import LIBRARIES
from benchmarks.bakeoff.streams import CONDITIONS


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return (
        "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)
        + "\n"
    )


def families() -> dict[str, list[Contestant]]:
    """Whose best stands in the summary."""
    found = {"the paper's, on unit rows": [one for one in CONTESTANTS if one.normalise]}
    found |= {name: [one for one in CONTESTANTS if one.family == name] for name in LIBRARIES}
    return found


def summary(board: Board) -> str:
    """The default beside the best of each family."""
    sets = board.sets()
    rows = [
        [f"**`sb.adaptive(dim)`**, {DEFAULT}", *(f"**{_mean(board.cell(DEFAULT, data))}**" for data in sets)]
    ]
    for family, members in families().items():
        rows.append([f"best of {family}", *(_best(board, members, data) for data in sets)])
    rows += [[mark, *(_mean(board.cell(mark, data)) for data in sets)] for mark in (UNIFORM, CEILING)]
    rows.append(["worst run of the default", *(_number(board.cell(DEFAULT, data).worst) for data in sets)])
    limits = [WORST_SHARE * board.cell(UNIFORM, data).mean for data in sets]
    rows.append([f"{WORST_SHARE} times uniform's mean", *(_number(limit) for limit in limits)])
    for how in ("times 100", "plus 10"):
        ratios = [board.ratio(DEFAULT, DEFAULT, data, how, "plain") for data in sets]
        rows.append([f"rewards {how} ÷ plain", *(_ratio(ratio) for ratio in ratios)])
    return table(["mean regret", *sets], rows)


def variants(board: Board) -> str:
    """The default with one thing changed."""
    rows = []
    for one in CONTESTANTS:
        if one.kind in ("default", "variant"):
            cells = [board.cell(one.name, data) for data in board.sets()]
            told = [f"{_mean(cell)} ({_number(cell.worst)})" if cell.regrets else "-" for cell in cells]
            rows.append([f"`{one.setting}`", *told])
    return table(["", *board.sets()], rows)


def details(board: Board, data: str) -> str:
    """Everybody on one data set."""
    uniform = board.cell(UNIFORM, data).mean
    most = max(len(board.cell(one.name, data).regrets) for one in CONTESTANTS)
    rows = []
    for one in CONTESTANTS:
        plain, *others = (board.cell(one.name, data, how) for how in CONDITIONS)
        if not plain.regrets:
            continue
        rows.append(
            [
                f"**{one.name}**" if one.kind == "default" else one.name,
                _mean(plain) + _half_width(plain) + _runs(plain, most),
                _number(plain.worst),
                f"{plain.mean / uniform:.2f}" if uniform else "-",
                *(_mean(cell) + _runs(cell, most) for cell in others),
                _number(board.rate(one.name, data)),
                f"{plain.bytes / 1024:,.0f}" if plain.bytes else "-",
            ]
        )
    return table(["", "regret", "worst", "÷ uniform", *list(CONDITIONS)[1:], "rounds/s", "KiB"], rows)


def failures(board: Board) -> str:
    """Who could not play, or not always, and why."""
    rows = []
    for one in CONTESTANTS:
        for data in board.sets():
            cells = [board.cell(one.name, data, how) for how in CONDITIONS]
            errors = [error for cell in cells for error in cell.errors]
            if errors:
                tried = len(errors) + sum(len(cell.regrets) for cell in cells)
                rows.append([one.name, data, f"{len(errors)} of {tried}", f"`{errors[0]}`"])
    return table(["", "data set", "failed", "error"], rows) if rows else "Nobody failed.\n"


def settings() -> str:
    """How each was set, and why."""
    rows = [[one.name, one.version, f"`{one.setting}`", one.why] for one in CONTESTANTS]
    return table(["", "version", "setting", "why"], rows)


def answer(found: dict[str, list[Verdict]]) -> str:
    """On how many data sets each claim holds, as a list."""
    lines = []
    for claim, judged in found.items():
        known = [one for one in judged if one.holds is not None]
        lines.append(f"- {claim}: {sum(bool(one.holds) for one in known)} of {len(known)}.")
    return "\n".join(lines) + "\n"


def verdicts(found: dict[str, list[Verdict]]) -> str:
    """Each claim on each data set."""
    words = {True: "holds", False: "**does not hold**", None: "not judged"}
    rows = [
        [claim, *(f"{words[one.holds]}: {one.figure}" for one in judged)] for claim, judged in found.items()
    ]
    return table(["claim", *(one.data for one in next(iter(found.values())))], rows)


def _best(board: Board, members: Sequence[Contestant], data: str) -> str:
    name = board.best(members, data)
    if not name:
        return "-"
    cell = board.cell(name, data)
    most = len(board.cell(UNIFORM, data).regrets)
    ratio = board.ratio(DEFAULT, name, data)
    beside = "" if math.isnan(ratio) else f", x{ratio:.2f}"
    short = name.removeprefix(f"{members[0].family} ").removeprefix("VW ").removesuffix(", unit rows")
    return f"{_mean(cell)} ({short}{beside}{_runs(cell, most).replace(' (', '; ').replace(')', '')})"


def _half_width(cell: Cell) -> str:
    return "" if math.isnan(cell.half_width) else f" ± {cell.half_width:,.0f}"


def _runs(cell: Cell, most: int) -> str:
    count = len(cell.regrets)
    return f" ({count} run{'s' if count > 1 else ''})" if 0 < count < most else ""


def _mean(cell: Cell) -> str:
    return _number(cell.mean)


def _number(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:,.0f}"


def _ratio(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.2f}"
