"""Figures with the rounds on the horizontal axis: regret, time, exponents, matrix approximation."""

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from sketchbandit.drawing import STYLE, footnote, label_ends, panels
from sketchbandit.simulation import environments
from sketchbandit.simulation.runs import SKETCHES
from sketchbandit.simulation.specs import is_chance
from sketchbandit_paper.lines import Line, lines_of
from sketchbandit_paper.plan import rounds_of
from sketchbandit_paper.results import Results

_BUDGET_PANELS = {
    "regret": (1.0, "(a) cumulative regret"),
    "seconds": (1.0, "(b) CPU seconds, select + update"),
    "sketch_rows": (1.0, "(c) rows of the sketch, buffer included"),
    "bytes": (1.0 / 1024.0, "(d) KiB of the policy"),
    "certificate": (1.0, "(e) certificate; grey: a budget that grows"),
}


def curves(results: Results, name: str) -> Figure:
    """Cumulative regret: mean and 95 % band."""
    with mpl.rc_context(STYLE):
        figure, (axis,) = panels(1, width=6.2)
        draw_regret(axis, results, name)
        axis.set(title=_title(results, name))
        footnote(figure, results.profile.sentence)
    return figure


def timed(results: Results, name: str) -> Figure:
    """(a) cumulative regret, (b) running time, both over the rounds."""
    with mpl.rc_context(STYLE):
        figure, (left, right) = panels(2)
        draw_regret(left, results, name)
        left.set(title=f"(a) {_title(results, name)}")
        _draw(right, results, name, "seconds")
        right.set(title="(b) running time, select + update", ylabel="CPU seconds, one thread")
        footnote(figure, results.profile.sentence)
    return figure


def budget(results: Results, name: str) -> Figure:
    """Regret, time, rows, space, and the certificate beside its budget, all over the rounds."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(12.0, 6.4), layout="constrained")
        axes = list(figure.subplots(2, 3).flat)
        lines = lines_of(results, name)
        for axis, (column, (scale, text)) in zip(axes, _BUDGET_PANELS.items(), strict=False):
            for line in lines:
                curve = results.curve(name, line.members[0], column)
                axis.plot(curve.rounds, curve.mean * scale, color=line.look.colour, ls=line.look.dash)
            axis.set(xlabel="round", title=text, xlim=(0, None))
            axis.set_ylim(bottom=0)
        for line in lines:
            allowed = results.curve(name, line.members[0], "budget")
            if allowed.mean[-1] > allowed.mean[0]:
                axes[4].plot(allowed.rounds, allowed.mean, color="0.5", lw=0.8, ls=line.look.dash)
        axes[5].axis("off")
        handles = [Line2D([], [], color=look.colour, ls=look.dash, label=label) for label, _, look in lines]
        axes[5].legend(handles=handles, loc="center left", frameon=False, fontsize=9)
        figure.suptitle(_title(results, name), fontsize=10)
        footnote(figure, results.profile.sentence)
    return figure


def exponents(results: Results, name: str) -> Figure:
    """log(Delta_t) / log(t) of the arms chosen, beside 1/3, above which the bound for FD is linear."""
    with mpl.rc_context(STYLE):
        figure, (axis,) = panels(1, width=6.2)
        ends = []
        for line in lines_of(results, name):
            rows = results.of(name, line.members[0])
            rows = rows[(rows["round"] > 1) & (rows["delta"] > 0.0)]
            if rows.empty:  # fewer rounds than the size: nothing was lost yet
                continue
            exponent = np.log(rows["delta"]) / np.log(rows["round"])
            mean = exponent.groupby(rows["round"]).mean()
            axis.plot(mean.index, mean, color=line.look.colour)
            ends.append((float(mean.iloc[-1]), line.label, line.look.colour))
        axis.axhline(1 / 3, color="0.3", ls="--", lw=1)
        axis.set(xlabel="round", ylabel="log Δ / log t", title=_title(results, name), xlim=(0, None))
        heights = [end[0] for end in ends]
        axis.set_ylim(min([-0.1, *(y - 0.1 for y in heights)]), max([0.7, *(y + 0.1 for y in heights)]))
        across = axis.get_yaxis_transform()  # x as a share of the axis, y in its own units
        axis.text(0.1, 0.325, "1/3: above it the bound is linear", transform=across, va="top", fontsize=7)
        label_ends(axis, ends, float(rounds_of(results.experiments[name], results.profile)), room=0.2)
        footnote(figure, results.profile.sentence)
    return figure


def approximation(results: Results, name: str) -> Figure:
    """True error and certificate: (a) of one sketch, varied, (b) of one of each, with the paper's bounds."""
    with mpl.rc_context(STYLE):
        figure, (left, right) = panels(2, height=3.9)
        by_sketch: dict[str, list[Line]] = {}
        for line in lines_of(results, name):
            by_sketch.setdefault(line.members[0].name, []).append(line)
        varied = max(by_sketch.values(), key=len)
        compared = [lines[len(lines) // 2] for lines in by_sketch.values()]
        for axis, lines, bounds in ((left, varied, False), (right, compared, True)):
            ends, errors = [], []
            for line in lines:
                rows = results.of(name, line.members[0])
                axis.plot(rows["round"], rows["error"], color=line.look.colour)
                axis.plot(rows["round"], rows["certificate"], color=line.look.colour, ls="--", lw=1)
                if bounds:
                    axis.plot(rows["round"], rows["bound"], color=line.look.colour, ls=":")
                height = float(rows["bound" if bounds else "error"].iloc[-1])
                ends.append((height, line.label, line.look.colour))
                errors.append(float(rows["error"].iloc[-1]))
            axis.set(xlabel="rows read", xlim=(0, float(rows["round"].max())))
            if bounds and max(end[0] for end in ends) > 30 * min(errors) > 0.0:
                axis.set(yscale="log", ylim=(0.01, 3 * max(end[0] for end in ends)))
            else:
                axis.set_ylim(bottom=0)
            label_ends(axis, ends, float(rows["round"].max()), room=0.22)
        first, studied = varied[0].members[0], [SKETCHES[sketch] for sketch in by_sketch]
        left.set(title=f"(a) {SKETCHES[first.name].title}, l₀ = {first.get('size')}")
        left.set(ylabel="spectral error ‖X'X - S'S‖₂")
        right.set(title=f"(b) {' beside '.join(s.title for s in studied)}, with the paper's bounds")
        bound = "bound: " + ", ".join(f"{s.bound_sign} for {s.title}" for s in studied)
        styles = {"true error": "-", "certificate e": "--", bound: ":"}
        handles = [Line2D([], [], color="0.3", ls=style, label=text) for text, style in styles.items()]
        left.legend(handles=handles, loc="upper left", frameon=False, fontsize=7)
        figure.suptitle(f"{results.experiments[name].environment.get('data')} rows", fontsize=10)
        footnote(figure, results.profile.sentence)
    return figure


_ROOM = 1.12  # above the learners, where chance is far above them


def draw_regret(axis: Axes, results: Results, name: str, *, bands: bool = True) -> None:
    """A line for each series, labelled at its end.

    Chance is drawn thin. Where it is far above the others it leaves the panel, so that they can be told
    apart; its label has the number.
    """
    _draw(axis, results, name, "regret", bands=bands)
    axis.set_ylabel("cumulative regret")


def _draw(axis: Axes, results: Results, name: str, column: str, *, bands: bool = True) -> None:
    ends = []
    lines = lines_of(results, name)
    learners = [line for line in lines if not is_chance(line.members[0])]
    for line in learners:
        curve = results.curve(name, line.members[0], column)
        low, high = curve.mean - curve.half, curve.mean + curve.half
        axis.plot(curve.rounds, curve.mean, color=line.look.colour, ls=line.look.dash)
        if bands:
            axis.fill_between(curve.rounds, low, high, color=line.look.colour, alpha=0.15, lw=0)
        ends.append((float(curve.mean[-1]), line.label, line.look.colour))
        last = float(curve.rounds[-1])
    for line in lines if column == "regret" else []:
        if line not in learners:
            chance = results.curve(name, line.members[0], column)
            last, height = float(chance.rounds[-1]), float(chance.mean[-1])
            top = _ROOM * max((end[0] for end in ends), default=height)
            axis.plot(chance.rounds, chance.mean, color=line.look.colour, ls=":", lw=1.2)
            if height > top:
                axis.set_ylim(top=top)
            ends.append((min(height, 0.97 * top), f"{line.label}: {height:,.0f}", line.look.colour))
    axis.set(xlabel="round", xlim=(0, last))
    axis.set_ylim(bottom=0)
    label_ends(axis, ends, last)


def _title(results: Results, name: str) -> str:
    return environments.title(results.experiments[name].environment)
