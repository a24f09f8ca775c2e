"""Arms and rewards of every kind: taken for what they mean, or refused without a trace."""

import warnings
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import sketchbandit as sb
from tests.policies import EVERY, oful, saved, train

pytestmark = [
    pytest.mark.usefixtures("backend"),
    pytest.mark.filterwarnings("ignore::sketchbandit.SketchTooSmallWarning"),
]


@pytest.mark.parametrize("name", EVERY)
def test_a_zero_arm_has_no_width_and_no_mean(name: str) -> None:
    """And learning from it changes nothing but the number of rounds."""
    policy = train(EVERY[name](12, size=4, ridge=1.0, beta=0.3), 60, 12)
    zero = np.zeros(12)
    assert policy.mean(zero) == policy.width(zero) == policy.ucb(zero) == 0.0
    theta, widths = policy.theta, policy.width(np.eye(12))
    policy.update(zero, 5.0)
    assert policy.rounds == 61
    assert np.array_equal(policy.theta, theta)
    assert np.array_equal(policy.width(np.eye(12)), widths)


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("scale", [1e-320, 1e-170, 1e-150, 1e-20, 1e20, 1e150])
def test_extreme_arms_have_finite_scores(name: str, scale: float) -> None:
    """Denormal or huge features never give NaN: scores are finite, or the arms are refused."""
    policy = EVERY[name](6, size=3, ridge=1.0, beta=0.3)
    random = np.random.default_rng(0)
    with np.errstate(under="ignore"):
        for _ in range(40):
            arms = random.standard_normal((4, 6)) * scale
            arms[0] *= 1e-3
            chosen = policy.select(arms)
            scores = policy.ucb(arms)
            assert np.isfinite(scores).all()
            assert scores[chosen] == scores.max()
            assert (policy.width(arms) >= 0.0).all()
            policy.update(arms[chosen], random.standard_normal())
        assert np.isfinite(policy.theta).all()


@pytest.mark.parametrize("name", EVERY)
def test_scores_that_overflow_are_refused(name: str) -> None:
    """theta of 1e200 times an arm of 1e150 is no score."""
    policy = EVERY[name](3, size=3, ridge=1e-60, beta=0.1)
    policy.update(np.array([1e-3, 0.0, 0.0]), 1e200)
    before = saved(policy)
    with pytest.raises(sb.InputError, match="overflow"):
        policy.select(np.array([[1e150, 1e150, 0.0]]))
    with pytest.raises(sb.InputError, match="overflow"):
        policy.update(np.array([1e100, 0.0, 0.0]), 1e208)
    assert saved(policy) == before


@pytest.mark.parametrize("name", EVERY)
def test_a_huge_theta_meets_a_long_arm(name: str) -> None:
    """x'theta overflows on the way to a theta that is finite again."""
    policy = EVERY[name](30, size=5, ridge=1.0, beta=0.1)
    policy.update(np.eye(30)[0], 1e200)
    policy.update(1e150 * np.eye(30)[0], 0.0)
    policy.update(1e140 * np.eye(30)[1], 0.0)
    assert np.isfinite(policy.theta).all()
    assert np.isfinite(policy.ucb(np.eye(30))).all()


@pytest.mark.parametrize("name", EVERY)
def test_rewards_that_add_up_to_too_much_are_refused(name: str) -> None:
    """Each is fine, their sum is not; one by one, at once, and by a merge."""
    arm = np.full(3, 0.5)

    def go_on(call: Any, *arguments: Any) -> None:
        for _ in range(30):
            call(*arguments)

    for step in (1, 30):
        policy = EVERY[name](3, size=3, ridge=1.0, beta=0.1)
        with pytest.raises(sb.InputError, match="add up to"):
            go_on(policy.update, np.tile(arm, (step, 1)), np.full(step, 1e299))
        assert policy.rounds < 30
        assert np.isfinite(policy.theta).all()
    policy = EVERY[name](3, size=3, ridge=1.0, beta=0.1)
    policy.update(arm, 5e299)
    with pytest.raises(sb.InputError, match="add up to"):
        go_on(policy.merge, policy)


BAD_ARMS = [
    (np.array([[1.0, np.nan, 0.0]]), "contains nan"),
    (np.array([[1.0, 0.0, 0.0], [0.0, -np.inf, 0.0]]), "arm 1 contains -inf|row 1 contains -inf"),
    (np.array([[1e200, 0.0, 0.0]]), "too long"),
    (np.zeros((2, 4)), "length 4, but dim is 3"),
    (np.zeros((2, 2, 3)), "3 dimensions"),
    (np.array([["a", "b", "c"]]), "real numbers"),
    (sparse.csr_array([[0.0, np.nan, 1.0]]), "contains nan"),
    (sparse.csr_array([[0.0, 1.0]]), "length 2"),
    (None, "real numbers|dimensions"),
]


@pytest.mark.parametrize("name", EVERY)
def test_bad_input_changes_nothing(name: str) -> None:
    """Each raises a clear error of ours, and the policy is bitwise what it was."""
    policy = train(EVERY[name](3, size=3, ridge=1.0, beta=0.3), 30, 3)
    good = np.eye(3)
    before = saved(policy)
    for bad, message in BAD_ARMS:
        for call in (policy.select, policy.mean, policy.width, policy.ucb, lambda a: policy.top(a, 1)):
            with pytest.raises((ValueError, TypeError), match=message) as caught:
                call(bad)
            assert isinstance(caught.value, sb.SketchBanditError)
        count = 1 if bad is None else bad.shape[0]
        with pytest.raises((ValueError, TypeError)) as caught:
            policy.update(bad, np.zeros(count) if count > 1 else 0.0)
        assert isinstance(caught.value, sb.SketchBanditError)
    nothing: list[Any] = [np.empty((0, 3)), [], sparse.csr_array((0, 3))]
    for empty in nothing:
        with pytest.raises(sb.InputError, match="empty"):
            policy.select(empty)
    for reward in (np.nan, np.inf, -np.inf):
        with pytest.raises(sb.InputError, match="finite"):
            policy.update(good[0], reward)
        with pytest.raises(sb.InputError, match="finite"):
            policy.update(good, [0.0, reward, 0.0])
    no_rewards: list[Any] = ["1", None, 1j, [1.0, 2.0], {}, 10**400, np.ma.masked]
    for no_reward in no_rewards:
        with pytest.raises((ValueError, TypeError)) as caught:
            policy.update(good[0], no_reward)
        assert isinstance(caught.value, sb.SketchBanditError)
    for rewards in (
        [1.0],
        [1.0, 2.0, 3.0, 4.0],
        [[1.0, 2.0, 3.0]],
        1.0,
        ["a", "b", "c"],
        [[1.0], [2.0, 3.0]],
    ):
        with pytest.raises((ValueError, TypeError)) as caught:
            policy.update(good, rewards)
        assert isinstance(caught.value, sb.SketchBanditError)
    masked = np.ma.masked_array([1.0, 2.0, 3.0], [False, True, False])
    pairs: list[Any] = [(good, masked), ([[1, 2, 3], [1]], [1, 1]), (good[:0], 1.0), (good, [1e308] * 3)]
    for pair in pairs:
        with pytest.raises((ValueError, TypeError)) as caught:
            policy.update(*pair)
        assert isinstance(caught.value, sb.SketchBanditError)
    for k in (0, 4, -1, 1.5, True):
        with pytest.raises((ValueError, TypeError)) as caught:
            policy.top(good, k)
        assert isinstance(caught.value, sb.SketchBanditError)
    assert saved(policy) == before


@pytest.mark.parametrize("name", EVERY)
def test_bad_settings_are_refused(name: str) -> None:
    """ridge <= 0, beta < 0 and what is no number."""
    make = EVERY[name]
    for ridge in (0.0, -1.0, np.nan, np.inf, "1", True, 10**400):
        with pytest.raises((ValueError, TypeError), match="ridge must be"):
            make(5, size=3, ridge=ridge, beta=0.1)
    for beta in (-0.1, np.nan, np.inf, "1", True):
        with pytest.raises((ValueError, TypeError), match="beta must be"):
            make(5, size=3, ridge=1.0, beta=beta)
    with pytest.raises(sb.InputError, match="dim must be at least 1"):
        make(0, size=3, ridge=1.0, beta=0.1)


def test_lists_frames_and_integers_are_arms() -> None:
    """Whatever converts to a matrix of numbers."""
    policy = sb.oful(3, ridge=1.0, beta=0.5)
    policy.update([1, 0, 0], 1)
    policy.update((0, 1, 0), np.int64(0))
    policy.update(np.array([[0, 0, 1]], dtype=np.int8), np.array([False]))
    policy.update([0, 0, 1], [0])
    expected = policy.ucb(np.eye(3))
    for arms in (
        [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
        np.eye(3, dtype=np.float32),
        np.asfortranarray(np.eye(3)),
        sparse.coo_array(np.eye(3)),
        sparse.csc_matrix(np.eye(3)),
        np.eye(6)[::2, ::2],
    ):
        assert np.array_equal(policy.ucb(arms), expected)
        assert policy.select(arms) == 0
    assert policy.ucb([1, 0, 0]) == expected[0]
    assert policy.select([1, 0, 0]) == 0


def test_no_policy_warns_of_anything_but_its_size() -> None:
    """Playing raises no numpy warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", sb.SketchTooSmallWarning)
        for make in EVERY.values():
            train(make(10, size=3, ridge=1.0, beta=0.1), 80, 10)


def test_repr_says_what_it_is() -> None:
    """Settings, rounds, certificate, bytes."""
    assert "30 rounds" in repr(train(oful(4, size=2, ridge=1.0, beta=0.1), 30, 4))
    assert "size=3" in repr(sb.cbrap(4, size=3))


def test_an_index_is_not_an_arm() -> None:
    """A likely slip, and what to do about it."""
    policy = sb.oful(3)
    with pytest.raises(sb.InputTypeError, match=r"the arm is 2, an index; give the arm itself: arms\[2\]"):
        policy.update(policy.select(np.eye(3)) + 2, 1.0)
    assert policy.rounds == 0
