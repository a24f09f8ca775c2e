"""An evaluation as a forest plot, and on disk: the plot, its numbers as JSON, and one self-contained page."""

import base64
import json
import math
from importlib.resources import files
from pathlib import Path

import matplotlib as mpl
from jinja2 import Environment, StrictUndefined
from matplotlib.figure import Figure

from sketchbandit._version import __version__
from sketchbandit.drawing import COLOURS, STYLE, footnote, panels, save
from sketchbandit.evaluation.results import LOGGED, Evaluation
from sketchbandit.files import replace_file


def forest(
    found: Evaluation, *, title: str = "", unit: str = "reward a decision", truth: float | None = None
) -> Figure:
    """Draw a forest plot: one line per estimate, grouped by candidate.

    The mean reward of the log is a line across. If ``truth`` is known, it is a dashed line.
    """
    groups, methods = found.policies, found.methods
    colours = {method: COLOURS[index % len(COLOURS)] for index, method in enumerate(methods)}
    with mpl.rc_context(STYLE):
        figure, (axis,) = panels(1, width=7.2, height=1.3 + 0.24 * (len(groups) * (len(methods) + 1) + 1))
        logged = found.logged
        if not math.isnan(logged.low):
            axis.axvspan(logged.low, logged.high, color="0.5", alpha=0.12, lw=0)
        axis.axvline(logged.value, color="0.35", lw=1.0)
        if truth is not None:
            axis.axvline(truth, color=COLOURS[1], lw=1.2, ls="--")
        height, ticks = 0.0, [(0.0, f"{LOGGED}, mean")]
        axis.plot([logged.value], [0.0], "o", color="0.35", ms=4)
        for name in groups:
            height += 0.6
            for method in methods:
                height += 1.0
                row = found.of(name, method)
                ticks.append((height, f"{name}, {method}"))
                if math.isnan(row.low):
                    axis.text(
                        logged.value, height, " nothing can be said", va="center", fontsize=8, color="0.4"
                    )
                    continue
                axis.plot([row.low, row.high], [height, height], color=colours[method], lw=1.6)
                axis.plot([row.value], [height], "o", color=colours[method], ms=4)
        axis.set_yticks([at for at, _ in ticks], [label for _, label in ticks], fontsize=8)
        axis.set_ylim(height + 0.8, -0.8)
        axis.set_xlabel(unit)
        axis.set_title(title)
        known = "" if truth is None else "; dashed: the truth"
        grey = "grey: what the log itself earned"
        footnote(figure, f"{found.level:.0%} {found.interval} intervals; {grey}{known}")
    return figure


FILES = ("forest.png", "forest.svg", "evaluation.json", "report.html")
"""What a report consists of."""


def write_report(
    found: Evaluation, folder: str | Path, *, title: str = "What would they have earned?"
) -> Path:
    """Write ``forest.png``, ``forest.svg``, ``evaluation.json`` and ``report.html``; return its path."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    _, svg = save(forest(found, title=title), folder / "forest")
    text = files("sketchbandit.evaluation").joinpath("report.html.jinja").read_text(encoding="utf-8")
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    page = environment.from_string(text).render(
        title=title,
        version=__version__,
        notes=found.notes,
        verdicts=found.verdicts(),
        image=base64.b64encode(svg.read_bytes()).decode(),
        tables=found.tables(),
    )
    replace_file(folder / "evaluation.json", json.dumps(found.to_json(), indent=1).encode())
    path = folder / "report.html"
    replace_file(path, page.encode())
    return path
