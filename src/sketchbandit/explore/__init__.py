"""Exploration rules: how a choice is made from means and confidence widths."""

from sketchbandit.explore.base import Explore
from sketchbandit.explore.candidates import ArmCandidates, Candidates, upper_bound
from sketchbandit.explore.choice import ActionChoice, Choice, Ranking, Scores
from sketchbandit.explore.rules import DEFAULT_BETA, UCB, EpsilonGreedy, Greedy, InverseGap, Thompson

__all__ = [
    "DEFAULT_BETA",
    "UCB",
    "ActionChoice",
    "ArmCandidates",
    "Candidates",
    "Choice",
    "EpsilonGreedy",
    "Explore",
    "Greedy",
    "InverseGap",
    "Ranking",
    "Scores",
    "Thompson",
    "upper_bound",
]
