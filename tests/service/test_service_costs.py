"""What decisions and rewards cost is known from the settings; ``benchmarks.service_costs`` times it."""

from typing import Any

import pytest
from benchmarks.service_costs import KINDS

from sketchbandit_service.config import BanditConfig
from sketchbandit_service.costs import Shape, decide_cost, learn_cost, rescale_cost
from sketchbandit_service.settings import Limits

pytestmark = pytest.mark.filterwarnings("ignore::sketchbandit.SketchTooSmallWarning")
INLINE = 1e-3  # seconds: what the event loop does by itself


def shape_of(dim: int, **given: Any) -> Shape:
    """Of a bandit with these settings."""
    return BanditConfig(dim=dim, **given).checked(Limits()).shape


def test_small_policies_are_short_and_large_ones_are_not() -> None:
    """The three long things of a service run in threads, the default with ten arms does not."""
    default = shape_of(64)
    assert decide_cost(default, 10) < INLINE / 4
    assert learn_cost(default) < INLINE / 4
    assert rescale_cost(default) > INLINE
    large = shape_of(7000, policy="oful", explore="ucb")
    assert 5.0 < learn_cost(large) < 60.0
    assert decide_cost(large, 100_000) > 60.0
    many = shape_of(500, explore="ucb")
    assert 1.0 < decide_cost(many, 50_000, top=50_000) < 60.0
    assert decide_cost(default, 100_000, nonzeros=2_000_000) > INLINE


def test_estimates_grow_with_what_is_asked() -> None:
    """More arms, more places, more entries, more columns: never less."""
    for given in KINDS.values():
        shape = BanditConfig(**given).checked(Limits()).shape
        assert decide_cost(shape, 100) >= decide_cost(shape, 10) > 0.0
        assert decide_cost(shape, 100, top=50) >= decide_cost(shape, 100)
        assert decide_cost(shape, 100, nonzeros=9000) >= decide_cost(shape, 100, nonzeros=90)
        larger = BanditConfig(**{**given, "dim": given["dim"] * 2}).checked(Limits()).shape
        assert learn_cost(larger) >= learn_cost(shape)
        assert decide_cost(larger, 10) >= decide_cost(shape, 10)


@pytest.mark.parametrize("rule", ["ucb", "epsilon-greedy", "greedy", "thompson"])
def test_many_short_arms_and_long_rankings_are_not_short(rule: str) -> None:
    """Whatever the rule: to sort them, and to write a place of the ranking, takes time by itself."""
    shape = shape_of(2, policy="soful", parameters={"size": 2}, explore=rule)
    for top in (1, 2, 5000):
        assert decide_cost(shape, 100_000, top=top) > INLINE
    assert decide_cost(shape, 1000, top=1000) > INLINE
    assert decide_cost(shape, 10, top=10) < INLINE
