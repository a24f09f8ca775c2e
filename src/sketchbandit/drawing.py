"""How figures look: colour-blind safe, labelled at the line, the same file from the same results."""

import textwrap
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")  # Okabe and Ito
SIGNS = {"*": "★", "v": "▼", "s": "■", "^": "▲", "D": "◆", "o": "●", "P": "✚"}
"""The markers as characters, for labels."""
_DASHES = ("-", "--", ":", "-.")

STYLE: dict[Any, Any] = {
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "font.size": 9,
    "axes.titlesize": 10,
    "svg.hashsalt": "sketchbandit",  # the same figure gives the same file
}


def panels(count: int, *, width: float = 5.0, height: float = 3.6) -> tuple[Figure, list[Axes]]:
    """A figure with panels side by side. Call inside ``rc_context(STYLE)``."""
    figure = Figure(figsize=(width * count, height), layout="constrained")
    return figure, list(figure.subplots(1, count, squeeze=False)[0])


def footnote(figure: Figure, text: str) -> None:
    """What was shrunk, below the panels."""
    figure.supxlabel(textwrap.fill(text, int(17 * figure.get_figwidth())), fontsize=7, color="0.4")


def save(figure: Figure, path: Path) -> list[Path]:
    """Write ``path``, a name without ending, as PNG and as SVG; returns both paths."""
    path.parent.mkdir(parents=True, exist_ok=True)
    written = [path.with_name(f"{path.name}.{ending}") for ending in ("png", "svg")]  # the name may have dots
    with mpl.rc_context(STYLE):
        figure.savefig(written[0], dpi=160)
        figure.savefig(written[1], metadata={"Date": None})
    return written


class Look(NamedTuple):
    """How a series is drawn; ``area`` is that of its markers in square points."""

    colour: str
    marker: str = "o"
    area: int = 22
    dash: str = "-"


def looks(given: Sequence[Look | None]) -> list[Look]:
    """The looks given, or the next colour for None; who has the same colour is told apart by the dash."""
    used: Counter[str] = Counter()
    found = []
    for index, wished in enumerate(given):
        look = wished or Look(COLOURS[index % len(COLOURS)])
        found.append(look._replace(dash=_DASHES[used[look.colour] % len(_DASHES)]))
        used[look.colour] += 1
    return found


End = tuple[float, str, str]
"""Where a line ends: height, label, colour."""


def label_ends(axis: Axes, ends: Sequence[End], x: float, room: float = 0.34, *, lead: bool = True) -> None:
    """Write each label (height, text, colour) right of ``x``, moved apart where they would overlap.

    A thin line leads to it from its height at ``x``, unless told not to.
    """
    left = axis.get_xlim()[0]
    across = axis.get_xscale() == "log"
    axis.set_xlim(left, x * (x / left) ** room if across else x + room * (x - left))
    axis.set_xticks([tick for tick in axis.get_xticks() if left <= tick <= x])  # none where there are labels
    bend, unbend = (np.log, np.exp) if axis.get_yscale() == "log" else (np.asarray, np.asarray)
    low, high = bend(axis.get_ylim())
    wished = [float(bend(end[0])) for end in ends]
    heights = unbend(spread(wished, 0.062 * (high - low), low + 0.02 * (high - low)))
    beside = x * (x / left) ** 0.05 if across else x + 0.05 * (x - left)
    for (y, text, colour), height in zip(ends, heights, strict=True):
        line = {"arrowstyle": "-", "color": colour, "lw": 0.5, "alpha": 0.6, "shrinkA": 0, "shrinkB": 0}
        line["relpos"] = (0.0, 0.5)  # to the left edge of the label: no line crosses another label
        axis.annotate(
            text,
            (x, y),
            (beside, height),
            color=colour,
            va="center",
            fontsize=8,
            arrowprops=line if lead else None,
        )


def spread(heights: Sequence[float], gap: float, floor: float = -np.inf) -> NDArray[np.float64]:
    """The heights, moved as little as it takes for neighbours to be ``gap`` apart; none below ``floor``.

    Examples
    --------
    >>> spread([0.0, 0.1, 5.0], gap=1.0).round(2).tolist()
    [-0.45, 0.55, 5.0]

    """
    order = np.argsort(heights, kind="stable")
    groups: list[list[float]] = []  # [sum of the wished bottoms, count]: each is stacked tightly
    for height in np.asarray(heights, dtype=np.float64)[order]:
        groups.append([height, 1.0])
        while len(groups) > 1 and _bottom(groups[-2], gap) + groups[-2][1] * gap > _bottom(groups[-1], gap):
            total, count = groups.pop()
            groups[-1] = [groups[-1][0] + total, groups[-1][1] + count]
    placed: list[float] = []
    for group in groups:
        bottom = max(_bottom(group, gap), placed[-1] + gap if placed else floor)
        placed += [bottom + i * gap for i in range(int(group[1]))]
    result = np.empty(len(placed))
    result[order] = placed
    return result


def _bottom(group: Sequence[float], gap: float) -> float:
    return group[0] / group[1] - (group[1] - 1.0) * gap / 2.0
