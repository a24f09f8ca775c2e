"""The rounds of a warm-up, which are learned again with every new scaling."""

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from sketchbandit.arrays import Arrays, Scalars, Vector, taken_from, under
from sketchbandit.estimate import Estimate
from sketchbandit.features.sample import as_arrays, from_arrays, stacked
from sketchbandit.sketch import Sketch


class InitialState(NamedTuple):
    """The parts of a posterior before it has learned anything, to start again with. Copy them before use."""

    sketch: Sketch
    estimate: Estimate


class Kept(NamedTuple):
    """A round of the warm-up."""

    arm: Any
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

    def keep(self, arm: Any, reward: float, at: int | None) -> None:
        """Keep a round. The caller gives the arm away."""
        self.rounds.append(Kept(arm, reward, at))

    def data(self, dim: int) -> tuple[Any, Vector]:
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
