"""What a decision is made among: arms with features, or actions with one context for all."""

import json
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from sketchbandit_service.types import AnyPolicy, Matrix, Vector
from sketchbandit_service.vectors import encode_all, nbytes

Question = tuple[Any, dict[str, Sequence[str]]]
"""What the methods of a policy are called with: arms, or a context for a ``PerAction``; and options."""


class Offered(Protocol):
    """What the rest of the service needs to know of it."""

    def __len__(self) -> int: ...

    @property
    def nonzeros(self) -> int | None:
        """Entries of all arms, if they are sparse."""

    @property
    def formed(self) -> int:
        """Numbers that are computed before the policy is asked."""

    @property
    def nbytes(self) -> int:
        """Bytes of what the policy is asked with."""

    def name(self, index: int) -> str | None:
        """The name of one, if it has a name."""

    def row(self, index: int) -> Vector:
        """What is learned from if this one is chosen. It shares no memory with the others."""

    def question(self, policy: AnyPolicy) -> Question:
        """What to call the policy's methods with: an argument, and options."""

    def log(self) -> bytes:
        """Everything offered, for the journal."""


class ArmSet(NamedTuple):
    """The arms of one decision."""

    matrix: Matrix
    ids: Sequence[str | None] | None
    """The ids, if arms are stored."""

    def __len__(self) -> int:
        return int(self.matrix.shape[0])

    @property
    def nonzeros(self) -> int | None:
        """Entries of all arms, if they are sparse."""
        return None if isinstance(self.matrix, np.ndarray) else int(self.matrix.nnz)

    @property
    def formed(self) -> int:
        """0, because nothing has to be computed."""
        return 0

    @property
    def nbytes(self) -> int:
        """Bytes of all arms."""
        return nbytes(self.matrix)

    def name(self, index: int) -> str | None:
        """The id of an arm, if it has one."""
        return None if self.ids is None else self.ids[index]

    def row(self, index: int) -> Vector:
        """One arm. It shares no memory with the others."""
        if isinstance(self.matrix, np.ndarray):
            return self.matrix[index].copy()
        return self.matrix[[index]]

    def question(self, policy: AnyPolicy) -> Question:
        """What to call the policy's methods with: an argument, and options."""
        del policy
        return self.matrix, {}

    def log(self) -> bytes:
        """All arms, for the journal."""
        return encode_all(self.matrix)


class ActionSet(NamedTuple):
    """The actions of one decision, and its context."""

    context: Vector
    names: Sequence[str]

    def __len__(self) -> int:
        return len(self.names)

    @property
    def nonzeros(self) -> int | None:
        """Entries of the context for all actions, if it is sparse."""
        return None if isinstance(self.context, np.ndarray) else int(self.context.nnz) * len(self.names)

    @property
    def formed(self) -> int:
        """0, because nothing has to be computed."""
        return 0

    @property
    def nbytes(self) -> int:
        """Bytes of the context."""
        return nbytes(self.context)

    def name(self, index: int) -> str:
        """The name of an action."""
        return self.names[index]

    def row(self, index: int) -> Vector:
        """What the model of an action learns from: the context."""
        del index
        return self.context

    def question(self, policy: AnyPolicy) -> Question:
        """What to call the policy's methods with: an argument, and options."""
        del policy
        return self.context, {"actions": self.names}

    def log(self) -> bytes:
        """The names of the actions, for the journal."""
        return json.dumps(list(self.names)).encode()
