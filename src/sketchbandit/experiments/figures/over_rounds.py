"""Figures with the rounds on the horizontal axis: regret, time, exponents, matrix approximation."""

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from sketchbandit.drawing import STYLE, footnote, label_ends, looks, panels
from sketchbandit.experiments import environments
from sketchbandit.experiments.plan import rounds_of
from sketchbandit.experiments.results import Results

_BUDGET_PANELS = {
    "regret": (1.0, "(a) cumulative regret"),
    "seconds": (1.0, "(b) CPU seconds, select + update"),
    "sketch_rows": (1.0, "(c) rows of the sketch, buffer included"),
    "bytes": (1.0 / 1024.0, "(d) KiB of the policy"),
    "certificate": (1.0, "(e) certificate; grey: the budget of each Adaptive"),
}


def curves(results: Results, name: str) -> Figure:
    """Cumulative regret: mean and 95 % band."""
    with mpl.rc_context(STYLE):
        figure, (axis,) = panels(1, width=6.2)
        _draw(axis, results, name, "regret")
        axis.set(title=_title(results, name), ylabel="cumulative regret")
        footnote(figure, results.profile.sentence)
    return figure


def timed(results: Results, name: str) -> Figure:
    """(a) cumulative regret, (b) running time, both over the rounds."""
    with mpl.rc_context(STYLE):
        figure, (left, right) = panels(2)
        _draw(left, results, name, "regret")
        left.set(title=f"(a) {_title(results, name)}", ylabel="cumulative regret")
        _draw(right, results, name, "seconds")
        right.set(title="(b) running time, select + update", ylabel="CPU seconds, one thread")
        footnote(figure, results.profile.sentence)
    return figure


def budget(results: Results, name: str) -> Figure:
    """Regret, time, rows, space, and the certificate beside its budget, all over the rounds."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(12.0, 6.4), layout="constrained")
        axes = list(figure.subplots(2, 3).flat)
        chosen = {label: members[0] for label, members in results.series(name)}
        styles = looks(list(chosen))
        for axis, (column, (scale, text)) in zip(axes, _BUDGET_PANELS.items(), strict=False):
            for label, (colour, dash) in styles.items():
                curve = results.curve(name, chosen[label], column)
                axis.plot(curve.rounds, curve.mean * scale, color=colour, ls=dash)
            axis.set(xlabel="round", title=text, xlim=(0, None))
            axis.set_ylim(bottom=0)
        for label, member in chosen.items():
            if member.name == "adaptive":
                allowed = results.curve(name, member, "budget")
                axes[4].plot(allowed.rounds, allowed.mean, color="0.5", lw=0.8, ls=styles[label][1])
        axes[5].axis("off")
        handles = [Line2D([], [], color=c, ls=dash, label=label) for label, (c, dash) in styles.items()]
        axes[5].legend(handles=handles, loc="center left", frameon=False, fontsize=9)
        figure.suptitle(_title(results, name), fontsize=10)
        footnote(figure, results.profile.sentence)
    return figure


def exponents(results: Results, name: str) -> Figure:
    """log(Delta_t) / log(t) of the arms chosen, beside 1/3, from which on SOFUL's bound is linear."""
    with mpl.rc_context(STYLE):
        figure, (axis,) = panels(1, width=6.2)
        chosen = {label: members[0] for label, members in results.series(name)}
        ends = []
        for label, (colour, _) in looks(list(chosen)).items():
            rows = results.of(name, chosen[label])
            rows = rows[(rows["round"] > 1) & (rows["delta"] > 0.0)]
            if rows.empty:  # fewer rounds than the size: nothing was lost yet
                continue
            exponent = np.log(rows["delta"]) / np.log(rows["round"])
            mean = exponent.groupby(rows["round"]).mean()
            axis.plot(mean.index, mean, color=colour)
            ends.append((float(mean.iloc[-1]), label, colour))
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
    """(a) DBS with varying epsilon; (b) FD beside one DBS: true error, certificate, the paper's bound."""
    with mpl.rc_context(STYLE):
        figure, (left, right) = panels(2, height=3.9)
        chosen = {label: members[0] for label, members in results.series(name)}
        colours = looks(list(chosen))
        blocks = [label for label, member in chosen.items() if member.name == "dbs"]
        compared = [label for label, member in chosen.items() if member.get("epsilon") in (None, 10)]
        for axis, labels, bounds in ((left, blocks, False), (right, compared, True)):
            if not labels:
                continue
            ends, errors = [], []
            for label in labels:
                rows, colour = results.of(name, chosen[label]), colours[label][0]
                axis.plot(rows["round"], rows["error"], color=colour)
                axis.plot(rows["round"], rows["certificate"], color=colour, ls="--", lw=1)
                if bounds:
                    axis.plot(rows["round"], rows["bound"], color=colour, ls=":")
                ends.append((float(rows["bound" if bounds else "error"].iloc[-1]), label, colour))
                errors.append(float(rows["error"].iloc[-1]))
            axis.set(xlabel="rows read", xlim=(0, float(rows["round"].max())))
            if bounds and max(end[0] for end in ends) > 30 * min(errors) > 0.0:
                axis.set(yscale="log", ylim=(0.01, 3 * max(end[0] for end in ends)))
            else:
                axis.set_ylim(bottom=0)
            label_ends(axis, ends, float(rows["round"].max()), room=0.22)
        left.set(title="(a) DBS, l₀ = 16", ylabel="spectral error ‖X'X - S'S‖₂")
        right.set(title="(b) FD beside DBS, with the paper's bounds")
        styles = {"true error": "-", "certificate e": "--", "bound: Δ for FD, 2ε for DBS": ":"}
        handles = [Line2D([], [], color="0.3", ls=style, label=text) for text, style in styles.items()]
        figure.legend(handles=handles, loc="outside lower center", ncols=3, frameon=False)
        data = results.experiments[name].environment.get("data")
        figure.suptitle(f"{data} rows", fontsize=10)
    return figure


def _draw(axis: Axes, results: Results, name: str, column: str) -> None:
    chosen = {label: members[0] for label, members in results.series(name)}
    ends = []
    for label, (colour, dash) in looks(list(chosen)).items():
        curve = results.curve(name, chosen[label], column)
        axis.plot(curve.rounds, curve.mean, color=colour, ls=dash)
        axis.fill_between(
            curve.rounds, curve.mean - curve.half, curve.mean + curve.half, color=colour, alpha=0.15, lw=0
        )
        ends.append((float(curve.mean[-1]), label, colour))
        last = float(curve.rounds[-1])
    axis.set(xlabel="round", xlim=(0, last))
    axis.set_ylim(bottom=0)
    label_ends(axis, ends, last)


def _title(results: Results, name: str) -> str:
    return environments.title(results.experiments[name].environment)
