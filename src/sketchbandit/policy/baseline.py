"""Which policies can learn from rewards less their mean."""

from typing import Any

from sketchbandit.errors import InputError, InputTypeError
from sketchbandit.estimate import Estimate
from sketchbandit.explore import Explore
from sketchbandit.theory import Confidence


def read_baseline(baseline: Any) -> bool | None:
    """The ``baseline`` setting, checked. None: as the policy, or the ``PerAction`` it is for, decides."""
    if baseline is not None and not isinstance(baseline, bool):
        raise InputTypeError(
            f"baseline is {baseline!r:.40}; give True (learn from rewards less their mean) or False"
        )
    return baseline


def why_no_baseline(rule: Explore, beta: Any, estimate: Estimate) -> str:
    """Why a policy of these parts can have no baseline; empty if it can."""
    if isinstance(beta, Confidence) or any(isinstance(value, Confidence) for value in vars(rule).values()):
        return "the radius of a Confidence is a theorem for rewards as they are, without a baseline"
    if not estimate.takes_baseline:
        return f"{type(estimate).__name__} rewards cannot be learned less a baseline"
    return ""


def check_baseline(rule: Explore, beta: Any, estimate: Estimate) -> None:
    """Raise if a policy of these parts can have no baseline."""
    if why := why_no_baseline(rule, beta, estimate):
        raise InputError(f"{why}; make the policy with baseline=False")
