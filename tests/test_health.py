"""health() depends on what was learned, not on the portions in which it came."""

import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sketchbandit as sb
from tests.policies import CERTIFIED, Matrix, unit


def flat(count: int, dim: int, *, seed: int = 0) -> Matrix:
    """Unit arms in all directions alike."""
    return unit(np.random.default_rng(seed).standard_normal((count, dim)))


def decaying(count: int, dim: int, decay: float) -> Matrix:
    """Unit arms whose coordinates fade."""
    return unit(np.random.default_rng(0).standard_normal((count, dim)) * decay ** np.arange(dim))


def learned(policy: sb.LinUCB, arms: Matrix, cuts: list[int]) -> sb.LinUCB:
    """The policy after these arms, in portions."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sb.SketchTooSmallWarning)
        for some in np.split(arms, sorted(min(cut, len(arms)) for cut in cuts)):
            policy.update(some, some[:, 0])
    return policy


def test_a_log_learned_at_once_is_judged_like_single_rounds() -> None:
    """A warm start from a log: 0.6 called it bearable, and row by row heading for linear regret."""
    arms = flat(4000, 200)
    policy = sb.soful(200, size=20)
    with pytest.warns(sb.SketchTooSmallWarning, match="too small") as caught:
        policy.update(arms, arms[:, 0])
    assert [warning.filename for warning in caught] == [__file__]
    single = sb.soful(200, size=20)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sb.SketchTooSmallWarning)
        for arm in arms:
            single.update(arm, float(arm[0]))
    assert policy.health() == single.health()
    assert policy.health().heading_for_linear_regret


@pytest.mark.parametrize("name", CERTIFIED)
@given(cuts=st.lists(st.integers(0, 300), max_size=6), seed=st.integers(0, 99))
def test_the_verdict_does_not_depend_on_portions(name: str, cuts: list[int], seed: int) -> None:
    """The same arms in any portions: the same certificate, growth, verdict and sentence."""
    arms = flat(300, 24, seed=seed)
    whole, parts = (
        learned(CERTIFIED[name](24, size=4, ridge=1.0, beta=0.1), arms, some) for some in ([], cuts)
    )
    assert repr(whole.health()) == repr(parts.health())  # growth may be nan
    assert whole._watch.health.marks == parts._watch.health.marks


def test_slow_linear_growth_is_called_linear() -> None:
    """With compensation the bound is linear however slowly e grows in proportion to t; nobody is warned."""
    arms = decaying(6000, 100, 0.95)
    policy = sb.cbscfd(100, size=40, ridge=0.1)
    policy.update(arms, arms[:, 0])  # a warning would be an error
    health = policy.health()
    rate = health.certificate / (policy.sketch.mass / 40)
    assert rate < 0.25, "not the case this test is about"
    assert health.growth > 0.9
    assert health.heading_for_linear_regret
    assert "The regret bound is linear, but with a small factor" in health.sentence


def test_what_the_ridge_outweighs_is_bearable() -> None:
    """The same stream with a ridge above the error: the bound is not linear yet."""
    arms = decaying(6000, 100, 0.95)
    policy = sb.cbscfd(100, size=40, ridge=100.0)
    policy.update(arms, arms[:, 0])
    assert not policy.health().heading_for_linear_regret
    assert "can bear" in policy.health().sentence


@pytest.mark.parametrize("make", [sb.soful, sb.cbscfd])
def test_shards_that_are_merged_are_judged_together(make: Any) -> None:
    """Their marks add, as their certificates do; the warning names the line that merged."""
    arms = flat(900, 40)
    shards = [learned(make(40, size=8, ridge=5.0), some, []) for some in np.split(arms, 3)]
    for shard in shards:
        shard._watch.health.has_warned = False
    added = [
        [a + b for a, b in zip(*pair, strict=True)]
        for pair in zip(*(s._watch.health.marks for s in shards[:2]), strict=True)
    ]
    with pytest.warns(sb.SketchTooSmallWarning) as caught:
        shards[0].merge(shards[1])
    assert [list(mark) for mark in shards[0]._watch.health.marks] == added
    assert [warning.filename for warning in caught] == [__file__]
    shards[0].merge(shards[2])
    assert shards[0].health().growth == pytest.approx(shards[1].health().growth, rel=0.1)
    assert shards[0].health().heading_for_linear_regret


def test_old_marks_do_not_stop_a_batch() -> None:
    """Marks of a file of 0.6, which were set only when something was lost."""
    policy = sb.soful(40, size=8)
    learned(policy, flat(100, 40), [])
    policy._watch.health._set(policy._watch.health.marks[0], policy._watch.health.marks[0])
    learned(policy, flat(100, 40, seed=1), [])
    assert policy.rounds == 200
    assert policy._watch.health.next_mark > 200


@pytest.mark.parametrize("rule", [sb.UCB(), sb.Thompson(), sb.InverseGap(), sb.Greedy()])
def test_the_sentence_promises_no_regret_that_no_theorem_covers(rule: sb.Explore) -> None:
    """The error bound holds for every rule; the regret bound is said to be that of UCB."""
    exact, sketched = sb.oful(20, explore=rule), sb.adaptive(300, explore=rule)
    assert exact.health().sentence == "The sketch is exact: it loses nothing, so it adds no regret."
    assert sketched.health().sentence == (
        "The spectral error is 0 so far and never exceeds 1.25: the regret bound of UCB stays sublinear."
    )
