"""The policies: linear UCB over any sketch, and the paper's algorithms as recipes."""

from sketchbandit.policy.health import Health
from sketchbandit.policy.per_action import PerAction
from sketchbandit.policy.policy import LinUCB, Policy
from sketchbandit.policy.projected import ProjectedLinUCB
from sketchbandit.policy.recipes import adaptive, cbrap, cbscfd, dbslinucb, oful, soful
from sketchbandit.theory import Confidence

__all__ = [
    "Confidence",
    "Health",
    "LinUCB",
    "PerAction",
    "Policy",
    "ProjectedLinUCB",
    "adaptive",
    "cbrap",
    "cbscfd",
    "dbslinucb",
    "oful",
    "soful",
]
