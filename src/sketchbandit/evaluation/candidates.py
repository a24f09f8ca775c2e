"""The probabilities with which a candidate would have chosen each arm of a log."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from sketchbandit.arrays import Vector
from sketchbandit.errors import InputError, InputTypeError
from sketchbandit.evaluation.leakage import refuse_seen
from sketchbandit.evaluation.log import Action, Chunk, Log
from sketchbandit.evaluation.results import LOGGED
from sketchbandit.policy import PerAction, Policy

Chances = Callable[[Chunk], Vector]
"""The probabilities of all arms of a chunk, concatenated."""

UNIFORM = "uniform"
_OFF = 1e-6  # tolerance for the sum of probabilities


class Batched(NamedTuple):
    """A candidate function that takes many decisions at once.

    Examples
    --------
    >>> import numpy as np
    >>> first = Batched(lambda arms: np.eye(arms.shape[1])[np.zeros(len(arms), dtype=int)])

    """

    function: Callable[[Any], Any]
    """From arms (decisions, arms, dim), or a list of sets, to as many vectors of probabilities."""


def candidates_of(log: Log, policies: Any) -> dict[str, Chances]:
    """Every candidate as a function of chunks. Raises if one cannot be judged on this log."""
    if not isinstance(policies, Mapping):
        raise InputTypeError(
            f'policies must be a dict by name, {{"mine": policy}}, got {type(policies).__name__}'
        )
    if not policies:
        raise InputError('there is no policy to evaluate; give some by name, {"mine": policy}')
    if LOGGED in policies:
        raise InputError(f"{LOGGED!r} is the policy that made the log; give your candidate another name")
    return {
        str(name): checked(str(name), _chances_of(str(name), given, log)) for name, given in policies.items()
    }


def _chances_of(name: str, given: Any, log: Log) -> Chances:
    if isinstance(given, str) or (isinstance(given, int) and given in (log.actions or ())):
        return _named(name, given, log)
    if isinstance(given, Policy):
        _check_dim(name, given.dim, log.dim, "arms")
        refuse_seen(name, given, log)
        return lambda chunk: _flat(given.probabilities_many(chunk.arms))
    if isinstance(given, PerAction):
        if log.context_dim is None:
            raise InputError(
                f"{name} has a model per action, but the log has no contexts; give Log(context=...)"
            )
        _check_dim(name, given.dim, log.context_dim, "contexts")
        refuse_seen(name, given, log)
        return lambda chunk: _of_actions(name, given, chunk)
    if isinstance(given, Batched):
        return lambda chunk: _flat(given.function(chunk.arms))
    if callable(given):
        return lambda chunk: _flat([given(arms) for arms in chunk.arms])
    if isinstance(given, (np.ndarray, list, tuple)):
        return _of_table(name, given, log)
    raise InputTypeError(
        f"{name}: a candidate must be a policy, a function from arms (arms, dim) to probabilities, an array "
        f"of probabilities, {UNIFORM!r}, or the name of an action; got {type(given).__name__}"
    )


def _of_table(name: str, given: Any, log: Log) -> Chances:
    """Probabilities computed before: (decisions, arms), or (arms,) for every decision."""
    is_one = np.ndim(given[0]) == 0 if len(given) else False
    if not is_one and len(given) != len(log):
        raise InputError(f"{name}: {len(log)} decisions need as many rows of probabilities, got {len(given)}")

    def chances(chunk: Chunk) -> Vector:
        return _flat([given] * len(chunk) if is_one else given[chunk.start : chunk.start + len(chunk)])

    return chances


def _of_actions(name: str, policy: PerAction, chunk: Chunk) -> Vector:
    offered = chunk.offered
    if offered is None:
        raise InputError(f"{name} has actions, but those of the log have no names; give Log(actions=[names])")
    found = []
    for number, (context, names) in enumerate(zip(chunk.contexts, offered, strict=True)):
        try:
            found.append(policy.probabilities(context, list(names)))
        except InputError as error:
            raise InputError(f"{name}, decision {chunk.start + number}: {error}") from error
    return np.concatenate(found)


def _named(name: str, given: Action, log: Log) -> Chances:
    """Uniform choices, or always the action of this name."""
    if given == UNIFORM:
        return lambda chunk: np.repeat(1.0 / chunk.counts, chunk.counts)
    if given in (log.actions or ()):
        return lambda chunk: _always(name, given, chunk)
    actions = f", or an action: {', '.join(map(str, log.actions[:8]))}" if log.actions else ""
    raise InputError(f"{name}: unknown candidate {given!r}; give a policy, {UNIFORM!r}{actions}")


def _always(name: str, action: Action, chunk: Chunk) -> Vector:
    """All probability on one action."""
    flat = np.zeros(int(chunk.bounds[-1]))
    for number, names in enumerate(chunk.offered or ()):
        if action not in names:
            raise InputError(f"{name}, decision {chunk.start + number}: {action!r} was not offered")
        flat[chunk.bounds[number] + list(names).index(action)] = 1.0
    return flat


def checked(name: str, chances: Chances) -> Chances:
    """The same function, with a check that it returns probabilities."""

    def answer(chunk: Chunk) -> Vector:
        flat = np.asarray(chances(chunk), dtype=np.float64)
        if flat.shape != (chunk.bounds[-1],):
            raise InputError(
                f"{name}: give one probability for each of {chunk.bounds[-1]} arms, got {flat.shape} from "
                f"decision {chunk.start} on"
            )
        bad = np.flatnonzero(~((flat >= -_OFF) & (flat <= 1.0 + _OFF)))
        if len(bad):
            at = int(np.searchsorted(chunk.bounds, bad[0], side="right")) - 1
            raise InputError(f"{name}, decision {chunk.start + at}: {flat[bad[0]]} is not a probability")
        off = np.flatnonzero(np.abs(chunk.sums(flat) - 1.0) > _OFF)
        if len(off):
            at = int(off[0])
            total = float(chunk.sums(flat)[at])
            raise InputError(
                f"{name}, decision {chunk.start + at}: its probabilities sum to {total:.6g}, not 1"
            )
        return np.maximum(flat, 0.0)  # negative values are rounding

    return answer


def _check_dim(name: str, own: int, there: int, noun: str) -> None:
    if own != there:
        raise InputError(f"{name} reads {noun} of dimension {own}, but those of the log have {there}")


def _flat(found: Any) -> Vector:
    """Rows of probabilities, concatenated."""
    if isinstance(found, np.ndarray):
        return found.reshape(-1)
    return np.concatenate([np.asarray(some, dtype=np.float64).reshape(-1) for some in found])
