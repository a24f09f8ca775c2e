"""Rounds that several runs see, drawn once: to draw arms takes longer than most policies need for them."""

from collections.abc import Iterator
from functools import lru_cache

from sketchbandit.environment import Environment, Round
from sketchbandit.simulation import environments
from sketchbandit.simulation.specs import Spec

MOST_BYTES = 2 << 30
"""Of the arms kept; longer streams are drawn anew each time."""


@lru_cache(maxsize=1)
def stream(environment: Spec, seed: int) -> "CachedRounds":
    """The environment of that seed; the same object as long as nobody asks for another one."""
    return CachedRounds(environments.build(environment, seed))


class CachedRounds(Environment):
    """An environment whose rounds are kept after they were drawn. Everybody gets arms of their own."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self.dim, self.name, self.actions = environment.dim, environment.name, environment.actions
        self._kept: list[Round] = []

    def rounds(self, count: int) -> Iterator[Round]:
        """Those of the environment."""
        if count > len(self._kept):
            self._kept = []
            (first,) = self._environment.rounds(1)
            if count * _bytes(first) > MOST_BYTES:
                yield from self._environment.rounds(count)
                return
            self._kept = list(self._environment.rounds(count))
        for drawn in self._kept[:count]:
            yield drawn._replace(arms=drawn.arms.copy())


def _bytes(drawn: Round) -> int:
    arms = drawn.arms
    return int(arms.nbytes if hasattr(arms, "nbytes") else arms.data.nbytes + arms.indices.nbytes)
