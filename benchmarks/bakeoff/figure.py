"""Mean regret with its interval, and every run, on every data set."""

from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.bakeoff.board import Board
from benchmarks.bakeoff.contestants import CEILING, DEFAULT, UNIFORM
from benchmarks.bakeoff.tables import families
from sketchbandit.drawing import COLOURS, STYLE


def save_figure(board: Board, path: Path) -> None:
    """Write one panel for each data set: the default, the best of each family, and the two marks."""
    sets = board.sets()
    with mpl.rc_context(STYLE):
        rows = -(-len(sets) // 2)
        figure = Figure(figsize=(11.0, 2.5 * rows), layout="constrained")
        axes = figure.subplots(rows, 2, squeeze=False).ravel()
        for axis in axes[len(sets) :]:
            axis.set_axis_off()
        for axis, data in zip(axes, sets, strict=False):
            _panel(axis, board, data)
        figure.supxlabel("regret: every run, the mean, and its 95 % interval", fontsize=9)
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=110)


def _panel(axis: Axes, board: Board, data: str) -> None:
    names = [DEFAULT, *(board.best(members, data) for members in families().values()), CEILING, UNIFORM]
    names = [name for name in names if name and board.cell(name, data).regrets]
    for place, name in enumerate(reversed(names)):
        cell = board.cell(name, data)
        colour = COLOURS[1] if name == DEFAULT else COLOURS[0]
        runs = list(cell.regrets.values())
        axis.plot(runs, [place] * len(runs), "|", color=colour, alpha=0.35, markersize=7)
        half = cell.half_width if len(cell.regrets) > 2 else None  # of two runs it says nothing
        axis.errorbar(cell.mean, place, xerr=half, fmt="o", color=colour, markersize=5, capsize=3)
    axis.set_yticks(range(len(names)), labels=list(reversed(names)))
    axis.set_xscale("symlog", linthresh=10.0)
    axis.set_xlim(left=0.0)
    axis.set_title(data)
