"""Exploration by the deviation of the rewards: their unit does not matter."""

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sketchbandit as sb
from sketchbandit.estimate import STRENGTH, RewardScale
from tests.policies import saved
from tests.scalings import RECIPES, make, raw_rounds

pytestmark = [
    pytest.mark.usefixtures("backend"),
    pytest.mark.filterwarnings("ignore::sketchbandit.SketchTooSmallWarning"),
]
DIM = 6
RULES: dict[str, Any] = {"UCB": lambda: sb.UCB("auto"), "Thompson": lambda: sb.Thompson("auto", seed=3)}
rule_of_each = pytest.mark.parametrize("rule", RULES)


def choices(name: str, rule: str, *, times: float = 1.0, plus: float = 0.0) -> tuple[list[int], Any]:
    """What is chosen in the same rounds, with rewards in another unit."""
    policy = make(name, DIM, "columns", intercept=True, explore=RULES[rule]())
    chosen = []
    for arms, rewards in raw_rounds(60, DIM):
        chosen.append(policy.select(arms))
        policy.update(arms[chosen[-1]], times * rewards[chosen[-1]] + plus)
    return chosen, policy


@rule_of_each
@pytest.mark.parametrize("name", RECIPES)
def test_the_unit_of_rewards_does_not_matter(name: str, rule: str) -> None:
    """Times a power of two nothing changes, to the bit; times 100 but for rounding."""
    chosen, policy = choices(name, rule)
    for factor in (2.0**-20, 2.0**7):
        again, other = choices(name, rule, times=factor)
        assert again == chosen
        assert other.radius == factor * policy.radius
        assert np.array_equal(other.theta, factor * policy.theta)
    again, other = choices(name, rule, times=100.0)
    assert again == chosen
    assert np.isclose(other.radius, 100.0 * policy.radius)


@rule_of_each
def test_a_constant_added_to_all_rewards_leaves_the_radius(rule: str) -> None:
    """It is their deviation that counts, not their mean."""
    policy = make("oful", DIM, explore=RULES[rule]())
    shifted = copy.deepcopy(policy)
    rewards = np.random.default_rng(0).standard_normal(50)
    for reward in rewards.tolist():
        policy.update(np.ones(DIM), reward)
        shifted.update(np.ones(DIM), reward + 1e6)
    assert np.isclose(policy.radius, STRENGTH * rewards.std(), rtol=1e-12)
    assert np.isclose(shifted.radius, policy.radius, rtol=1e-8)


@pytest.mark.parametrize(
    ("reward", "radius"), [(0.0, STRENGTH), (0.1, 0.1 * STRENGTH), (-7.0, 7.0 * STRENGTH)]
)
def test_while_all_rewards_are_equal_their_size_stands_in(reward: float, radius: float) -> None:
    """To the bit, however many; without any it is as if they were 1."""
    policy = make("oful", DIM, beta="auto")
    assert policy.radius == STRENGTH
    for _ in range(30):
        policy.update(np.ones(DIM), reward)
        assert policy.radius == radius


@rule_of_each
def test_blocks_are_single_rewards(rule: str) -> None:
    """The deviation is the same to the bit."""
    at_once, one_by_one = (make("soful", DIM, explore=RULES[rule]()) for _ in range(2))
    random = np.random.default_rng(0)
    arms, rewards = random.standard_normal((40, DIM)), random.standard_normal(40) * 9.0
    at_once.update(arms, rewards)
    for arm, reward in zip(arms, rewards.tolist(), strict=True):
        one_by_one.update(arm, reward)
    assert at_once.radius == one_by_one.radius


@rule_of_each
def test_files_go_on_and_merges_pool(rule: str, tmp_path: Path) -> None:
    """A loaded policy has the radius; a merged one that of all rewards."""
    _, policy = choices("soful", rule)
    policy.save(tmp_path / "policy.safetensors")
    loaded: Any = sb.load(tmp_path / "policy.safetensors")
    assert saved(loaded) == saved(policy)
    assert loaded.radius == policy.radius
    one, other = (make("soful", DIM, explore=RULES[rule]()) for _ in range(2))
    rewards = np.random.default_rng(1).standard_normal(60) * np.repeat([1.0, 50.0], 30)
    one.update(np.ones((30, DIM)), rewards[:30])
    other.update(np.ones((30, DIM)), rewards[30:])
    one.merge(other)
    assert np.isclose(one.radius, STRENGTH * rewards.std(), rtol=1e-12)


@rule_of_each
def test_actions_explore_by_the_rewards_of_all(rule: str) -> None:
    """A model that has seen no reward has the radius of the others."""
    models = sb.PerAction(["a", "b", "c"], lambda: make("oful", DIM, explore=RULES[rule]()))
    rewards = np.random.default_rng(0).standard_normal(20) * 30.0
    models.update(np.ones((20, DIM)), ["a", "b"] * 10, rewards)
    x = np.ones(DIM)
    bonus = models.ucb(x) - models.mean(x)
    assert np.allclose(bonus / models.width(x), STRENGTH * rewards.std(), rtol=1e-9)


@given(
    rewards=st.lists(st.floats(-1e100, 1e100, allow_subnormal=False), min_size=1, max_size=40),
    cut=st.integers(0, 40),
)
def test_the_deviation_is_that_of_the_rewards(rewards: list[float], cut: int) -> None:
    """As numpy has it, whether they came one by one or in two portions that were added."""
    whole, first, second = RewardScale(), RewardScale(), RewardScale()
    for i, reward in enumerate(rewards):
        whole.see(reward)
        (first if i < cut else second).see(reward)
    first.add(second)
    size = max(abs(np.array(rewards)).max(), 1e-200)
    for spread in (whole, first):
        deviation = np.sqrt(spread.squares / spread.count)
        assert spread.count == len(rewards)
        assert np.isclose(deviation / size, (np.array(rewards) / size).std(), atol=1e-7)
        assert np.isclose(spread.mean / size, (np.array(rewards) / size).mean(), atol=1e-12)


@pytest.mark.parametrize("bad", ["Auto", -1.0, np.nan, None, [1.0]])
def test_other_strengths_are_refused(bad: Any) -> None:
    """The word is "auto"."""
    with pytest.raises((sb.InputError, sb.InputTypeError), match="scale"):
        sb.Thompson(bad)


def test_rewards_whose_squares_overflow() -> None:
    """The radius stays finite, alone, merged and of several actions, and choices go on."""
    policy = make("oful", DIM, beta="auto")
    models = sb.PerAction(["a", "b"], lambda: make("oful", DIM, beta="auto"))
    for reward in (1e160, -1e160, 1.0):
        policy.update(np.eye(DIM)[0], reward)
        models.update(np.eye(DIM)[0], "a", reward)
        models.update(np.eye(DIM)[0], "b", -reward)
    policy.merge(copy.deepcopy(policy))
    assert np.isfinite(policy.radius)
    assert policy.select(np.eye(DIM)) in range(DIM)
    assert models.select(np.eye(DIM)[0]) in models


def test_rewards_of_retired_actions_count_and_equal_ones_leave_a_radius() -> None:
    """0.1 for each of three actions: no deviation, but a size; rewards of a retired one are rewards."""
    rule = sb.Thompson("auto", seed=0)
    models = sb.PerAction(["a", "b", "c"], lambda: sb.oful(2, explore=rule, baseline=False))
    for action in models:
        models.update([1.0, 0.0], action, 0.1)
    models.select([1.0, 0.0])
    assert models._all_offered().board.radii == pytest.approx(0.015)
    models.update([0.0, 1.0], "a", 50.0)
    before = models.choose([1.0, 1.0]) and models._all_offered().board.radii[0]
    models.retire("a")
    models.select([1.0, 1.0])
    assert models._all_offered().board.radii[0] == before > 1.0
