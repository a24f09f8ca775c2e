"""The figures of an experiment, made from its results."""

from collections.abc import Callable

from matplotlib.figure import Figure

from sketchbandit.experiments.figures.beyond import calibration, rates
from sketchbandit.experiments.figures.over_rounds import approximation, budget, curves, exponents, timed
from sketchbandit.experiments.figures.races import costs
from sketchbandit.experiments.figures.rules import delays, permutations
from sketchbandit.experiments.figures.trade_offs import epsilons, pareto, ridges
from sketchbandit.experiments.results import Results

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
