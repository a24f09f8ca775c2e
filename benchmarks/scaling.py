"""How the cost grows over n, d and l, beside the slopes of the cost model."""

from typing import NamedTuple

import matplotlib as mpl
from matplotlib.figure import Figure

from benchmarks import rivals
from benchmarks.timing import best_seconds, unit_rows
from sketchbandit.drawing import COLOURS, STYLE

BASE = {"rows n": 4000, "dimension d": 784, "sketch size l": 50}
RANGES = {
    "rows n": (1000, 2000, 4000, 8000, 16000),
    "dimension d": (200, 400, 800, 1600, 3200, 6400),
    "sketch size l": (12, 25, 50, 100, 200),
}
CONTENDERS: dict[str, rivals.Run] = {"sketchbandit FD": rivals.ours, "numpy SVD shrink": rivals.numpy_svd}


class Point(NamedTuple):
    """Seconds for one stream."""

    axis: str
    value: int
    contender: str
    seconds: float


def points() -> list[Point]:
    """Vary n, d and l one at a time."""
    found = []
    for axis, values in RANGES.items():
        for value in values:
            at = {**BASE, axis: value}
            stream = unit_rows(at["rows n"], at["dimension d"])
            size = at["sketch size l"]
            seconds = best_seconds({name: (run, (stream, size)) for name, run in CONTENDERS.items()})
            found += [Point(axis, value, name, seconds[name]) for name in CONTENDERS]
    return found


def figure(found: list[Point], *, base: dict[str, int], ylabel: str) -> Figure:
    """Log-log, a panel for each axis, with a dotted line of slope 1 through the first contender's start."""
    axes, names = list(dict.fromkeys(p.axis for p in found)), list(dict.fromkeys(p.contender for p in found))
    with mpl.rc_context(STYLE):
        drawing = Figure(figsize=(11, 3.6), layout="constrained")
        for panel, axis in zip(drawing.subplots(1, len(axes), sharey=True), axes, strict=True):
            for colour, name in zip(COLOURS, names, strict=False):
                series = [p for p in found if p.axis == axis and p.contender == name]
                panel.loglog(
                    [p.value for p in series], [p.seconds for p in series], "o-", color=colour, label=name
                )
            ours = [p for p in found if p.axis == axis and p.contender == names[0]]
            line = [ours[0].seconds * p.value / ours[0].value for p in ours]
            panel.loglog([p.value for p in ours], line, ":", color="0.4", label="linear")
            fixed = ", ".join(f"{k.split()[-1]} = {v}" for k, v in base.items() if k != axis)
            panel.set(xlabel=axis, title=fixed)
            panel.set_xticks([p.value for p in ours], [str(p.value) for p in ours])
            panel.minorticks_off()
        drawing.axes[0].set_ylabel(ylabel)
        drawing.axes[0].legend(frameon=False)
    return drawing
