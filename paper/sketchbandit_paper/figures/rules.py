"""Figures of the exploration rules: every permutation, and regret against the delay of rewards."""

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sketchbandit.drawing import STYLE, End, footnote, label_ends, panels
from sketchbandit.simulation import environments
from sketchbandit.simulation.policies import DELAY
from sketchbandit_paper import plan
from sketchbandit_paper.figures.over_rounds import draw_regret
from sketchbandit_paper.lines import lines_of
from sketchbandit_paper.results import Results


def permutations(results: Results, name: str) -> Figure:
    """(a) regret over the rounds, (b) the regret of every permutation, with the mean and the worst."""
    with mpl.rc_context(STYLE):
        figure, (left, right) = panels(2, height=4.0)
        draw_regret(left, results, name, bands=False)  # the spread is beside it
        left.set(title=f"(a) {environments.title(results.experiments[name].environment)}: mean")
        lines = lines_of(results, name)
        for place, line in enumerate(lines):
            regrets = results.finals(name, line.members[0])
            right.scatter(regrets, [place] * len(regrets), s=14, color=line.look.colour, alpha=0.45, lw=0)
            right.scatter(regrets.mean(), place, s=160, color=line.look.colour, marker="|")
            right.text(
                regrets.max(), place - 0.18, f"{regrets.max():.0f}", ha="center", va="bottom", fontsize=7
            )
        right.set_yticks(range(len(lines)), labels=[line.label for line in lines])
        right.set(title="(b) every permutation; bar: mean; number: worst", xlabel="regret at the end")
        right.set(ylim=(len(lines) - 0.4, -0.7), xlim=(0, None))
        footnote(figure, _note(results, name))
    return figure


def delays(results: Results, name: str) -> Figure:
    """(a) mean regret, (b) that of the worst permutation, against the delay."""
    with mpl.rc_context(STYLE):
        figure, (left, right) = panels(2, height=4.0)
        _against_delay(left, results, name, worst=False)
        _against_delay(right, results, name, worst=True)
        title = environments.title(results.experiments[name].environment)
        left.set(title=f"(a) {title}: mean", ylabel="regret at the end")
        right.set(title="(b) the worst permutation")
        footnote(figure, _note(results, name))
    return figure


def _against_delay(axis: Axes, results: Results, name: str, *, worst: bool) -> None:
    """Delays stand side by side, whatever their length."""
    ends: list[End] = []
    lines = lines_of(results, name)
    shown = sorted({member.get(DELAY) for line in lines for member in line.members})
    for line in lines:
        found = [results.finals(name, member) for member in line.members]
        heights = [float(regrets.max() if worst else regrets.mean()) for regrets in found]
        places = [shown.index(member.get(DELAY)) for member in line.members]
        axis.plot(places, heights, color=line.look.colour, ls=line.look.dash, marker=line.look.marker, ms=4)
        ends.append((heights[-1], line.label, line.look.colour))
    axis.set(xlabel="rounds until a reward arrives", xlim=(-0.1, len(shown) - 1))
    axis.set_ylim(0, 1.25 * axis.dataLim.ymax)  # room for labels above the highest line
    label_ends(axis, ends, len(shown) - 1, room=0.42)
    axis.set_xticks(range(len(shown)), labels=[str(delay) for delay in shown])


def _note(results: Results, name: str) -> str:
    """What was shrunk, and what was tuned."""
    experiment = results.experiments[name]
    tuned = plan.needs_tuning(experiment, experiment.series[0].members[0])
    how = "s, ε and 10/gamma on the grid of beta" if tuned else "here nothing is tuned"
    return f"{results.profile.sentence}; {how}"
