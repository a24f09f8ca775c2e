"""What a policy has learned from a log must not be judged by it: who has seen which rows."""

from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from scipy import sparse

from sketchbandit.errors import InputError
from sketchbandit.evaluation.chunk import Chunk
from sketchbandit.evaluation.log import Log
from sketchbandit.policy import PerAction, Policy

_seen: "WeakKeyDictionary[Any, list[tuple[str, int, int]]]" = WeakKeyDictionary()

_REMEDY = (
    "judge it on rows that it has not seen: past, future = log.split(0.5); train(policy, past); "
    "evaluate(future, ...); or have train_and_judge do both"
)


def train(policy: Any, *logs: Log) -> Any:
    """Have a policy learn what was chosen and earned, in the order of the rows; gives the policy back.

    It is remembered what it has seen: ``evaluate`` refuses to judge it by the same rows.

    >>> import numpy as np, sketchbandit as sb
    >>> log = Log(arms=np.eye(2), chosen=[0, 1], reward=[1.0, 0.0], probability=[0.5, 0.5])
    >>> past, future = log.split(0.5)
    >>> train(sb.oful(2), past).rounds
    1
    """
    for log in logs:
        for chunk in log.chunks():
            learn(policy, chunk)
        _seen.setdefault(policy, []).append((log.origin, log.start, log.start + len(log)))
    return policy


def learn(policy: Any, chunk: Chunk, at: Any = slice(None)) -> None:
    """Some decisions of a chunk, or one."""
    if isinstance(policy, PerAction):
        if chunk.offered is None:
            raise InputError("a model per action learns from actions with names; give Log(actions=[names])")
        places = np.arange(len(chunk))[at]
        one = np.ndim(places) == 0
        names = [chunk.offered[i][chunk.chosen[i]] for i in np.atleast_1d(places)]
        policy.update(chunk.contexts[at], names[0] if one else names, chunk.reward[at])
        return
    rows = chunk.chosen_rows
    if sparse.issparse(rows) and not isinstance(at, slice):
        at = [at]  # a row alone stays a matrix
    policy.update(rows[at], chunk.reward[at])


def refuse_seen(name: str, policy: Any, log: Log) -> None:
    """Refuse a policy that has learned from rows of this log."""
    for origin, start, stop in _seen.get(policy, ()):
        if origin == log.origin and start < log.start + len(log) and log.start < stop:
            raise InputError(
                f"{name} has learned from rows {start} to {stop} of this log, and would be judged by rows "
                f"{log.start} to {log.start + len(log)}: its own rewards flatter it; {_REMEDY}"
            )
    if isinstance(policy, Policy) and policy.rounds == len(log) and _has_mass_of(policy, log):
        raise InputError(
            f"{name} has learned from {policy.rounds} arms that are those chosen in this log, by their "
            f"lengths to nine digits; {_REMEDY}"
        )


def _has_mass_of(policy: Policy, log: Log) -> bool:
    """Whether the arms that it has seen have the squared lengths of those chosen in the log."""
    mass = getattr(policy.sketch, "mass", np.nan)
    total = 0.0
    for chunk in log.chunks():
        rows = chunk.chosen_rows
        total += float(rows.multiply(rows).sum() if hasattr(rows, "multiply") else np.vdot(rows, rows))
    return bool(np.isclose(mass, total, rtol=1e-9, atol=0.0)) and total > 0.0
