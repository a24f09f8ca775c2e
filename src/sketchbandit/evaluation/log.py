"""A log of decisions: what was offered, what was chosen, with which propensity, and its reward."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, NoReturn

import numpy as np
from scipy import sparse

from sketchbandit.arrays import AnyArray, Vector
from sketchbandit.errors import InputError, InputTypeError
from sketchbandit.evaluation import checking
from sketchbandit.evaluation.sources import Arms, OfferedArms, ProductArms, Sets, arms_of

Action = str | int


@dataclass(frozen=True)
class Chunk:
    """Consecutive decisions of a log."""

    start: int
    arms: Sets
    chosen: AnyArray
    reward: Vector
    probability: Vector
    contexts: Any = None
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
    def rows(self) -> Any:
        """All arms, concatenated, (arms, dim); CSR if some are sparse."""
        if isinstance(self.arms, np.ndarray):
            return self.arms.reshape(-1, self.arms.shape[2])
        is_sparse = any(sparse.issparse(arms) for arms in self.arms)
        return sparse.vstack(self.arms, format="csr") if is_sparse else np.concatenate(self.arms)

    @cached_property
    def chosen_rows(self) -> Any:
        """The arms that were chosen, (decisions, dim)."""
        return self.rows[self.bounds[:-1] + self.chosen]

    def sums(self, flat: Vector) -> Vector:
        """Sums over the arms of each decision."""
        if isinstance(self.arms, np.ndarray):
            rows: Vector = flat.reshape(self.arms.shape[:2]).sum(axis=1)
            return rows
        return np.add.reduceat(flat, self.bounds[:-1])


def names_of(actions: Any) -> tuple[Action, ...] | None:
    """The names of the actions; None if they are features."""
    if actions is None or np.ndim(actions) != 1:
        return None
    names = tuple(name.item() if hasattr(name, "item") else name for name in actions)
    if not all(isinstance(name, (str, int)) for name in names):
        raise InputTypeError("actions are names, or an array of their features (actions, q)")
    if len(set(names)) < len(names):
        raise InputError(f"an action is there twice: {names}")
    return names


def indices_of(chosen: Any, names: tuple[Action, ...] | None) -> Any:
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


def _refuse_name(at: int, name: Any, names: Sequence[Action]) -> NoReturn:
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
        arms: Any = None,
        context: Any = None,
        actions: Any = None,
        chosen: Any,
        reward: Any,
        probability: Any,
        time: Any = None,
        offered: Any = None,
    ) -> None:
        if (arms is None) == (context is None) and offered is None:
            raise InputError("give the arms that were offered: either arms, or context and actions")
        if context is not None and actions is None and offered is None:
            raise InputError("context needs actions: give their names, or their features (actions, q)")
        self.reward = checking.read_rewards(reward)
        self.probability = checking.read_probabilities(probability)
        names = names_of(actions)
        self.chosen = checking.read_chosen(indices_of(chosen, names))
        count = checking.check_lengths(
            chosen=self.chosen, reward=self.reward, probability=self.probability, time=time, context=context
        )
        self._arms: Arms = _product(context, actions) if arms is None else arms_of(arms, count)
        if self._arms.count != count:
            raise InputError(f"there are arms for {self._arms.count} decisions, but {count} decisions")
        if self._arms.counts is not None:
            checking.check_chosen(self.chosen, self._arms.counts)
        self._contexts = None if context is None else np.asarray(context)
        self.actions = names
        self._offered: Sequence[Sequence[Action]] | None = offered
        self.left_out: dict[str, int] = {}
        """The reasons for which rows of a file were left out, with their numbers."""
        self.start = 0
        self.origin = _digest(self.chosen, self.reward, self.probability)
        """A digest that is the same for all parts of one log."""
        if time is not None:
            checking.check_order(np.asarray(time))

    @classmethod
    def of_actions(cls, context: AnyArray, offered: Sequence[Sequence[Action]], **columns: Any) -> "Log":
        """Make a log of contexts and named actions, where not all actions are offered every time.

        ``chosen`` is an index into the actions that were offered, or the name of one of them.
        """
        if np.asarray(columns["chosen"]).dtype.kind in "OU":
            pairs = zip(columns["chosen"], offered, strict=False)  # lengths are checked below
            columns["chosen"] = [place_of(at, name, some) for at, (name, some) in enumerate(pairs)]
        names = list(dict.fromkeys(name for some in offered for name in some))
        if all(list(some) == names for some in offered):
            return cls(context=context, actions=names, **columns)
        places = {name: place for place, name in enumerate(names)}
        arms = OfferedArms(context, [[places[name] for name in some] for some in offered], len(names))
        return cls(arms=arms, context=context, actions=names, offered=offered, **columns)

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
            checking.check_arms(chunk.arms, chunk.counts, chunk.chosen, there)
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


def _product(context: Any, actions: Any) -> Arms:
    contexts = np.asarray(context)
    if contexts.ndim != 2 or contexts.dtype.kind not in "fiub":
        raise InputError(
            f"context must be numbers (decisions, p), got {contexts.dtype} of shape {contexts.shape}"
        )
    features = np.eye(len(actions)) if np.ndim(actions) == 1 else np.asarray(actions, dtype=np.float64)
    return ProductArms(contexts, features)
