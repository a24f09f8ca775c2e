"""Figures made to be read by everybody: colour-blind safe, labelled at the line, PNG and SVG."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from sketchbandit.experiments.matrix_approximation import Measurement, Settings

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")  # Okabe and Ito

STYLE: dict[Any, Any] = {
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "font.size": 9,
    "axes.titlesize": 10,
    "svg.hashsalt": "sketchbandit",  # the same figure gives the same file
}


def save(figure: Figure, path: Path) -> list[Path]:
    """Write ``path`` as PNG and as SVG; returns both paths."""
    path.parent.mkdir(parents=True, exist_ok=True)
    written = [path.with_suffix(".png"), path.with_suffix(".svg")]
    with mpl.rc_context(STYLE):
        figure.savefig(written[0], dpi=160)
        figure.savefig(written[1], metadata={"Date": None})
    return written


def matrix_approximation(measurements: Sequence[Measurement], settings: Settings) -> Figure:
    """The paper's two panels for each matrix: (a) DBS with varying epsilon; (b) FD and DBS with bounds."""
    names = list(dict.fromkeys(m.matrix for m in measurements))
    colours = dict(zip(_by_sketch(measurements), COLOURS, strict=False))
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(10, 3.5 * len(names) + 0.4), layout="constrained")
        axes = figure.subplots(len(names), 2, squeeze=False)
        for (left, right), name in zip(axes, names, strict=True):
            of_matrix = [m for m in measurements if m.matrix == name]
            title = f"{name}, d = {of_matrix[0].dim}"
            _draw(left, [m for m in of_matrix if m.epsilon is not None], colours, bounds=False)
            left.set_title(f"{title}: DBS with l₀ = {settings.dbs_size}")
            left.set_ylabel("spectral error ‖X'X - S'S‖₂")
            compared = [m for m in of_matrix if m.epsilon in (None, settings.compared_epsilon)]
            _draw(right, compared, colours, bounds=True)
            right.set_title(f"{title}: FD beside DBS, with the paper's bounds")
        styles: dict[str, Any] = {
            "true error": "-",
            "certificate e": "--",
            "the paper's bound: Δ for FD, 2ε for DBS": ":",
        }
        handles = [Line2D([], [], color="0.3", ls=style, label=text) for text, style in styles.items()]
        figure.legend(handles=handles, loc="outside lower center", ncols=3, frameon=False)
    return figure


def _draw(axis: Axes, measurements: Sequence[Measurement], colours: dict[str, str], *, bounds: bool) -> None:
    for label, series in _by_sketch(measurements).items():
        times, colour = [m.t for m in series], colours[label]
        axis.plot(times, [m.error for m in series], color=colour)
        axis.plot(times, [m.certificate for m in series], color=colour, linestyle="--", linewidth=1)
        if bounds:
            axis.plot(times, [m.bound for m in series], color=colour, linestyle=":")
        _label(axis, times[-1], series[-1].bound if bounds else series[-1].error, label, colour)
    last = max(m.t for m in measurements)
    axis.set(xlabel="rows read", xlim=(0, 1.22 * last), xticks=np.linspace(0, last, 6).round())
    axis.set_ylim(bottom=0)
    at_end = [m for m in measurements if m.t == last]
    if bounds and max(m.bound for m in at_end) > 30 * min(m.error for m in at_end) > 0:
        axis.set_yscale("log")  # an easy matrix: on a linear scale the errors would lie on the axis
        axis.set_ylim(bottom=0.01)


def _label(axis: Axes, x: float, y: float, text: str, colour: str) -> None:
    axis.annotate(text, (x, y), (4, 0), textcoords="offset points", color=colour, va="center", fontsize=8)


def _by_sketch(measurements: Sequence[Measurement]) -> dict[str, list[Measurement]]:
    series: dict[str, list[Measurement]] = {}
    for m in measurements:
        series.setdefault(m.sketch, []).append(m)
    return series
