"""Figures of clicks and of worlds that change: reliability, log loss, regret by stretches of rounds."""

import json
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from sketchbandit.arrays import Matrix
from sketchbandit.drawing import STYLE, footnote, label_ends, panels
from sketchbandit.simulation import environments
from sketchbandit.simulation.specs import Spec
from sketchbandit_paper.figures.over_rounds import draw_regret
from sketchbandit_paper.lines import lines_of
from sketchbandit_paper.plan import environment_of
from sketchbandit_paper.results import Results
from sketchbandit_paper.stretches import regret_rates

_LEAST_SHOWN = 0.002  # of all predictions: a bin of fewer is chance


def reliability(results: Results, name: str, member: Spec) -> Matrix:
    """(bins, 3), all permutations together: predictions, their mean, and the share of clicks."""
    found = results.of(name, member)
    last = found[found["round"] == found["rounds"]]
    counts, predicted, clicked = np.sum([json.loads(text) for text in last["calibration"]], axis=0).T
    with np.errstate(invalid="ignore"):
        return np.stack([counts, predicted / counts, clicked / counts], axis=1)


def calibration(results: Results, name: str) -> Figure:
    """(a) regret, (b) share of clicks against the prediction, (c) log loss a round."""
    with mpl.rc_context(STYLE):
        figure, (left, middle, right) = panels(3, width=4.6, height=4.0)
        draw_regret(left, results, name, bands=False)
        left.set(title=f"(a) {environments.title(results.experiments[name].environment)}")
        ends = []
        for line in lines_of(results, name):
            counts, predicted, clicked = reliability(results, name, line.members[0]).T
            shown = counts >= _LEAST_SHOWN * counts.sum()
            style: dict[str, Any] = {"color": line.look.colour, "ls": line.look.dash}
            middle.plot(predicted[shown], clicked[shown], marker="o", ms=3, label=line.label, **style)
            curve = results.curve(name, line.members[0], "log_loss")
            right.plot(curve.rounds, curve.mean / curve.rounds, **style)
            ends.append((float(curve.mean[-1] / curve.rounds[-1]), line.label, line.look.colour))
        middle.axline((0.0, 0.0), slope=1.0, color="0.6", lw=0.8)
        middle.set(title="(b) reliability", xlabel="mean reward predicted", ylabel="share of clicks")
        middle.legend(frameon=False, fontsize=7)
        right.set(title="(c) log loss a round", xlabel="round", xlim=(0, float(curve.rounds[-1])))
        label_ends(right, ends, float(curve.rounds[-1]), room=0.6)
        footnote(figure, results.profile.sentence)
    return figure


def rates(results: Results, name: str) -> Figure:
    """(a) cumulative regret, (b) regret a round, by stretches of rounds."""
    with mpl.rc_context(STYLE):
        figure, (left, right) = panels(2, height=4.0)
        draw_regret(left, results, name)
        where = environment_of(results.experiments[name], results.profile)
        left.set(title=f"(a) {environments.title(where)}")
        ends = []
        for line in lines_of(results, name):
            ends_of, means = regret_rates(results, name, line.members[0])
            right.step(ends_of, means, where="pre", color=line.look.colour, ls=line.look.dash)
            ends.append((float(means[-1]), line.label, line.look.colour))
        for axis in (left, right):
            if where.get("switch") is not None:
                axis.axvline(where.get("switch"), color="0.3", ls="--", lw=1)
        right.set(title="(b) regret a round", xlabel="round", xlim=(0, float(ends_of[-1])))
        right.set_ylim(bottom=0)
        label_ends(right, ends, float(ends_of[-1]))
        footnote(figure, results.profile.sentence)
    return figure
