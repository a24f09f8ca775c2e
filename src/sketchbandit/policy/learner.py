"""What a policy over arms and a set of models per action have in common: features, warm-up, rule, files."""

import copy
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
from scipy import sparse

from sketchbandit.arms import Arms, Offer
from sketchbandit.arrays import Arrays, Dtype, Rows, RowsLike, Scalars, Vector, taken_from, under
from sketchbandit.errors import InputError, InputTypeError, MergeKindError
from sketchbandit.estimate import Estimate, Linear
from sketchbandit.estimate.base import MODELS
from sketchbandit.explore import UCB, Explore
from sketchbandit.explore.base import RULES, check_rule
from sketchbandit.features import Features, Scaling
from sketchbandit.features.fitting import as_arrays, from_arrays, stacked
from sketchbandit.policy.chooser import Chooser, Random
from sketchbandit.policy.health import Complaints, say
from sketchbandit.precision import Saved
from sketchbandit.registry import Registry
from sketchbandit.serialization import Stored
from sketchbandit.sketch import Sketch
from sketchbandit.sketch.base import SKETCHES
from sketchbandit.sketch.checks import check_count
from sketchbandit.sketch.row_input import Name
from sketchbandit.thread_safety import both_locks, holds_the_lock


class Part(Protocol):
    """A part of a policy that can be saved."""

    def _saved(self) -> tuple[Scalars, Arrays]:
        """JSON values and arrays, without a copy."""


class Parts(NamedTuple):
    """What ``restored_parts`` found in a file."""

    sketch: Sketch
    explore: Explore
    estimate: Estimate
    learned: Saved
    """The arguments of ``estimate.restore``, to be called once the estimate is bound."""
    precision: Saved | None
    """None if the precision has to be computed again."""
    blank: Sketch | None = None
    """The sketch before it has learned anything, for a warm-up."""


def content_of(parts: Mapping[str, Part]) -> tuple[Scalars, Arrays]:
    """JSON values and arrays of all parts."""
    scalars: Scalars = {}
    arrays: Arrays = {}
    for name, part in parts.items():
        content, held = part._saved()
        kind = getattr(part, "kind", None)
        scalars[name] = content if kind is None else {"kind": kind, "content": content}
        arrays |= under(name, held)
    return scalars, arrays


def restored_parts(scalars: Scalars, arrays: Arrays, **extra: Any) -> Parts:
    """Read the parts of a policy. ``extra`` goes to the sketch."""
    saved = scalars["sketch"]
    sketch = SKETCHES.of_kind(saved["kind"]).undump(saved["content"], taken_from("sketch", arrays), **extra)
    if "system" in scalars:  # a file of 0.7: the rest is computed again from the sketch and b
        learned: Saved = {"is_sparse": False}, {"b": taken_from("system", arrays)["b"]}
        return Parts(sketch, UCB(), Linear(), learned, None)
    rule, estimate = scalars["explore"], scalars["estimate"]
    blank = None
    if "blank" in scalars:
        empty, held = scalars["blank"], taken_from("blank", arrays)
        blank = SKETCHES.of_kind(empty["kind"]).undump(empty["content"], held, **extra)
    return Parts(
        sketch,
        RULES.of_kind(rule["kind"]).undump(rule["content"], taken_from("explore", arrays)),
        MODELS.of_kind(estimate["kind"]).made_for(estimate["content"]),
        (estimate["content"], taken_from("estimate", arrays)),
        (scalars["precision"], taken_from("precision", arrays)),
        blank,
    )


class InitialState(NamedTuple):
    """The parts of a posterior before it has learned anything, to start again with. Copy them before use."""

    sketch: Sketch
    estimate: Estimate


class Kept(NamedTuple):
    """A round of the warm-up."""

    arm: Rows
    """Before scaling, shape (1, dim)."""
    reward: float
    at: int | None = None
    """The round of the clock that all models of a ``PerAction`` forget by; None if there is no such clock."""

    def later(self, rounds: int) -> "Kept":
        """The same by a clock that is so many rounds ahead."""
        return self if self.at is None else self._replace(at=max(self.at + rounds, 0))


class WarmUp:
    """What a model keeps during the warm-up: its rounds, and the state from which it learns them again."""

    def __init__(self) -> None:
        self.initial: InitialState | None = None
        """None once the scaling is fixed."""
        self.rounds: list[Kept] = []

    def keep(self, arm: Rows, reward: float, at: int | None) -> None:
        """Keep a round. The caller gives the arm away."""
        self.rounds.append(Kept(arm, reward, at))

    def data(self, dim: int) -> tuple[Rows, Vector]:
        """The arms (n, dim) and the rewards that were learned from."""
        arms, rewards = [one.arm for one in self.rounds], [one.reward for one in self.rounds]
        return stacked(arms, dim), np.array(rewards)

    @property
    def nbytes(self) -> int:
        """Bytes of the rounds. The models of a ``PerAction`` share the initial state."""
        return sum(held.nbytes for one in self.rounds for held in as_arrays(one.arm).values())

    # -- files --------------------------------------------------------------------------------------

    def dump(self, dim: int) -> tuple[Scalars, Arrays]:
        """The rounds, as a file holds them."""
        if not self.rounds:
            return {}, {}
        arrays: Arrays = {}
        is_sparse = [sparse.issparse(one.arm) for one in self.rounds]
        for kind in set(is_sparse):
            alike = [one.arm for one in self.rounds if sparse.issparse(one.arm) == kind]
            arrays |= under("kept", as_arrays(stacked(alike, dim)))
        rewards, at = [one.reward for one in self.rounds], [one.at for one in self.rounds]
        own = {"kept": rewards, "kept_at": at, "kept_dim": dim, "kept_sparse": is_sparse}
        return own, arrays

    def restore(self, scalars: Scalars, arrays: Arrays) -> None:
        """Restore the rounds that ``dump`` described."""
        if "kept" not in scalars:
            return
        held, ahead = taken_from("kept", arrays), {}
        for kind in set(scalars["kept_sparse"]):
            rows = from_arrays(held, scalars["kept_dim"]) if kind else held["rows"]
            ahead[kind] = iter([rows[[i]] for i in range(rows.shape[0])])
        rewards, kinds = scalars["kept"], scalars["kept_sparse"]
        at = scalars.get("kept_at", [None] * len(rewards))  # not in files of 0.14
        self.rounds = [Kept(next(ahead[kind]), *more) for kind, *more in zip(kinds, rewards, at, strict=True)]


POLICIES: Registry["Learner"] = Registry("policy")


ArmsLike = RowsLike | Offer
"""Arms as users have them."""


class Learner(Stored):
    """Base class of ``LinUCB`` and ``PerAction``: it reads features, chooses by a rule, and merges.

    A scaling that has to be learned is fitted in a warm-up. Each time, the rounds so far are learned again
    with the new scaling. After 200 requests it is fixed, and never changes again.
    """

    _registry = POLICIES
    _features: Features
    _chooser: Chooser
    _is_part = False  # whether it is one of the models of a ``PerAction``
    _scales_itself = True  # if False, the caller watches ``scaling_due`` and calls ``read_by``

    # -- features -----------------------------------------------------------------------------------

    @property
    def dim(self) -> int:
        """The number of features of an arm, or of a context."""
        return self._features.dim

    @property
    def dtype(self) -> Dtype:
        """The dtype in which features are read and stored. Sums are always float64."""
        return self._features.dtype

    @property
    def columns(self) -> tuple[Name, ...] | None:
        """The feature names, if features came as a DataFrame; else None.

        Columns of later DataFrames are put into this order.
        """
        return self._features.names.names

    @property
    def scaling(self) -> Scaling | None:
        """The scaling of the features; None if they are used as they are.

        It can be set during the warm-up, or before the first reward.
        """
        return self._features.shown

    @scaling.setter
    def scaling(self, scaling: Scaling) -> None:
        with self._lock:
            if not isinstance(scaling, Scaling):
                raise InputTypeError(
                    f"scaling is {scaling!r:.60}; give a Scaling, for instance the scaling of another policy"
                )
            scaling.check_final()
            self.read_by(scaling)

    @property
    def is_warming_up(self) -> bool:
        """Whether the scaling is still being learned (the warm-up)."""
        return self._features.is_warming_up

    @property
    def scaling_due(self) -> tuple[Scaling, bool] | None:
        """The scaling that the requests so far suggest, and whether it is the last; None if none is due.

        This is for callers that apply scalings themselves with ``read_by``.
        """
        features = self._features
        return (self._fitted(), features.is_last) if features.is_due else None

    @property
    def requests_seen(self) -> int:
        """The number of requests that the scaling is being learned from; 0 once it is fixed."""
        return self._features.requests_seen

    def read_by(self, scaling: Scaling, *, is_last: bool = True, seen: int | None = None) -> None:
        """Use the scaling that was due, and learn the rounds so far again with it.

        ``seen`` is the value of ``requests_seen`` when the scaling was due, if it has changed since.
        """
        features = self._features
        if self._is_part:
            raise InputError("this model belongs to a PerAction; set the scaling there: models.scaling = ...")
        if features.scaling is None:
            raise InputError('this policy has no scaling to replace; make it with scaling="auto"')
        features.check(scaling)
        if not features.is_warming_up and self.rounds:
            if scaling == features.scaling:
                return
            raise InputError(
                f"{self.rounds} rewards were learned from with the present scaling, so it cannot change; "
                "make a new policy with the new scaling"
            )
        try:
            with features.tried(scaling):
                self._check_kept()
        except InputError as error:
            raise InputError(f"the rounds so far cannot be read with that scaling: {error}") from error
        features.use(scaling, is_last=is_last, seen=seen)
        self._learn_anew()

    @contextmanager
    def _request(self, asked: object, random: Random) -> Iterator[Arms]:
        """Read a request, choose in the block, and take note of the request.

        If reading or choosing fails, the generator and the column names are as they were before.
        """
        names = self._features.names
        with self._chooser.undone_if_refused(random, names):
            read = self._read(asked)
            yield read
            names.remember(asked)
        self._saw((read.raw,))

    @abstractmethod
    def _read(self, asked: object) -> Arms:
        """What a request asks about: arms, or a context."""

    def _saw(self, requests: Iterable[Rows]) -> None:
        """Take note of requests, during the warm-up: the arms of each, before scaling."""
        if not self._features.is_warming_up:
            return
        for request in requests:
            self._features.saw(request)
        self._scale_if_due()

    def _to_be_kept(self, rows: Rows) -> Iterator[Rows]:
        """Yield a copy of each row of the warm-up. Learn from it before asking for the next."""
        for i in range(rows.shape[0]):
            row = rows[[i]].astype(np.float64)
            self._features.learned(row)
            self._scale_if_due()
            if not self._features.is_warming_up:
                return
            yield row

    def _scale_if_due(self) -> None:
        features = self._features
        if not features.is_due or not self._scales_itself or self._is_part:
            return
        is_last = features.is_last
        try:
            self.read_by(self._fitted(), is_last=is_last)
        except InputError:  # with such large numbers the new scaling would overflow: keep the present one
            assert features.scaling is not None  # noqa: S101  (for the type checker)
            features.use(features.scaling, is_last=is_last)
            self._learn_anew()

    @property
    @abstractmethod
    def rounds(self) -> int:
        """The number of rewards learned from."""

    @abstractmethod
    def _fitted(self) -> Scaling:
        """The scaling that fits the requests so far, and the rounds that were learned from."""

    @abstractmethod
    def _check_kept(self) -> None:
        """Raise if the rounds of the warm-up could not be learned again with the present scaling."""

    @abstractmethod
    def _learn_anew(self) -> None:
        """Learn the rounds of the warm-up again, with the present scaling."""

    # -- the rule -----------------------------------------------------------------------------------

    @property
    def explore(self) -> Any:  # an Explore
        """The exploration rule. It can be replaced at any time, and what was learned stays.

        The generator continues, unless the new rule has a seed.

        Examples
        --------
        >>> import sketchbandit as sb
        >>> policy = sb.oful(3)
        >>> policy.explore = sb.Thompson(0.1, seed=0)
        >>> policy.explore
        Thompson(scale=0.1, seed=0)

        """
        return self._chooser.rule

    @explore.setter
    def explore(self, rule: Explore) -> None:
        with self._lock:
            if self._is_part:
                raise InputError(
                    "this model belongs to a PerAction; set the rule there: models.explore = ..."
                )
            self._explore_by(copy_of_rule(rule))

    @abstractmethod
    def _explore_by(self, rule: Explore) -> None:
        """Use this rule from now on. The caller gives it away."""

    @property
    def random(self) -> np.random.Generator | None:
        """The generator that choices draw from; None if the rule is not random."""
        return self._chooser.random if self._chooser.rule.is_random else None

    def reseed(self, seed: int | None = None) -> None:
        """Draw from a new generator. Use this for copies, which would otherwise all choose alike."""
        made = np.random.default_rng(None if seed is None else check_count("seed", seed, at_least=0))
        if self._chooser.rule.is_random:
            self._chooser.random = made

    # -- merging ------------------------------------------------------------------------------------

    @holds_the_lock
    def merge(self, other: Self) -> None:
        """Add what another learner with the same settings has learned.

        Both must have started from nothing. ``other`` stays as it is.

        Parameters
        ----------
        other : same type as this one
            A policy, or a set of models, with the same settings.

        Examples
        --------
        >>> import sketchbandit as sb
        >>> here, there = sb.oful(2), sb.oful(2)
        >>> here.update([1.0, 0.0], 1.0)
        >>> there.update([0.0, 1.0], 1.0)
        >>> here.merge(there)
        >>> here.rounds, here.theta
        (2, array([0.5, 0.5]))

        """
        if type(other) is not type(self):
            raise MergeKindError(f"cannot merge {type(other).__name__} into {type(self).__name__}")
        if other is self:
            other = copy.deepcopy(self)
        with both_locks(self, other):
            complaints = self._absorb(other)
        if complaints:
            say(complaints)

    @abstractmethod
    def _absorb(self, other: Self) -> Complaints:
        """Do ``merge`` while both locks are held, and return the warnings to give."""


def copy_of_rule(rule: object) -> Explore:
    """A copy of a rule, checked."""
    if isinstance(rule, type) and issubclass(rule, Explore):
        raise InputTypeError(f"explore is the class {rule.__name__}; give an instance, made by calling it")
    if not isinstance(rule, Explore):
        raise InputTypeError(
            f"explore is {rule!r:.60}; give a rule, for instance sb.Thompson(0.1), or one of your "
            "own subclass of sketchbandit.Explore"
        )
    check_rule(rule)
    made = copy.deepcopy(rule)
    made.unbind()
    return made
