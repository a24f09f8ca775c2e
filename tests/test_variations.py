"""Clicks, outliers, and a world that changes: each keeps the arms of the environment that it varies."""

import itertools
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit, logit

import sketchbandit as sb
from sketchbandit.simulation import environments
from sketchbandit.simulation.specs import parse

GAUSSIAN = sb.GaussianArms(dim=6, arms=4, noise=0.0, seed=3)


def same_arms(one: sb.Environment, other: sb.Environment, count: int = 12) -> bool:
    """Whether both offer the same arms, round by round; and again from the beginning."""
    pairs = zip(one.rounds(count), other.rounds(count), one.rounds(count + 5), strict=False)
    return all(np.array_equal(a.arms, b.arms) and np.array_equal(a.arms, c.arms) for a, b, c in pairs)


def test_clicks_have_the_chance_that_is_their_mean() -> None:
    """Log-odds are those of the base rate and the lift times the old mean; rewards are drawn by them."""
    clicks = sb.Clicks(GAUSSIAN, base_rate=0.2, lift=2.0, seed=1)
    assert same_arms(clicks, GAUSSIAN)
    drawn = [*clicks.rounds(4000)]
    before = [*GAUSSIAN.rounds(4000)]
    for one, other in zip(drawn[:20], before, strict=False):
        np.testing.assert_allclose(one.means, expit(logit(0.2) + 2.0 * other.means))
        assert one.regret(0) == one.means.max() - one.means[0]
    rewards = np.array([one.reward(0) for one in drawn])
    means = np.array([one.means[0] for one in drawn])
    assert set(rewards) == {0.0, 1.0}
    deviation = np.sqrt((means * (1.0 - means)).sum())
    assert abs((rewards - means).sum()) < 4.0 * deviation
    assert [one.reward(1) for one in clicks.rounds(50)] == [one.reward(1) for one in drawn[:50]]


def test_tails_are_heavy() -> None:
    """Student's t in place of the noise; outliers on top of it, as many as were asked for."""
    wild = sb.HeavyTails(GAUSSIAN, degrees=2.5, scale=0.5, seed=2)
    assert same_arms(wild, GAUSSIAN)
    noise = np.array([one.noise for one in wild.rounds(4000)]) / 0.5
    assert stats.kstest(noise, stats.t(2.5).cdf).pvalue > 0.001
    noisy = sb.GaussianArms(dim=6, arms=4, noise=0.1, seed=3)
    soiled = sb.HeavyTails(noisy, outliers=0.1, scale=50.0, seed=2)
    pairs = zip(soiled.rounds(4000), noisy.rounds(4000), strict=True)
    added = np.array([one.noise - other.noise for one, other in pairs])
    assert set(np.round(np.abs(added), 9)) == {0.0, 50.0}
    assert abs((added != 0.0).mean() - 0.1) < 0.02
    assert abs(added.sum()) < 50.0 * 4.0 * np.sqrt(400.0)


def test_a_switch_keeps_the_arms() -> None:
    """Up to the round the first, then the other as if it had been there all the time."""
    then = GAUSSIAN.with_theta_of(99)
    changing = sb.Switching(GAUSSIAN, then, at=5)
    assert same_arms(changing, GAUSSIAN)
    for number, one in enumerate(changing.rounds(12)):
        theta = GAUSSIAN.theta if number < 5 else then.theta
        np.testing.assert_allclose(one.means, one.arms @ theta)
    assert len([*changing.rounds(3)]) == 3
    assert abs(GAUSSIAN.theta @ then.theta) < 1.0


def test_theta_turns() -> None:
    """In a plane, at an even pace, with its length."""
    turning = sb.Rotating(GAUSSIAN, turn=8)
    assert same_arms(turning, GAUSSIAN)
    thetas = np.array([turning.theta(number) for number in range(9)])
    np.testing.assert_allclose(np.linalg.norm(thetas, axis=1), 1.0)
    np.testing.assert_allclose(thetas[0], GAUSSIAN.theta)
    np.testing.assert_allclose(thetas[8], thetas[0], atol=1e-12)
    for one, other in itertools.pairwise(thetas):
        assert one @ other == pytest.approx(np.cos(np.pi / 4))
    assert np.linalg.matrix_rank(thetas, tol=1e-9) == 2
    for number, one in enumerate(turning.rounds(5)):
        np.testing.assert_allclose(one.means, one.arms @ turning.theta(number))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: sb.Clicks(GAUSSIAN, base_rate=0.0), "base_rate"),
        (lambda: sb.Clicks(GAUSSIAN, base_rate=1.0), "below 1"),
        (lambda: sb.Clicks(GAUSSIAN, lift=-1.0), "lift"),
        (lambda: sb.HeavyTails(GAUSSIAN), "either"),
        (lambda: sb.HeavyTails(GAUSSIAN, degrees=2.0, outliers=0.1), "either"),
        (lambda: sb.HeavyTails(GAUSSIAN, degrees=1.0), "degrees"),
        (lambda: sb.HeavyTails(GAUSSIAN, outliers=1.5), "at most 1"),
        (lambda: sb.Switching(GAUSSIAN, sb.GaussianArms(dim=5, arms=4), at=3), "both need the same dim"),
        (lambda: sb.Switching(GAUSSIAN, GAUSSIAN, at=0), "at"),
        (lambda: sb.Rotating(GAUSSIAN, turn=1), "turn"),
        (lambda: sb.Rotating(sb.GaussianArms(dim=1, arms=4), turn=9), "dim must be at least 2"),
    ],
)
def test_what_makes_no_sense_is_refused(make: Any, message: str) -> None:
    """With what is wrong."""
    with pytest.raises(sb.InputError, match=message):
        make()


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("gaussian:dim=6,arms=4,clicks=0.02,lift=5", sb.Clicks),
        ("gaussian:dim=6,arms=4,degrees=1.5", sb.HeavyTails),
        ("classification:data=digits,outliers=0.1,scale=5", sb.HeavyTails),
        ("classification:data=digits,switch=3", sb.Switching),
        ("gaussian:dim=6,arms=4,switch=3", sb.Switching),
        ("gaussian:dim=6,arms=4,turn=100", sb.Rotating),
    ],
)
def test_experiments_name_them(text: str, kind: type) -> None:
    """As settings of the environment that they vary; the arms are its own."""
    asked = parse(text)
    varied = environments.build(asked, seed=4)
    assert type(varied) is kind
    plain = environments.build(
        asked.without("clicks", "lift", "degrees", "outliers", "scale", "switch", "turn"), 4
    )
    assert same_arms(varied, plain)


def test_after_a_switch_another_label_pays() -> None:
    """The arms are the same, and the target is the next one."""
    before, after = [*environments.build(parse("classification:data=digits,switch=3"), seed=9).rounds(6)][2:4]
    plain = environments.build(parse("classification:data=digits"), seed=9)
    following = environments.build(parse("classification:data=digits,target=0"), seed=9)
    np.testing.assert_array_equal(before.means, [*plain.rounds(6)][2].means)
    np.testing.assert_array_equal(after.means, [*following.rounds(6)][3].means)


def test_only_gaussian_arms_turn() -> None:
    """Others have no theta*."""
    with pytest.raises(sb.InputError, match="switch"):
        environments.build(parse("classification:data=digits,turn=10"), seed=0)
