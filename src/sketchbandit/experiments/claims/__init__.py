"""Every claim that the paper's experiments make, and the verdict that results give on each."""

from sketchbandit.experiments.claims import epsilon, fronts, mnist, synthetic
from sketchbandit.experiments.claims.base import NOT, OPEN, PARTLY, REPRODUCED, Claim, Finding

__all__ = ["CLAIMS", "NOT", "OPEN", "PARTLY", "REPRODUCED", "Claim", "Finding"]

CLAIMS: tuple[Claim, ...] = (*synthetic.CLAIMS, *epsilon.CLAIMS, *mnist.CLAIMS, *fronts.CLAIMS)
