"""Which rows of a log a policy has learned from: it must not be judged on these."""

from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from scipy import sparse

from sketchbandit.errors import InputError
from sketchbandit.evaluation.log import Chunk, Log
from sketchbandit.linalg import row_norms_sq
from sketchbandit.policy import PerAction, Policy

_seen: "WeakKeyDictionary[Any, list[tuple[str, int, int]]]" = WeakKeyDictionary()

_REMEDY = (
    "judge it on rows that it has not seen: past, future = log.split(0.5); train(policy, past); "
    "evaluate(future, ...); or have train_and_judge do both"
)


def train(policy: Any, *logs: Log) -> Any:
    """Train a policy on the chosen arms and rewards of a log, in the order of the rows, and return it.

    The rows are remembered: ``evaluate`` refuses to judge the policy on the same rows.

    Parameters
    ----------
    policy : Policy or PerAction
        The policy. It learns.
    logs : Log
        One or more logs, or parts of logs.

    Examples
    --------
    >>> import numpy as np, sketchbandit as sb
    >>> log = Log(arms=np.eye(2), chosen=[0, 1], reward=[1.0, 0.0], probability=[0.5, 0.5])
    >>> past, future = log.split(0.5)
    >>> train(sb.oful(2), past).rounds
    1

    """
    for log in logs:
        for chunk in log.chunks():
            _remember(policy, log, chunk)  # before learning: a later row of the chunk may be refused
            learn(policy, chunk)
    return policy


def _remember(policy: Any, log: Log, chunk: Chunk) -> None:
    """Note that the policy has seen these rows. Adjacent ranges are joined."""
    ranges = _seen.setdefault(policy, [])
    start, stop = log.start + chunk.start, log.start + chunk.start + len(chunk)
    if ranges and ranges[-1][::2] == (log.origin, start):
        start = ranges.pop()[1]
    ranges.append((log.origin, start, stop))


def learn(policy: Any, chunk: Chunk, at: Any = slice(None)) -> None:
    """Learn from some decisions of a chunk, or from one."""
    if isinstance(policy, PerAction):
        if chunk.offered is None:
            raise InputError("PerAction learns from actions with names; give Log(actions=[names])")
        places = np.arange(len(chunk))[at]
        one = np.ndim(places) == 0
        names = [chunk.offered[i][chunk.chosen[i]] for i in np.atleast_1d(places)]
        policy.update(chunk.contexts[at], names[0] if one else names, chunk.reward[at])
        return
    rows = chunk.chosen_rows
    if sparse.issparse(rows) and not isinstance(at, slice):
        at = [at]  # a single row stays a matrix
    policy.update(rows[at], chunk.reward[at])


def refuse_seen(name: str, policy: Any, log: Log) -> None:
    """Raise if the policy has learned from rows of this log."""
    for origin, start, stop in _seen.get(policy, ()):
        if origin == log.origin and start < log.start + len(log) and log.start < stop:
            raise InputError(
                f"{name} has learned from rows {start} to {stop} of this log, and would be judged on rows "
                f"{log.start} to {log.start + len(log)}, which is biased in its favour; {_REMEDY}"
            )
    if isinstance(policy, Policy) and policy.rounds == len(log) and _has_mass_of(policy, log):
        raise InputError(
            f"{name} has learned from {policy.rounds} arms whose lengths equal, to nine digits, those of the "
            f"arms chosen in this log; {_REMEDY}"
        )


def _has_mass_of(policy: Policy, log: Log) -> bool:
    """Whether the arms it has seen have the squared lengths of those chosen in the log."""
    mass = getattr(policy.sketch, "mass", np.nan)
    total = 0.0
    for chunk in log.chunks():
        rows = chunk.chosen_rows
        total += float(rows.multiply(rows).sum() if hasattr(rows, "multiply") else row_norms_sq(rows).sum())
    return bool(np.isclose(mass, total, rtol=1e-9, atol=0.0)) and total > 0.0
