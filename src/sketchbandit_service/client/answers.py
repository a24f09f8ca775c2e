"""The service's answers as Python objects."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sketchbandit.errors import SketchBanditError


class ServiceError(SketchBanditError):
    """The service answered with an error, or did not answer.

    Attributes
    ----------
    status : int
        The HTTP status, or 0 if the service could not be reached.
    code : str
        The kind of error in a word: "not_found", "conflict", "expired", "busy", ...

    """

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code


@dataclass(frozen=True)
class Decision:
    """The chosen arm. A decision can be used as an index: ``arms[decision]`` is the arm to play.

    Attributes
    ----------
    id : str
        The id of the decision. ``update`` needs it, later or in another process.
    index : int
        The place of the arm in the request, or among the stored arms.
    arm : str or None
        The id of a stored arm, or the name of an action. None for an arm that was sent as features.
    score, mean : float
        ``score`` is the upper confidence bound. It equals the mean if the rule uses no widths. ``mean`` is
        the expected reward.
    propensity : float or None
        The probability with which the arm was chosen. None if it is not known exactly (Thompson sampling).
    top : list of dict
        The ranked arms if ``top`` was given: position, index, arm, score, mean, propensity.
    propensity_kind : str
        "exact": ``propensity`` is exact. "estimate": it is estimated after the answer, for the log. "none":
        there is no propensity.

    """

    id: str
    index: int
    arm: str | None
    score: float
    mean: float
    propensity: float | None
    top: list[dict[str, Any]] = field(default_factory=list)
    propensity_kind: str = "exact"

    def __index__(self) -> int:
        return self.index

    @property
    def action(self) -> str | None:
        """The chosen action, for a bandit with actions. It is the same as ``arm``."""
        return self.arm

    @classmethod
    def of(cls, answer: Mapping[str, Any]) -> "Decision":
        """Read a decision from the service's answer."""
        return cls(
            answer["decision"],
            answer["index"],
            answer["arm"],
            answer["score"],
            answer["mean"],
            answer["propensity"],
            answer["top"] or [],
            answer.get("propensity_kind", "exact"),
        )


def refusal(status: int, body: bytes) -> ServiceError:
    """The error that the body of an answer describes."""
    try:
        error = json.loads(body)["error"]
        return ServiceError(status, error["code"], error["message"])
    except (ValueError, KeyError, TypeError):
        return ServiceError(status, "unknown", f"the service answered {status}: {body[:200]!r}")


def failure(answer: Mapping[str, Any]) -> ServiceError | None:
    """The error of one item of a batch, or None if the item succeeded."""
    if "error" not in answer:
        return None
    return ServiceError(answer["status_code"], answer["error"]["code"], answer["error"]["message"])
