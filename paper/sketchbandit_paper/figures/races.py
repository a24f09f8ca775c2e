"""Figures of policies side by side: what each costs, and the figure that answers who does best."""

from collections.abc import Sequence

import matplotlib as mpl
from matplotlib.figure import Figure

from sketchbandit.drawing import STYLE, footnote, panels
from sketchbandit.simulation.specs import is_chance
from sketchbandit_paper import plan
from sketchbandit_paper.figures.over_rounds import draw_regret
from sketchbandit_paper.lines import lines_of
from sketchbandit_paper.results import Results


def costs(results: Results, name: str) -> Figure:
    """(a) CPU time of a round, (b) the most memory held; a bar for each policy, chance left out."""
    with mpl.rc_context(STYLE):
        figure, axes = panels(2, height=3.2)
        lines = [line for line in lines_of(results, name) if not is_chance(line.members[0])]
        rounds = plan.rounds_of(results.experiments[name], results.profile)
        shown = (("seconds", 1e6 / rounds, "µs"), ("peak_bytes", 1 / 1024, "KiB"))
        for axis, (column, scale, unit) in zip(axes, shown, strict=True):
            values = [results.final(name, line.members[0], column).mean * scale for line in lines]
            bars = axis.barh(
                range(len(lines)), values, color=[line.look.colour for line in lines], height=0.6
            )
            axis.bar_label(bars, labels=[f" {value:,.0f}" for value in values], fontsize=8)
            axis.set(ylim=(len(lines) - 0.4, -0.6), xlim=(0, 1.15 * max(values)), xlabel=unit)
            axis.grid(visible=False, axis="y")
        axes[0].set_yticks(range(len(lines)), labels=[line.label for line in lines])
        axes[1].set_yticks(range(len(lines)), labels=[""] * len(lines))
        axes[0].set_title("(a) CPU time of a round, select + update")
        axes[1].set_title("(b) the most memory held")
        footnote(figure, said_of_amount(results, name))
    return figure


def side_by_side(results: Results, names: Sequence[str]) -> Figure:
    """The regret of each experiment over the rounds, a panel each."""
    with mpl.rc_context(STYLE):
        figure, axes = panels(len(names), width=5.0, height=3.8)
        for axis, name in zip(axes, names, strict=True):
            draw_regret(axis, results, name, bands=False)  # many lie close together
            axis.set_title(results.experiments[name].title, loc="left")
        footnote(figure, said_of_amount(results, names[0]))
    return figure


def said_of_amount(results: Results, name: str) -> str:
    """How long was played and how often, and whether anything was tuned."""
    experiment, profile = results.experiments[name], results.profile
    rounds, runs = plan.rounds_of(experiment, profile), plan.permutations_of(experiment, profile)
    members = plan.members_of(experiment, profile)
    tuned = any(plan.needs_tuning(experiment, member) for member in members)
    how = "λ and the rule's number chosen on other seeds" if tuned else "nothing tuned"
    return f"mean over {runs} {'seeds' if runs > 1 else 'seed'} of {rounds:,} rounds; {how}"
