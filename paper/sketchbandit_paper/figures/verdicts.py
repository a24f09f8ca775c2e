"""The verdicts on claims as a figure."""

from collections.abc import Mapping, Sequence

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from sketchbandit.drawing import STYLE

_COLOURS = {"reproduced": "#009E73", "partly": "#E69F00", "not": "#D55E00"}


def verdict_bars(counted: Mapping[str, Sequence[tuple[str, int]]], note: str) -> Figure:
    """A bar for each set of claims, a part of it for each verdict; claims without one are not drawn."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(6.2, 0.9 + 0.4 * len(counted)), layout="constrained")
        axis = figure.subplots()
        for place, counts in enumerate(counted.values()):
            left = 0
            for verdict, count in counts:
                axis.barh(place, count, left=left, color=_COLOURS[verdict], height=0.62)
                text = f"{count} {verdict}" if count > 2 else str(count)
                axis.text(left + count / 2, place, text, ha="center", va="center", color="white", fontsize=8)
                left += count
        axis.set_yticks(range(len(counted)), labels=list(counted))
        axis.invert_yaxis()
        axis.grid(visible=False, axis="y")
        axis.xaxis.set_major_locator(MaxNLocator(integer=True))
        axis.set(xlabel=note)
    return figure
