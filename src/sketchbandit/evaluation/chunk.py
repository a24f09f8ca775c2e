"""Some decisions of a log, and values computed from them."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from sketchbandit.arrays import AnyArray, Vector
from sketchbandit.evaluation.sources import Sets

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
