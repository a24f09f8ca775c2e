"""Online classification as a contextual bandit: one sample is the context, the labels are the actions."""

import copy
from collections.abc import Iterator
from typing import Any, NamedTuple, Self

import numpy as np

from sketchbandit.environment.base import Round
from sketchbandit.environment.classification import LabelledRows, Normalise
from sketchbandit.sketch.checks import check_count

_CONTEXTS = 6  # tag of the generator: the smaller ones are those of other environments


class Taken(NamedTuple):
    """An action, and the context in which it was taken."""

    context: Any
    action: int

    def copy(self) -> "Taken":
        """The same, of its own."""
        return Taken(self.context.copy(), self.action)


class ContextRound(Round):
    """A round whose ``arms`` are one context, (dim,) or CSR (1, dim); ``means`` are those of the actions."""

    __slots__ = ()

    def arm(self, chosen: int) -> Taken:
        """What is learned from: the context, and the action taken."""
        return Taken(self.arms, chosen)


class ContextualClassification(LabelledRows):
    """The usual contextual protocol: a sample comes, the policy names its label, and the right one pays 1.

    The features do not tell actions apart, so that a model for each action is needed (``PerAction``). The
    regret of a round is 1 for a wrong label and 0 for the right one: in all it counts the wrong answers.
    Samples are drawn with replacement, so that a frequent label comes more often.

    Parameters
    ----------
    features, labels, normalise
        As for ``Classification``.
    seed : int
        What the draws depend on.

    Examples
    --------
    >>> environment = ContextualClassification(np.eye(4), [0, 0, 1, 1])
    >>> (first,) = environment.rounds(1)
    >>> first.arms.shape, environment.actions, sorted(first.regret(action) for action in (0, 1))
    ((4,), 2, [0.0, 1.0])

    """

    def __init__(
        self,
        features: Any,
        labels: Any,
        *,
        seed: int = 0,
        name: str = "data",
        normalise: Normalise = "rows",
    ) -> None:
        super().__init__(features, labels, name=name, normalise=normalise)
        self.seed = check_count("seed", seed, at_least=0)
        self.actions: int = self.label_count

    def reseeded(self, seed: int) -> Self:
        """The same data with another seed; the features are shared, not copied."""
        other = copy.copy(self)
        other.seed = check_count("seed", seed, at_least=0)
        return other

    def rounds(self, count: int) -> Iterator[Round]:
        """One sample a round; its label is the action that pays."""
        random = np.random.default_rng([self.seed, _CONTEXTS])
        rows = np.concatenate(self._members)
        labels = np.repeat(np.arange(self.actions), [len(members) for members in self._members])
        for _ in range(count):
            place = int(random.integers(len(rows)))
            drawn = self._rows(rows[[place]])
            context = drawn[0] if isinstance(drawn, np.ndarray) else drawn
            yield ContextRound(context, (np.arange(self.actions) == labels[place]).astype(np.float64), 0.0)
