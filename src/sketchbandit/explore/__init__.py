"""Exploration rules: how a choice is made from means and confidence widths."""

from sketchbandit.explore.base import Explore
from sketchbandit.explore.candidates import ArmCandidates, Candidates
from sketchbandit.explore.choice import ActionChoice, Choice, Ranking, Scores
from sketchbandit.explore.greedy import EpsilonGreedy, Greedy
from sketchbandit.explore.inverse_gap import InverseGap
from sketchbandit.explore.scores import upper_bound
from sketchbandit.explore.thompson import Thompson
from sketchbandit.explore.ucb import DEFAULT_BETA, UCB

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
