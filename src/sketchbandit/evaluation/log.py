"""A log of decisions: what was offered, what was chosen, with which propensity, and its reward."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, NoReturn

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from sketchbandit.arrays import AnyArray, Rows, Vector
from sketchbandit.errors import InputError, InputTypeError
from sketchbandit.evaluation.logged_arms import Action, Arms, OfferedArms, ProductArms, Sets, arms_of


@dataclass(frozen=True)
class Chunk:
    """Consecutive decisions of a log."""

    start: int
    arms: Sets
    chosen: AnyArray
    reward: Vector
    probability: Vector
    contexts: Rows = None
    """The contexts (decisions, p), if the log has them."""
    offered: Sequence[Sequence[Action]] | None = None
    """The names of the actions of each decision, if they have names."""

    def __len__(self) -> int:
        return len(self.chosen)

    @cached_property
    def counts(self) -> AnyArray:
        """The number of arms of each decision."""
        if isinstance(self.arms, np.ndarray):
            return np.full(len(self.arms), self.arms.shape[1])
        return np.array([arms.shape[0] for arms in self.arms])

    @cached_property
    def bounds(self) -> AnyArray:
        """The first row of each decision, if all arms are concatenated, and the end."""
        return np.concatenate([[0], np.cumsum(self.counts)])

    @cached_property
    def rows(self) -> Rows:
        """All arms, concatenated, (arms, dim); CSR if some are sparse."""
        if isinstance(self.arms, np.ndarray):
            return self.arms.reshape(-1, self.arms.shape[2])
        is_sparse = any(sparse.issparse(arms) for arms in self.arms)
        return sparse.vstack(self.arms, format="csr") if is_sparse else np.concatenate(self.arms)

    @cached_property
    def chosen_rows(self) -> Rows:
        """The arms that were chosen, (decisions, dim)."""
        return self.rows[self.bounds[:-1] + self.chosen]

    def sums(self, flat: Vector) -> Vector:
        """Sums over the arms of each decision."""
        if isinstance(self.arms, np.ndarray):
            rows: Vector = flat.reshape(self.arms.shape[:2]).sum(axis=1)
            return rows
        return np.add.reduceat(flat, self.bounds[:-1])


def names_of(actions: Sequence[Action] | AnyArray | None) -> tuple[Action, ...] | None:
    """The names of the actions; None if they are features."""
    if actions is None or np.ndim(actions) != 1:
        return None
    names = tuple(name.item() if hasattr(name, "item") else name for name in actions)
    if not all(isinstance(name, (str, int)) for name in names):
        raise InputTypeError("actions are names, or an array of their features (actions, q)")
    if len(set(names)) < len(names):
        raise InputError(f"an action is there twice: {names}")
    return names


def indices_of(chosen: ArrayLike, names: tuple[Action, ...] | None) -> AnyArray:
    """The indices of the chosen actions, which may be given by name."""
    values = np.asarray(chosen)
    if names is None or values.dtype.kind in "iuf":
        return values
    places = {name: place for place, name in enumerate(names)}
    for at, name in enumerate(values.tolist()):
        if name not in places:
            _refuse_name(at, name, names)
    return np.array([places[name] for name in values.tolist()], dtype=np.int64)


def place_of(at: int, name: Action, offered: Sequence[Action]) -> int:
    """The place of a name among the actions offered in decision ``at``."""
    if name not in offered:
        _refuse_name(at, name, offered)
    return list(offered).index(name)


def _refuse_name(at: int, name: Action, names: Sequence[Action]) -> NoReturn:
    raise InputError(f"decision {at}: {name!r} was chosen, and is none of the actions {tuple(names[:8])}")


class Summary(NamedTuple):
    """The figures of a log that ``Log.summary`` returns."""

    decisions: int
    dim: int
    mean_reward: float
    least_probability: float
    is_deterministic: bool
    is_uniform: bool


class Log:
    """A log of decisions. Arms are read in pieces, so a log may be larger than memory.

    Only the columns ``chosen``, ``reward`` and ``probability`` are held in memory.

    Parameters
    ----------
    arms : array, list, function or path
        The arms offered. An array (decisions, arms, dim), also a ``numpy.memmap``. Or one set (arms, dim)
        that was offered in every decision. Or a list of sets, dense or sparse, that may differ in their
        number of arms. Or a function (start, stop) that returns the sets of these decisions. Or the path of
        an ``.npy`` file.
    context, actions
        Instead of arms: contexts (decisions, p), and the names of the actions or their features (actions, q).
        The features of an arm are then all products of context and action features.
    chosen : array of int or str
        The index of the arm that was chosen, or its name if ``actions`` are names. Integers are indices.
    reward : array of float
        The reward of the arm that was chosen.
    probability : array of float
        The propensity: the probability with which the arm was chosen, above 0 (``choice.probability``).
    time : array, optional
        The time of each decision. Rows must be sorted by it.

    Examples
    --------
    >>> import sketchbandit as sb
    >>> random = np.random.default_rng(0)
    >>> log = Log(
    ...     arms=random.standard_normal((500, 4, 3)),
    ...     chosen=random.integers(4, size=500),
    ...     reward=random.random(500),
    ...     probability=np.full(500, 0.25),
    ... )
    >>> log
    Log(500 decisions, 3 features, mean reward 0.4866, probabilities from 0.25)
    >>> past, future = log.split(0.4)
    >>> len(past), len(future)
    (200, 300)

    """

    def __init__(
        self,
        *,
        arms: object = None,
        context: ArrayLike | None = None,
        actions: Sequence[Action] | AnyArray | None = None,
        chosen: ArrayLike,
        reward: ArrayLike,
        probability: ArrayLike,
        time: ArrayLike | None = None,
    ) -> None:
        offered = arms.offered if isinstance(arms, OfferedArms) else None
        if (arms is None) == (context is None) and offered is None:
            raise InputError("give the arms that were offered: either arms, or context and actions")
        if context is not None and actions is None and offered is None:
            raise InputError("context needs actions: give their names, or their features (actions, q)")
        self.reward = read_column(
            "reward", reward, "leave out decisions whose reward is not known, or give the default"
        )
        self.probability = read_probabilities(probability)
        names = names_of(actions)
        self.chosen = read_chosen(indices_of(chosen, names))
        count = check_lengths(
            chosen=self.chosen, reward=self.reward, probability=self.probability, time=time, context=context
        )
        self._arms = _product(context, actions) if arms is None else arms_of(arms, count)
        if self._arms.count != count:
            raise InputError(f"there are arms for {self._arms.count} decisions, but {count} decisions")
        if self._arms.counts is not None:
            check_chosen(self.chosen, self._arms.counts)
        self._contexts = None if context is None else np.asarray(context)
        self.actions = names
        self._offered: Sequence[Sequence[Action]] | None = offered
        self.left_out: dict[str, int] = {}
        """The reasons for which rows of a file were left out, with their numbers."""
        self.start = 0
        self.origin = _digest(self.chosen, self.reward, self.probability)
        """A digest that is the same for all parts of one log."""
        if time is not None:
            check_order(np.asarray(time))

    @classmethod
    def of_actions(
        cls, context: AnyArray, offered: Sequence[Sequence[Action]], **columns: ArrayLike
    ) -> "Log":
        """Make a log of contexts and named actions, where not all actions are offered every time.

        ``chosen`` is an index into the actions that were offered, or the name of one of them.
        """
        if np.asarray(columns["chosen"]).dtype.kind in "OU":
            pairs = zip(np.asarray(columns["chosen"]).tolist(), offered, strict=False)  # checked below
            columns["chosen"] = [place_of(at, name, some) for at, (name, some) in enumerate(pairs)]
        names = list(dict.fromkeys(name for some in offered for name in some))
        if all(list(some) == names for some in offered):
            return cls(context=context, actions=names, **columns)
        return cls(arms=OfferedArms(context, offered, names), context=context, actions=names, **columns)

    # -- parts --------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.chosen)

    def part(self, start: int, stop: int) -> "Log":
        """The decisions from start to stop, counted within this log."""
        if not 0 <= start < stop <= len(self):
            raise InputError(f"there are {len(self)} decisions, so {start} to {stop} is not a part of them")
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        for name in ("chosen", "reward", "probability"):
            setattr(twin, name, getattr(self, name)[start:stop])
        twin.__dict__.pop("is_uniform", None)  # this was the value of the whole log
        twin.start = self.start + start
        return twin

    def split(self, share: float = 0.5) -> "tuple[Log, Log]":
        """Split by time: the first part, for learning, and the rest, for judging."""
        if not 0.0 < share < 1.0:
            raise InputError(f"share must be between 0 and 1 (that of the first part), got {share!r}")
        at = min(max(1, round(share * len(self))), len(self) - 1)
        if len(self) < 2:
            raise InputError("a log of one decision cannot be split; give at least two decisions")
        return self.part(0, at), self.part(at, len(self))

    # -- reading ------------------------------------------------------------------------------------

    @property
    def dim(self) -> int:
        """The number of features of an arm."""
        return self._arms.dim

    @property
    def context_dim(self) -> int | None:
        """The number of features of a context; None if the log has arms."""
        return None if self._contexts is None else int(self._contexts.shape[1])

    @property
    def is_fixed(self) -> bool:
        """Whether arm i is the same action in every decision."""
        return self._arms.is_fixed

    @cached_property
    def _rows_at_once(self) -> int:
        return self._arms.rows_at_once()

    def chunks(self) -> Iterator[Chunk]:
        """Yield all decisions, some at a time."""
        step = self._rows_at_once
        for start in range(0, len(self), step):
            stop = min(start + step, len(self))
            there, end = self.start + start, self.start + stop
            chunk = Chunk(
                start=start,
                arms=self._arms.read(there, end),
                chosen=self.chosen[start:stop],
                reward=self.reward[start:stop],
                probability=self.probability[start:stop],
                contexts=None if self._contexts is None else self._contexts[there:end],
                offered=self._names(there, end),
            )
            check_arms(chunk.arms, chunk.counts, chunk.chosen, there)
            yield chunk

    def _names(self, start: int, stop: int) -> Sequence[Sequence[Action]] | None:
        if self._offered is not None:
            return self._offered[start:stop]
        return None if self.actions is None else [self.actions] * (stop - start)

    # -- what it is ---------------------------------------------------------------------------------

    def summary(self) -> Summary:
        """The figures of the log. All arms are read once."""
        least = float(self.probability.min())
        return Summary(
            decisions=len(self),
            dim=self.dim,
            mean_reward=float(self.reward.mean()),
            least_probability=least,
            is_deterministic=self.is_deterministic,
            is_uniform=self.is_uniform,
        )

    @property
    def is_deterministic(self) -> bool:
        """Whether every probability is one. Then the log says nothing about other choices."""
        return bool((self.probability >= 1.0 - 1e-9).all())

    @cached_property
    def is_uniform(self) -> bool:
        """Whether all arms of a decision had the same probability, 1/K."""
        return all(np.allclose(chunk.probability * chunk.counts, 1.0, atol=1e-6) for chunk in self.chunks())

    def __repr__(self) -> str:
        return (
            f"Log({len(self):,} decisions, {self.dim:,} features, mean reward {self.reward.mean():.4g}, "
            f"probabilities from {self.probability.min():.3g})"
        )


def _digest(*columns: AnyArray) -> str:
    digest = hashlib.sha256()
    for column in columns:
        digest.update(np.ascontiguousarray(column).data)
    return digest.hexdigest()


def _product(context: ArrayLike | None, actions: Sequence[Action] | AnyArray | None) -> Arms:
    contexts = np.asarray(context)
    if contexts.ndim != 2 or contexts.dtype.kind not in "fiub":
        raise InputError(
            f"context must be numbers (decisions, p), got {contexts.dtype} of shape {contexts.shape}"
        )
    features = np.asarray(actions)
    return ProductArms(contexts, np.eye(len(features)) if features.ndim == 1 else features.astype(np.float64))


# -- checks ------------------------------------------------------------------------------------------


def read_column(name: str, values: ArrayLike, remedy: str) -> Vector:
    """Read real numbers, one per decision, none missing."""
    if np.ma.is_masked(values):
        raise InputError(f"some of {name} are masked; {remedy}")
    array = np.asarray(values)
    _refuse_missing(name, array, remedy)
    if array.dtype.kind not in "fiub":
        raise InputTypeError(f"{name} must be real numbers, got an array of dtype {array.dtype}")
    if array.ndim != 1:
        raise InputError(f"{name} must be one number per decision, got an array of shape {array.shape}")
    numbers = array.astype(np.float64)
    bad = np.flatnonzero(~np.isfinite(numbers))
    if len(bad):
        raise InputError(f"{name} {bad[0]} is {numbers[bad[0]]} ({len(bad)} such rows); {remedy}")
    return numbers


def read_probabilities(values: ArrayLike) -> Vector:
    """Read probabilities above 0 and at most 1."""
    found = read_column(
        "probability", values, "every decision needs the probability with which its arm was chosen"
    )
    bad = np.flatnonzero(~((found > 0.0) & (found <= 1.0)))
    if len(bad):
        raise InputError(
            f"probability {bad[0]} is {found[bad[0]]} ({len(bad)} such rows); that of an arm that was chosen "
            "is above 0 and at most 1: log choice.probability, not a score"
        )
    return found


def read_chosen(values: ArrayLike) -> AnyArray:
    """Read indices of arms."""
    array = np.asarray(values)
    if array.ndim != 1:
        raise InputError(f"chosen must be one index per decision, got an array of shape {array.shape}")
    _refuse_missing("chosen", array, "every decision needs the index of the arm that was chosen")
    if array.dtype.kind == "f" and np.isfinite(array).all() and (array == np.round(array)).all():
        array = array.astype(np.int64)
    if array.dtype.kind not in "iu":
        raise InputTypeError(
            f"chosen must be the index of the arm chosen, got an array of dtype {array.dtype}"
        )
    if len(array) and array.min() < 0:
        raise InputError(f"chosen {int(array.argmin())} is {array.min()}; an index counts from 0")
    return array.astype(np.int64)


def _refuse_missing(name: str, array: AnyArray, remedy: str) -> None:
    """Raise for None, pandas' NA, and nan."""
    if array.dtype.kind == "O":
        bad = [at for at, value in enumerate(array.flat) if value is None or type(value).__name__ == "NAType"]
    else:
        bad = np.flatnonzero(np.isnan(array)).tolist() if array.dtype.kind == "f" else []
    if bad:
        said = "missing" if array.dtype.kind == "O" else "nan"
        raise InputError(f"{name} {bad[0]} is {said} ({len(bad)} such rows); {remedy}")


def check_lengths(**columns: ArrayLike | None) -> int:
    """The number of decisions. Raises unless all columns have the same length."""
    lengths = {name: len(np.asarray(values)) for name, values in columns.items() if values is not None}
    if len(set(lengths.values())) > 1:
        said = ", ".join(f"{count} of {name}" for name, count in lengths.items())
        raise InputError(f"every decision needs one of each, got {said}")
    count = next(iter(lengths.values()))
    if not count:
        raise InputError("the log is empty: it has no decisions")
    return count


def check_order(time: AnyArray) -> None:
    """Raise unless rows are sorted by time: otherwise a split by rows would not be one by time."""
    back = np.flatnonzero(time[1:] < time[:-1])
    if len(back):
        at = int(back[0]) + 1
        raise InputError(f"time {at} is {time[at]}, before that of the row above it; sort the rows by time")


def check_chosen(chosen: AnyArray, counts: int | AnyArray, first: int = 0) -> None:
    """Raise for indices beyond the number of arms. ``first`` is the first row number."""
    beyond = np.flatnonzero(chosen >= counts)
    if len(beyond):
        at = int(beyond[0])
        there = np.broadcast_to(counts, chosen.shape)[at]
        raise InputError(
            f"decision {first + at}: arm {chosen[at]} was chosen, and there are {there} (counted from 0)"
        )


def check_arms(sets: Sets, counts: AnyArray, chosen: AnyArray, first: int) -> None:
    """Raise for arms that are not finite, and for indices beyond them. ``first`` is the first row number."""
    check_chosen(chosen, counts, first)
    if isinstance(sets, np.ndarray):
        if np.isfinite(sets.sum()):
            return
        bad = np.flatnonzero(~np.isfinite(sets).all(axis=(1, 2)))
    else:
        values = (arms.data if sparse.issparse(arms) else arms for arms in sets)
        bad = np.flatnonzero([not np.isfinite(some).all() for some in values])
    if len(bad):
        raise InputError(
            f"decision {first + int(bad[0])}: its arms contain NaN or inf; mend or drop that row"
        )
