"""Reward models: what a policy estimates about the rewards."""

from sketchbandit.estimate.base import AffineTheta, Estimate
from sketchbandit.estimate.generalized import Logistic, Poisson
from sketchbandit.estimate.linear import Linear
from sketchbandit.estimate.reward_scale import STRENGTH, RewardScale
from sketchbandit.estimate.robust import Robust

__all__ = [
    "STRENGTH",
    "AffineTheta",
    "Estimate",
    "Linear",
    "Logistic",
    "Poisson",
    "RewardScale",
    "Robust",
]
