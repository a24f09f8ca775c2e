"""How a choice follows from means and widths."""

from sketchbandit.explore.base import Candidates, Explore
from sketchbandit.explore.scores import upper_bound
from sketchbandit.explore.ucb import UCB

__all__ = ["UCB", "Candidates", "Explore", "upper_bound"]
