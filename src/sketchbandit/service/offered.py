"""What a decision is made among: arms with features, or actions and one context for all of them."""

import json
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from sketchbandit.service.vectors import Matrix, Vector, encode_all, nbytes


class Offered(Protocol):
    """What the desks need to know of it."""

    def __len__(self) -> int: ...

    @property
    def nonzeros(self) -> int | None:
        """Entries of all arms, where they are sparse."""

    @property
    def formed(self) -> int:
        """Numbers that are made before the policy is asked."""

    @property
    def nbytes(self) -> int:
        """What the policy is asked with takes."""

    def name(self, index: int) -> str | None:
        """What one is called, if it has a name."""

    def row(self, index: int) -> Vector:
        """What is learned from if one is chosen; it shares no memory with the others."""

    def question(self, policy: Any) -> tuple[Any, dict[str, Any]]:
        """What the verbs of a policy are asked with: an argument, and options."""

    def log(self) -> bytes:
        """All of them, for the journal."""


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

    @property
    def formed(self) -> int:
        """They are made already."""
        return 0

    @property
    def nbytes(self) -> int:
        """Of all of them."""
        return nbytes(self.matrix)

    def name(self, index: int) -> str | None:
        """The id of one, if it has one."""
        return None if self.ids is None else self.ids[index]

    def row(self, index: int) -> Vector:
        """One arm, not sharing memory with the others."""
        if isinstance(self.matrix, np.ndarray):
            return self.matrix[index].copy()
        return self.matrix[[index]]

    def question(self, policy: Any) -> tuple[Any, dict[str, Any]]:
        """What the verbs of a policy are asked with: an argument, and options."""
        del policy
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

    @property
    def formed(self) -> int:
        """The context is there."""
        return 0

    @property
    def nbytes(self) -> int:
        """Of the context."""
        return nbytes(self.context)

    def name(self, index: int) -> str:
        """One of them."""
        return self.names[index]

    def row(self, index: int) -> Vector:
        """What the model of an action learns from: the context."""
        del index
        return self.context

    def question(self, policy: Any) -> tuple[Any, dict[str, Any]]:
        """What the verbs of a policy are asked with: an argument, and options."""
        del policy
        return self.context, {"actions": self.names}

    def log(self) -> bytes:
        """Their names, for the journal."""
        return json.dumps(list(self.names)).encode()
