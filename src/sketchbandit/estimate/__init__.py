"""Reward models: what a policy estimates about the rewards."""

# Messages name the models in the order in which they are defined.
# isort: off
from sketchbandit.estimate.base import AffineTheta, Estimate
from sketchbandit.estimate.reward_scale import STRENGTH, RewardScale
from sketchbandit.estimate.linear import Linear
from sketchbandit.estimate.one_pass import Logistic, Poisson
from sketchbandit.estimate.one_pass import Robust
# isort: on

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
