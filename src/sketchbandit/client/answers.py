"""What the service answers, as Python sees it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sketchbandit.errors import SketchBanditError


class ServiceError(SketchBanditError):
    """An answer that is not a success, or none at all.

    Attributes
    ----------
    status : int
        The HTTP status; 0 if the service could not be reached.
    code : str
        A word for it: "not_found", "conflict", "expired", "busy", ...

    """

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code


@dataclass(frozen=True)
class Decision:
    """The arm to play. ``arms[decision]`` is it: a decision can be used as an index.

    Attributes
    ----------
    id : str
        What ``update`` needs, later or in another process.
    index : int
        The place of the arm.
    arm : str or None
        Its id, where it is a stored one; the action, where the bandit has actions.
    score, mean : float
        Its upper confidence bound (the mean, where the rule uses no widths), and the reward expected.
    propensity : float or None
        The probability with which it was chosen; None where it is not exact (Thompson sampling).
    top : list of dict
        The arms ranked, where ``top`` was asked for: position, index, arm, score, mean, propensity.
    propensity_kind : str
        "exact"; "estimate": it is estimated after the answer, for the log; "none": it is left out.

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
        """The action, where the bandit has actions: the same as ``arm``."""
        return self.arm

    @classmethod
    def of(cls, answer: Mapping[str, Any]) -> "Decision":
        """From the service's answer."""
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
    """The error that an answer tells."""
    try:
        error = json.loads(body)["error"]
        return ServiceError(status, error["code"], error["message"])
    except (ValueError, KeyError, TypeError):
        return ServiceError(status, "unknown", f"the service answered {status}: {body[:200]!r}")


def failure(answer: Mapping[str, Any]) -> ServiceError | None:
    """The error of an item of a batch, if it is one."""
    if "error" not in answer:
        return None
    return ServiceError(answer["status_code"], answer["error"]["code"], answer["error"]["message"])
