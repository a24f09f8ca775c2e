"""What a decision is made among: arms with features, or actions and one context for all of them."""

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from sketchbandit.explore import ActionChoice, Choice
from sketchbandit.service.vectors import Matrix, Vector, encode_all


class ArmSet(NamedTuple):
    """The arms of one decision."""

    matrix: Matrix
    ids: Sequence[str | None] | None
    """Where they were stored under names."""

    def __len__(self) -> int:
        return int(self.matrix.shape[0])

    def name(self, index: int) -> str | None:
        """The id of one, if it has one."""
        return None if self.ids is None else self.ids[index]

    def row(self, index: int) -> Vector:
        """One arm, not sharing memory with the others."""
        if isinstance(self.matrix, np.ndarray):
            return self.matrix[index].copy()
        return self.matrix[[index]]

    def question(self, some: Sequence[int] | None = None) -> tuple[Any, dict[str, Any]]:
        """What the verbs of a policy are asked with, for some arms or all: an argument, and options."""
        return (self.matrix if some is None else self.matrix[list(some)]), {}

    def index(self, chosen: Choice | int) -> int:  # type: ignore[override]  # tuples have one of that name
        """Which arm a policy has chosen."""
        return chosen.index if isinstance(chosen, Choice) else int(chosen)

    def log(self) -> bytes:
        """All of them, for the journal."""
        return encode_all(self.matrix)


class ActionSet(NamedTuple):
    """The actions of one decision, and its context."""

    context: Vector
    names: Sequence[str]

    def __len__(self) -> int:
        return len(self.names)

    def name(self, index: int) -> str:
        """One of them."""
        return self.names[index]

    def row(self, index: int) -> Vector:
        """What the model of an action learns from: the context."""
        del index
        return self.context

    def question(self, some: Sequence[int] | None = None) -> tuple[Any, dict[str, Any]]:
        """What the verbs of a policy are asked with, for some of the actions or all."""
        names = self.names if some is None else [self.names[index] for index in some]
        return self.context, {"actions": names}

    def index(self, chosen: ActionChoice | str) -> int:  # type: ignore[override]
        """Which action a policy has chosen."""
        return self.names.index(chosen.action if isinstance(chosen, ActionChoice) else chosen)

    def log(self) -> bytes:
        """Their names, for the journal."""
        return json.dumps(list(self.names)).encode()


Offered = ArmSet | ActionSet
