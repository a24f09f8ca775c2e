"""The figures of an experiment, made from its results."""

from collections.abc import Callable

from matplotlib.figure import Figure

from sketchbandit_paper.figures.beyond import calibration, rates
from sketchbandit_paper.figures.over_rounds import approximation, budget, curves, exponents, timed
from sketchbandit_paper.figures.races import costs
from sketchbandit_paper.figures.rules import delays, permutations
from sketchbandit_paper.figures.trade_offs import epsilons, pareto, ridges
from sketchbandit_paper.results import Results

__all__ = ["DRAWN"]

DRAWN: dict[str, Callable[[Results, str], Figure]] = {
    "curves": curves,
    "timed": timed,
    "budget": budget,
    "exponents": exponents,
    "approximation": approximation,
    "pareto": pareto,
    "epsilons": epsilons,
    "ridges": ridges,
    "permutations": permutations,
    "delays": delays,
    "calibration": calibration,
    "rates": rates,
    "costs": costs,
}
"""By the ``figure`` of an experiment; what is not here is a table."""
