"""What a decision is made among: arms with features, or actions and one context for all of them."""

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from sketchbandit.service.vectors import Matrix, Vector, encode_all


class ArmSet(NamedTuple):
    """The arms of one decision."""

    matrix: Matrix
    ids: Sequence[str | None] | None
    """Where they were stored under names."""

    def __len__(self) -> int:
        return int(self.matrix.shape[0])

    @property
    def nonzeros(self) -> int | None:
        """Entries of all arms, where they are sparse."""
        return None if isinstance(self.matrix, np.ndarray) else int(self.matrix.nnz)

    def name(self, index: int) -> str | None:
        """The id of one, if it has one."""
        return None if self.ids is None else self.ids[index]

    def row(self, index: int) -> Vector:
        """One arm, not sharing memory with the others."""
        if isinstance(self.matrix, np.ndarray):
            return self.matrix[index].copy()
        return self.matrix[[index]]

    def question(self) -> tuple[Any, dict[str, Any]]:
        """What the verbs of a policy are asked with: an argument, and options."""
        return self.matrix, {}

    def log(self) -> bytes:
        """All of them, for the journal."""
        return encode_all(self.matrix)


class ActionSet(NamedTuple):
    """The actions of one decision, and its context."""

    context: Vector
    names: Sequence[str]

    def __len__(self) -> int:
        return len(self.names)

    @property
    def nonzeros(self) -> int | None:
        """Entries of the context for all actions, where it is sparse."""
        return None if isinstance(self.context, np.ndarray) else int(self.context.nnz) * len(self.names)

    def name(self, index: int) -> str:
        """One of them."""
        return self.names[index]

    def row(self, index: int) -> Vector:
        """What the model of an action learns from: the context."""
        del index
        return self.context

    def question(self) -> tuple[Any, dict[str, Any]]:
        """What the verbs of a policy are asked with: an argument, and options."""
        return self.context, {"actions": self.names}

    def log(self) -> bytes:
        """Their names, for the journal."""
        return json.dumps(list(self.names)).encode()


Offered = ArmSet | ActionSet
