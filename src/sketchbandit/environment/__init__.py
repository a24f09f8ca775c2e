"""Environments: sources of arms and rewards, seeded and repeatable, with known means for the regret."""

from sketchbandit.environment.base import Environment, Round
from sketchbandit.environment.classification import Classification, ContextualClassification
from sketchbandit.environment.gaussian import SPECTRA, GaussianArms
from sketchbandit.environment.variations import Clicks, HeavyTails, Rotating, Switching

__all__ = [
    "SPECTRA",
    "Classification",
    "Clicks",
    "ContextualClassification",
    "Environment",
    "GaussianArms",
    "HeavyTails",
    "Rotating",
    "Round",
    "Switching",
]
