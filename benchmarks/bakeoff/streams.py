"""The data sets, their targets and seeds, and the conditions that they are played under."""

from functools import lru_cache
from typing import Any, Literal, NamedTuple

import sketchbandit as sb

SETS = ("digits", "mnist", "cnae-9", "mfeat", "spam", "farm-ads")
Normalise = Literal["rows"] | None


class Condition(NamedTuple):
    """How rewards come."""

    name: str
    delay: int = 0
    times: float = 1.0
    """What rewards are multiplied by; regret is divided by it again."""
    plus: float = 0.0
    """What is then added to every reward; regret does not change."""

    def rewards(self, drawn: Any) -> Any:
        """The rewards of all arms of a round, as the players see them."""
        return self.times * (drawn.means + drawn.noise) + self.plus


CONDITIONS = {
    one.name: one
    for one in (
        Condition("plain"),
        Condition("late", delay=100),
        Condition("times 100", times=100.0),
        Condition("plus 10", plus=10.0),
    )
}


class Stream(NamedTuple):
    """One permutation: a data set, the label to be found, a seed."""

    data: str
    target: int
    seed: int

    @property
    def environment_seed(self) -> int:
        """What the draws depend on: another one for each target. Below 100 for ten seeds."""
        return 10 * self.seed + self.target

    @property
    def player_seed(self) -> int:
        """What the chance of a player depends on: never that of the draws."""
        return 1_000_000 + self.environment_seed

    def environment(self, normalise: Normalise) -> sb.Classification:
        """Its rounds, on features as stored or on unit rows."""
        return classification(self.data, normalise).reseeded(self.environment_seed, self.target)


def streams(data: str, seeds: int) -> list[Stream]:
    """Every target with every seed: all targets with the first seed come first."""
    targets = range(data_set(data).classes)
    return [Stream(data, target, seed) for seed in range(seeds) for target in targets]


@lru_cache(maxsize=2)
def data_set(name: str) -> Any:
    """The data set, read once."""
    return sb.data.load(name)


@lru_cache(maxsize=4)
def classification(name: str, normalise: Normalise) -> sb.Classification:
    """Its environment; every stream shares the features."""
    data = data_set(name)
    return sb.Classification(data.features, data.labels, name=name, normalise=normalise)
