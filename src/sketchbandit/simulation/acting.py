"""A model for each action in the place of one policy: the contextual protocol."""

from typing import Any, NamedTuple

from sketchbandit.environment.contextual import Taken
from sketchbandit.policy import PerAction


class Sketches(NamedTuple):
    """The sketches of all actions together: rows add up, and the worst one counts."""

    size: int
    row_count: int
    budget: float


class Healths(NamedTuple):
    """What the models say of themselves, the worst of it."""

    certificate: float
    heading_for_linear_regret: bool


class ActionPolicy:
    """What a round asks of a policy, answered by the models of the actions 0, 1, ...

    The context is in the place of the arms. What is learned from is the context with the action taken.
    """

    def __init__(self, models: PerAction) -> None:
        self.models = models
        self.dim = models.dim
        self._first = models[0]
        self.ridge, self.beta = self._first.ridge, self._first.beta
        self.explore = models.explore

    def select(self, context: Any) -> int:
        """The action, which is its own index."""
        return int(self.models.select(context))

    def update(self, taken: Taken, reward: float) -> None:
        """The model of the action learns; the others do not."""
        self.models.update(taken.context, taken.action, reward)

    @property
    def nbytes(self) -> int:
        """Bytes of all models."""
        return self.models.nbytes

    @property
    def sketch(self) -> Sketches:
        """All sketches together."""
        sketches = [policy.sketch for policy in self.models.policies.values()]
        sizes, rows = [sketch.size for sketch in sketches], [sketch.row_count for sketch in sketches]
        return Sketches(sum(sizes), sum(rows), max(sketch.budget for sketch in sketches))

    def health(self) -> Healths:
        """The worst of all models."""
        found = self.models.health().values()
        return Healths(
            max(health.certificate for health in found),
            any(health.heading_for_linear_regret for health in found),
        )
