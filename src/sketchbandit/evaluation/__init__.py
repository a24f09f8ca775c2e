"""Off-policy evaluation: what another policy would have earned, estimated from a log.

There are two questions. ``evaluate`` asks what *fixed* policies earn, which learn nothing more.
``train_and_judge`` is the same for policies that first learn from one part of the log, and are judged on
another part. ``replay`` asks what a policy earns *while it learns*.
"""

from sketchbandit.evaluation.estimators import METHODS
from sketchbandit.evaluation.log import Log
from sketchbandit.evaluation.log_files import from_frame, read_log, write_log
from sketchbandit.evaluation.models import Ridge
from sketchbandit.evaluation.off_policy import INTERVALS, evaluate, train_and_judge
from sketchbandit.evaluation.replay_method import Replay, replay
from sketchbandit.evaluation.results import Difference, Estimate, Evaluation
from sketchbandit.evaluation.sequences import AnytimeValue, LowerBound
from sketchbandit.evaluation.target_policies import Batched, train
from sketchbandit.evaluation.weights import Weights

__all__ = [
    "INTERVALS",
    "METHODS",
    "AnytimeValue",
    "Batched",
    "Difference",
    "Estimate",
    "Evaluation",
    "Log",
    "LowerBound",
    "Replay",
    "Ridge",
    "Weights",
    "evaluate",
    "from_frame",
    "read_log",
    "replay",
    "train",
    "train_and_judge",
    "write_log",
]
