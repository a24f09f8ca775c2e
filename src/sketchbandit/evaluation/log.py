"""A log: what was offered, what was chosen, with which probability, and what it earned."""

import hashlib
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from sketchbandit.arrays import AnyArray
from sketchbandit.errors import InputError, InputTypeError
from sketchbandit.evaluation import checking
from sketchbandit.evaluation.chunk import Action, Chunk
from sketchbandit.evaluation.sources import Arms, OfferedArms, ProductArms, arms_of


class Summary(NamedTuple):
    """What a log has, in numbers."""

    decisions: int
    dim: int
    mean_reward: float
    least_probability: float
    is_deterministic: bool
    is_uniform: bool


class Log:
    """Logged decisions, read in pieces; what was logged is never all in memory, but for three columns.

    Parameters
    ----------
    arms : array, list, function or path
        What was offered: (decisions, arms, dim), also a ``numpy.memmap``; one set (arms, dim) offered in
        every decision; a list of sets, dense or sparse, that may differ in their number of arms; a function
        (start, stop) that gives the sets of those decisions; the path of an ``.npy`` file.
    context, actions
        Instead of arms: contexts (decisions, p), and the names of the actions, or their features
        (actions, q). The arm of a context and an action has the products of their features.
    chosen : array
        The index of the arm that was chosen; or its name, if ``actions`` are names.
    reward : array
        What it earned.
    probability : array
        With which it was chosen, above 0: ``choice.probability``.
    time : array, optional
        When. Rows must be in that order.

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
            raise InputError("give what was offered: arms, or context and actions")
        if context is not None and actions is None and offered is None:
            raise InputError("contexts need actions: their names, or their features (actions, q)")
        self.reward = checking.read_rewards(reward)
        self.probability = checking.read_probabilities(probability)
        names = _names_of(actions)
        self.chosen = checking.read_chosen(_indices_of(chosen, names))
        count = checking.check_lengths(
            chosen=self.chosen, reward=self.reward, probability=self.probability, time=time, context=context
        )
        self._arms: Arms = _product(context, actions) if arms is None else arms_of(arms, count)
        if self._arms.count != count:
            raise InputError(f"there are arms for {self._arms.count} decisions, and {count} decisions")
        self._contexts = None if context is None else np.asarray(context)
        self.actions = names
        self._offered: Sequence[Sequence[Action]] | None = offered
        self.left_out: dict[str, int] = {}
        """Why rows of a file were left out, and how many."""
        self.start = 0
        self.origin = _digest(self.chosen, self.reward, self.probability)
        """The same for all parts of one log, however often it is read."""
        if time is not None:
            checking.check_order(np.asarray(time))

    @classmethod
    def of_actions(cls, context: AnyArray, offered: Sequence[Sequence[Action]], **columns: Any) -> "Log":
        """A log of contexts and named actions, of which not all need be offered every time.

        ``chosen`` counts within those that were offered.
        """
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
        """The decisions start to stop, counted within this log."""
        if not 0 <= start < stop <= len(self):
            raise InputError(f"there are {len(self)} decisions, and no part {start} to {stop} of them")
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        for name in ("chosen", "reward", "probability"):
            setattr(twin, name, getattr(self, name)[start:stop])
        twin.__dict__.pop("is_uniform", None)  # that of the whole
        twin.start = self.start + start
        return twin

    def split(self, share: float = 0.5) -> "tuple[Log, Log]":
        """The first part, for learning, and the rest, for judging: by time, as the rows are."""
        if not 0.0 < share < 1.0:
            raise InputError(f"share is that of the first part, between 0 and 1, got {share!r}")
        at = min(max(1, round(share * len(self))), len(self) - 1)
        if len(self) < 2:
            raise InputError("a log of one decision has no two parts")
        return self.part(0, at), self.part(at, len(self))

    # -- reading ------------------------------------------------------------------------------------

    @property
    def dim(self) -> int:
        """Length of an arm."""
        return self._arms.dim

    @property
    def context_dim(self) -> int | None:
        """Length of a context; None where there are arms."""
        return None if self._contexts is None else int(self._contexts.shape[1])

    @property
    def is_fixed(self) -> bool:
        """Whether arm number i is the same action in every decision."""
        return self._arms.is_fixed

    @cached_property
    def _rows_at_once(self) -> int:
        return self._arms.rows_at_once()

    def chunks(self) -> Iterator[Chunk]:
        """All decisions, some at a time."""
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
        """The log in numbers; all arms are read once."""
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
        """Whether nothing was left to chance: then it tells nothing of what was not chosen."""
        return bool((self.probability >= 1.0 - 1e-9).all())

    @cached_property
    def is_uniform(self) -> bool:
        """Whether every arm had the same probability, 1/K."""
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


def _names_of(actions: Any) -> tuple[Action, ...] | None:
    """The names of actions, where they are names and no features."""
    if actions is None or np.ndim(actions) != 1:
        return None
    names = tuple(name.item() if hasattr(name, "item") else name for name in actions)
    if not all(isinstance(name, (str, int)) for name in names):
        raise InputTypeError("actions are names, or an array of their features (actions, q)")
    if len(set(names)) < len(names):
        raise InputError(f"an action is there twice: {names}")
    return names


def _indices_of(chosen: Any, names: tuple[Action, ...] | None) -> Any:
    """Indices, also where actions were named."""
    values = np.asarray(chosen)
    if names is None or values.dtype.kind in "iuf":
        return values
    places = {name: place for place, name in enumerate(names)}
    for at, name in enumerate(values.tolist()):
        if name not in places:
            raise InputError(f"decision {at}: {name!r} was chosen, and is none of the actions {names[:8]}")
    return np.array([places[name] for name in values.tolist()], dtype=np.int64)


def _product(context: Any, actions: Any) -> Arms:
    contexts = np.asarray(context)
    if contexts.ndim != 2 or contexts.dtype.kind not in "fiub":
        raise InputError(
            f"contexts are numbers (decisions, p), got {contexts.dtype} of shape {contexts.shape}"
        )
    features = np.eye(len(actions)) if np.ndim(actions) == 1 else np.asarray(actions, dtype=np.float64)
    return ProductArms(contexts, features)
