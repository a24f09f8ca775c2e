"""Every claim that the paper's experiments make, our own beside them, and the verdict of results on each."""

from sketchbandit_paper.claims import adaptive, beyond, epsilon, exploration, fronts, mnist, synthetic
from sketchbandit_paper.claims.base import NOT, OPEN, PARTLY, REPRODUCED, Claim, Finding

__all__ = ["CLAIMS", "NOT", "OPEN", "OURS", "PARTLY", "REPRODUCED", "Claim", "Finding"]

CLAIMS: tuple[Claim, ...] = (*synthetic.CLAIMS, *epsilon.CLAIMS, *mnist.CLAIMS, *fronts.CLAIMS)
"""The paper's."""
OURS: tuple[Claim, ...] = (*adaptive.CLAIMS, *exploration.CLAIMS, *beyond.CLAIMS)
"""Those that we make for the adaptive sketch, the exploration rules, reward models and forgetting."""
