"""What a policy believes of the rewards."""

from sketchbandit.estimate.base import Estimate
from sketchbandit.estimate.fused import learn_fused
from sketchbandit.estimate.linear import Linear

__all__ = ["Estimate", "Linear", "learn_fused"]
