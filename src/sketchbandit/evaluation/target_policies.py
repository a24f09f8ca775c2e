"""The policies to be judged: the rows of a log that they have learned from, and their choices on others."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
from scipy import sparse

from sketchbandit.arrays import AnyArray, Vector
from sketchbandit.errors import InputError, InputTypeError
from sketchbandit.evaluation.log import Chunk, Log
from sketchbandit.evaluation.logged_arms import Action
from sketchbandit.evaluation.results import LOGGED
from sketchbandit.linalg import row_norms_sq
from sketchbandit.policy import PerAction, Policy

Learned = TypeVar("Learned")
Chances = Callable[[Chunk], Vector]
"""The probabilities of all arms of a chunk, concatenated."""


class Batched(NamedTuple):
    """A candidate function that takes many decisions at once.

    Examples
    --------
    >>> import numpy as np
    >>> first = Batched(lambda arms: np.eye(arms.shape[1])[np.zeros(len(arms), dtype=int)])

    """

    function: Callable[[Any], Iterable[object]]
    """From arms (decisions, arms, dim), or a list of sets, to as many vectors of probabilities."""


UNIFORM = "uniform"
_OFF = 1e-6  # tolerance for the sum of probabilities

# -- what they have learned from ---------------------------------------------------------------------

_seen: "WeakKeyDictionary[object, list[tuple[str, int, int]]]" = WeakKeyDictionary()

_REMEDY = (
    "judge it on rows that it has not seen: past, future = log.split(0.5); train(policy, past); "
    "evaluate(future, ...); or have train_and_judge do both"
)


def train(policy: Learned, *logs: Log) -> Learned:
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


def _remember(policy: object, log: Log, chunk: Chunk) -> None:
    """Note that the policy has seen these rows. Adjacent ranges are joined."""
    ranges = _seen.setdefault(policy, [])
    start, stop = log.start + chunk.start, log.start + chunk.start + len(chunk)
    if ranges and ranges[-1][::2] == (log.origin, start):
        start = ranges.pop()[1]
    ranges.append((log.origin, start, stop))


def learn(policy: Any, chunk: Chunk, at: int | slice = slice(None)) -> None:
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
    some = [at] if sparse.issparse(rows) and not isinstance(at, slice) else at  # a single row stays a matrix
    policy.update(rows[some], chunk.reward[at])


def refuse_seen(name: str, policy: Policy | PerAction, log: Log) -> None:
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
    total = 0.0
    for chunk in log.chunks():
        rows = chunk.chosen_rows
        total += float(rows.multiply(rows).sum() if sparse.issparse(rows) else row_norms_sq(rows).sum())
    return total > 0.0 and bool(np.isclose(policy.sketch.mass, total, rtol=1e-9, atol=0.0))


# -- what they would choose --------------------------------------------------------------------------


def check_makers(makers: Mapping[str, object]) -> None:
    """Raise unless these are makers by name."""
    if not isinstance(makers, Mapping) or not makers:
        raise InputTypeError(
            f'makers must be a dict by name, {{"mine": lambda: sb.adaptive(20)}}, got {makers!r:.60}'
        )


def candidates_of(log: Log, policies: Mapping[str, object]) -> dict[str, Chances]:
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
        str(name): _checked(str(name), _chances_of(str(name), given, log)) for name, given in policies.items()
    }


def _chances_of(name: str, given: object, log: Log) -> Chances:
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


def _of_table(name: str, given: Sequence[object] | AnyArray, log: Log) -> Chances:
    """Probabilities computed before: (decisions, arms), or (arms,) for every decision."""
    is_one = len(given) > 0 and np.asarray(given[0]).ndim == 0
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


def _checked(name: str, chances: Chances) -> Chances:
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


def _flat(found: Iterable[object]) -> Vector:
    """Rows of probabilities, concatenated."""
    if isinstance(found, np.ndarray):
        return found.reshape(-1)
    return np.concatenate([np.asarray(some, dtype=np.float64).reshape(-1) for some in found])
