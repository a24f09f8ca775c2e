"""Reward models: what a policy estimates about the rewards."""

from sketchbandit.estimate.base import Estimate
from sketchbandit.estimate.fused import learn_fused
from sketchbandit.estimate.generalized import Logistic, Poisson
from sketchbandit.estimate.linear import Linear
from sketchbandit.estimate.robust import Robust

__all__ = ["Estimate", "Linear", "Logistic", "Poisson", "Robust", "learn_fused"]
