"""Figures of what is paid for what: Pareto fronts, the effect of epsilon and l0, of lambda."""

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from sketchbandit.arrays import Vector
from sketchbandit.drawing import SIGNS, STYLE, End, Look, footnote, label_ends, panels
from sketchbandit.simulation import environments
from sketchbandit.simulation.policies import family
from sketchbandit_paper.fronts import pareto_optimal
from sketchbandit_paper.lines import lines_of
from sketchbandit_paper.results import MeanWithError, Results


def pareto(results: Results, name: str) -> Figure:
    """(a) regret against time, (b) regret against space; each method's own front drawn through."""
    with mpl.rc_context(STYLE):
        figure, (left, right) = panels(2, height=4.0)
        title = environments.title(results.experiments[name].environment)
        for axis, column, scale, text in (
            (left, "seconds", 1.0, "CPU seconds, select + update, one thread"),
            (right, "peak_bytes", 1.0 / 1024.0, "peak KiB of the policy"),
        ):
            ends: list[End] = []
            means: list[float] = []
            for line in lines_of(results, name):
                costs = [results.final(name, member, column).mean * scale for member in line.members]
                found = [results.final(name, member) for member in line.members]
                lowest = _front(axis, line.look, np.array(costs), found)
                means += [f.mean for f in found]
                ends.append((lowest, f"{SIGNS[line.look.marker]} {line.label}", line.look.colour))
            axis.set(xscale="log", xlabel=text, ylabel="regret at the end")
            _frame(axis, means)
            _plain_ticks(axis.xaxis, *axis.get_xlim())
            label_ends(axis, ends, axis.get_xlim()[1], room=0.38, lead=False)
        left.set_title(f"(a) {title}: regret and time")
        right.set_title(f"(b) {title}: regret and space")
        footnote(figure, results.profile.sentence)
    return figure


def _frame(axis: Axes, means: list[float]) -> None:
    """From zero, or logarithmic where one bad setting would press all others against the axis."""
    if min(means) > 0.0 and max(means) > 4.0 * min(means):
        low, high = 0.6 * min(means), 1.6 * max(means)
        axis.set(yscale="log", ylim=(low, high))
        _plain_ticks(axis.yaxis, low, high)
    else:
        axis.set_ylim(bottom=0)


def _plain_ticks(axis: Axis, low: float, high: float) -> None:
    """1, 2, 5, 10, ... on a logarithmic axis, which by itself may have no label within a decade."""
    ticks = [m * 10.0**k for k in range(-4, 8) for m in (1, 2, 5) if low <= m * 10.0**k <= high]
    axis.set_ticks(ticks, labels=[f"{tick:g}" for tick in ticks])
    axis.set_minor_locator(NullLocator())


def _front(axis: Axes, look: Look, costs: Vector, regrets: list[MeanWithError]) -> float:
    """Draw one method; returns its lowest regret."""
    means, halves = (np.array(values) for values in zip(*regrets, strict=True))
    axis.errorbar(costs, means, yerr=halves, fmt="none", ecolor=look.colour, elinewidth=0.7, alpha=0.4)
    axis.scatter(costs, means, s=look.area, color=look.colour, marker=look.marker, zorder=3)
    order = pareto_optimal(costs, means)
    axis.plot(costs[order], means[order], color=look.colour, lw=1.2, alpha=0.8)
    return float(means[order[-1]])


def epsilons(results: Results, name: str) -> Figure:
    """(a) regret and (b) running time against epsilon, a line for each l0."""
    with mpl.rc_context(STYLE):
        figure, axes = panels(2)
        title = environments.title(results.experiments[name].environment)
        for axis, column in zip(axes, ("regret", "seconds"), strict=True):
            ends = _lines(axis, results, name, "epsilon", column)
            axis.set(xlabel="ε", xlim=(0, axis.dataLim.xmax))
            axis.set_ylim(bottom=0)
            label_ends(axis, ends, axis.dataLim.xmax, room=0.18)
        method = family(lines_of(results, name)[0].members[0])
        axes[0].set(title=f"(a) {title}: {method}", ylabel="regret at the end")
        axes[1].set(title="(b) running time", ylabel="CPU seconds, one thread")
        footnote(figure, results.profile.sentence)
    return figure


def ridges(results: Results, name: str) -> Figure:
    """Regret against lambda, nothing tuned."""
    with mpl.rc_context(STYLE):
        figure, (axis,) = panels(1, width=6.6, height=4.0)
        ends = _lines(axis, results, name, "ridge", "regret")
        axis.set(xscale="log", xlabel="λ", ylabel="regret at the end, β = 0.1")
        axis.set(title=environments.title(results.experiments[name].environment))
        axis.set_ylim(bottom=0)
        label_ends(axis, ends, axis.dataLim.xmax, room=0.4)
        footnote(figure, f"{results.profile.sentence}; here nothing is tuned")
    return figure


def _lines(axis: Axes, results: Results, name: str, setting: str, column: str) -> list[End]:
    """A line for each series over one of its settings, with its 95 % band; returns what to label."""
    ends = []
    for line in lines_of(results, name):
        x = [float(member.get(setting)) for member in line.members]
        found = [results.final(name, member, column) for member in line.members]
        means, halves = (np.array(values) for values in zip(*found, strict=True))
        axis.plot(x, means, color=line.look.colour, ls=line.look.dash, marker="o", ms=3)
        axis.fill_between(x, means - halves, means + halves, color=line.look.colour, alpha=0.12, lw=0)
        ends.append((float(means[-1]), line.label, line.look.colour))
    return ends
