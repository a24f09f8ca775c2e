"""Policies that forget, and policies that start again."""

import copy
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sketchbandit as sb
from sketchbandit.testing import assert_bracketed
from tests.policies import EVERY, Matrix, rounds, saved, train, unit

pytestmark = pytest.mark.filterwarnings("ignore::sketchbandit.SketchTooSmallWarning")

FORGETTING: dict[str, Callable[..., Any]] = {
    "oful": sb.oful,
    "soful": lambda dim, **kw: sb.soful(dim, size=4, **kw),
    "cbscfd": lambda dim, **kw: sb.cbscfd(dim, size=4, **kw),
    "dbslinucb": lambda dim, **kw: sb.dbslinucb(dim, size=3, epsilon=4.0, **kw),
    "adaptive": lambda dim, **kw: sb.adaptive(
        dim, size=3, epsilon=8.0, horizon=200, seed=0, scaling=None, intercept=False, **kw
    ),
    "float32": lambda dim, **kw: sb.soful(dim, size=4, dtype=np.float32, **kw),
    "cbrap": lambda dim, **kw: sb.cbrap(dim, size=4, **kw),
}


class Weighed:
    """Rows, rewards and weights of all rounds so far, as the policy's own count of them tells."""

    def __init__(self, policy: Any) -> None:
        self.policy, self.since = policy, 0
        self.rows: list[Matrix] = []
        self.rewards: list[float] = []
        self.weights = np.empty(0)

    def learn(self, row: Matrix, arm: Matrix, reward: float) -> None:
        """One round; a step of forgetting is by the factor of all rounds since the last one."""
        self.policy.update(arm, reward)
        self.rows.append(row)
        self.rewards.append(reward)
        self.weights = np.append(self.weights, 1.0)
        self.since += 1
        if not math.isclose(self.policy.sketch.effective_count, self.weights.sum(), rel_tol=1e-9):
            self.weights *= self.policy.forget**self.since
            self.since = 0
        assert self.policy.sketch.effective_count == pytest.approx(self.weights.sum(), rel=1e-9)
        assert self.policy.forget ** max(self.since - 1, 0) >= 0.9

    @property
    def covariance(self) -> Matrix:
        """X'WX."""
        rows = np.array(self.rows)
        return np.asarray((rows * self.weights[:, np.newaxis]).T @ rows)

    @property
    def b(self) -> Matrix:
        """X'Wr."""
        return np.asarray(np.array(self.rows).T @ (self.weights * np.array(self.rewards)))


@pytest.mark.parametrize("name", FORGETTING)
@pytest.mark.parametrize("forget", [0.7, 0.985, 40])
def test_every_round_is_the_dense_method_of_the_same_weights(name: str, forget: float, backend: str) -> None:
    """A_w = lambda I + X'WX up to the sketch's certificate, theta = A^-1 X'Wr, whatever the sketch."""
    del backend
    policy = FORGETTING[name](9, ridge=0.5, forget=forget)
    weighed = Weighed(policy)
    tolerance = 1e-4 if name == "float32" else 1e-8
    for arms, rewards in rounds(150, 9, seed=1, decay=0.8):
        chosen = policy.select(arms)
        row = arms[chosen] if name != "cbrap" else arms[chosen] @ policy._projection
        weighed.learn(row, arms[chosen], float(rewards[chosen]))
        sketch = policy.sketch
        assert_bracketed(weighed.covariance, sketch, sketch.mass, tolerance=tolerance)
        matrix = sketch.covariance() + 0.5 * np.eye(sketch.dim)
        theta = policy.estimate.theta
        assert np.allclose(theta, np.linalg.solve(matrix, weighed.b), rtol=10 * tolerance, atol=tolerance)
        x = unit(np.ones((1, sketch.dim)))[0]
        quadratic = float(x @ np.linalg.solve(matrix, x))
        assert policy.precision.quadratic(x) == pytest.approx(quadratic, rel=10 * tolerance)
    assert policy.rounds == 150
    assert policy.health().effective_rounds == policy.sketch.effective_count < 100


@pytest.mark.parametrize("name", FORGETTING)
@given(cuts=st.lists(st.integers(0, 120), max_size=5), forget=st.sampled_from([0.9, 0.99, 300]))
def test_portions_do_not_matter(name: str, cuts: list[int], forget: float) -> None:
    """Arms learned at once, in portions or one by one: the same moments of forgetting, the same policy."""
    arms = unit(np.random.default_rng(0).standard_normal((120, 9)))
    rewards = arms[:, 0] + 0.1
    single, parts = (FORGETTING[name](9, forget=forget) for _ in range(2))
    for arm, reward in zip(arms, rewards.tolist(), strict=True):
        single.update(arm, reward)
    where = sorted(cuts)
    for some, theirs in zip(np.split(arms, where), np.split(rewards, where), strict=True):
        parts.update(some, theirs)
    assert parts.sketch.effective_count == pytest.approx(single.sketch.effective_count, rel=1e-12)
    tolerance = 1e-4 if name == "float32" else 1e-9
    assert np.allclose(parts.theta, single.theta, rtol=tolerance, atol=tolerance)
    found, wanted = parts._posterior.scale, single._posterior.scale
    assert (found.mean, found.deviation) == pytest.approx((wanted.mean, wanted.deviation))


@pytest.mark.parametrize("rewards", [sb.Logistic(), sb.Poisson(), sb.Robust(scale=0.5)], ids=repr)
def test_one_pass_estimates_keep_theta(rewards: Any) -> None:
    """What is forgotten is information: A falls, theta stays, and later rewards move it further."""
    policy = sb.oful(4, rewards=rewards, forget=0.99, beta=0.1)
    still = sb.oful(4, rewards=rewards, beta=0.1)
    random = np.random.default_rng(0)
    for _ in range(200):
        arm, reward = unit(random.standard_normal((1, 4)))[0], float(random.random() < 0.5)
        policy.update(arm, reward)
        still.update(arm, reward)
    x = np.array([1.0, 0.0, 0.0, 0.0])
    assert policy.width(x) > 1.2 * still.width(x)
    assert np.isfinite(policy.theta).all()
    twin: Any = copy.deepcopy(policy)
    twin._posterior.forget_now()
    assert np.array_equal(twin.theta, policy.theta)
    assert saved(policy) == saved(restored(policy))


def restored(policy: Any) -> Any:
    """The same by way of its dump."""
    return type(policy).undump(*policy.dump())


@pytest.mark.parametrize("name", FORGETTING)
def test_saved_in_between_goes_on_to_the_bit(name: str, tmp_path: Path) -> None:
    """Also between two steps of forgetting."""
    policy = train(FORGETTING[name](9, forget=0.995), 37, 9)
    policy.save(tmp_path / "p")
    loaded: Any = sb.load(tmp_path / "p")
    assert loaded.forget == policy.forget == 0.995
    assert loaded._posterior.clock.dump() == policy._posterior.clock.dump()
    assert saved(train(loaded, 60, 9, seed=1)) == saved(train(policy, 60, 9, seed=1))


@pytest.mark.parametrize("clock", [[1.5, 0, 0, 1.0], [0.9, -5, 0, 1.0], [0.9, 0, -1, 1.0], [0.9, 0, 0, 0.0]])
def test_a_clock_that_cannot_be_is_refused(clock: list[float]) -> None:
    """A file that says so is broken: its radius would be none."""
    scalars, arrays = train(sb.oful(3, forget=0.9), 5, 3).dump()
    with pytest.raises(sb.InputError, match="must be"):
        sb.LinUCB.undump({**scalars, "clock": clock}, arrays)


def test_merged_policies_add_by_their_weights() -> None:
    """A_w and b_w of both, each as of now; the other is left as it is; other clocks are refused."""
    weighed = [Weighed(sb.oful(5, forget=0.97)) for _ in range(2)]
    for i, (arms, rewards) in enumerate(rounds(77, 5, seed=2)):
        weighed[i % 3 == 0].learn(arms[0], arms[0], float(rewards[0]))
    covariance, b = np.zeros((5, 5)), np.zeros(5)
    for one in weighed:
        now = one.policy.forget**one.since
        covariance, b = covariance + now * one.covariance, b + now * one.b
    mine, other = (one.policy for one in weighed)
    before = saved(other)
    mine.merge(other)
    assert saved(other) == before
    assert np.allclose(mine.sketch.gram(), covariance)
    assert np.allclose(mine.theta, np.linalg.solve(covariance + np.eye(5), b))
    assert mine.rounds == 77
    before = saved(mine)
    for unlike in (sb.oful(5), sb.oful(5, forget=0.98)):
        with pytest.raises(sb.MergeError, match=r"forget is 0\.97 here"):
            mine.merge(unlike)
    assert saved(mine) == before


@pytest.mark.parametrize("forget", [None, 0.9])
def test_policies_on_different_sketches_do_not_merge(forget: float | None) -> None:
    """Whichever has more settings, and whether they forget or not; nothing changes."""
    exact, few = sb.oful(5, beta=0.1, forget=forget), sb.soful(5, size=2, beta=0.1, forget=forget)
    for mine, other in ((exact, few), (few, exact)):
        before = saved(train(mine, 7, 5))
        with pytest.raises(sb.MergeKindError, match="cannot merge"):
            mine.merge(other)
        assert saved(mine) == before


@pytest.mark.parametrize("bad", [0.0, -1, np.nan, np.inf, 10**400, True, "0.9", [0.9]])
def test_what_cannot_be_meant_is_refused(bad: Any) -> None:
    """With the value seen and the remedy."""
    for make in (sb.oful, sb.cbrap, sb.adaptive):
        with pytest.raises((ValueError, TypeError), match="half-life in rounds") as caught:
            make(3, forget=bad)
        assert isinstance(caught.value, sb.SketchBanditError)


def test_a_factor_or_a_half_life() -> None:
    """Up to 1 it is a factor; 1 never forgets; above it is a half-life."""
    assert sb.oful(3).forget is sb.oful(3, forget=1.0).forget is sb.oful(3, forget=1).forget is None
    assert sb.oful(3, forget=0.99).forget == 0.99
    assert sb.oful(3, forget=2).forget == pytest.approx(math.sqrt(0.5))
    assert "forget=0.99" in repr(sb.soful(3, forget=0.99))
    assert sb.oful(3, forget=1e-320).forget == 1e-320


def test_the_shortest_memory_is_no_trouble() -> None:
    """A factor that underflows: every round starts from nothing, and numbers stay finite."""
    for make in FORGETTING.values():
        policy = train(make(6, forget=1e-310), 30, 6)
        assert np.isfinite(policy.theta).all()
        assert policy.health().effective_rounds < 1e-9


def test_a_million_rounds_leave_no_drift() -> None:
    """Rewards that change their size: theta is that of the dense method, by weights that are known."""
    random, step = np.random.default_rng(0), 211  # 0.9995^211 is the first below 0.9
    policy = sb.oful(3, forget=0.9995, ridge=0.5)
    for i in range(10):
        arms = random.standard_normal((100_000, 3))
        rewards = arms @ np.array([1.0, -1.0, float(i)]) * 10.0 ** (4 - i)
        policy.update(arms, rewards)
    steps = 1_000_000 // step - (900_000 + np.arange(100_000)) // step
    weights = 0.9995 ** (step * steps)
    matrix = (arms * weights[:, np.newaxis]).T @ arms + 0.5 * np.eye(3)
    theta = np.linalg.solve(matrix, arms.T @ (weights * rewards))
    assert np.allclose(policy.theta, theta, rtol=1e-9)
    assert policy.sketch.effective_count == pytest.approx(weights.sum(), rel=1e-8)
    assert policy.sketch.uncounted < 1e-11 * policy.sketch.mass
    assert policy.estimate.reward_mass == pytest.approx(
        float(weights @ (np.abs(rewards) * np.linalg.norm(arms, axis=1))), rel=1e-8
    )


# -- the radius ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("compensation", [0.0, 1.0])
@pytest.mark.parametrize("forget", [0.9, 0.99])
def test_the_ellipsoid_covers_under_adaptive_choice(compensation: float, forget: float) -> None:
    """|theta - theta*|_A <= radius at every round, in all runs but delta of them, with much loss."""
    dim, failures, tight = 8, 0, 0.0
    for run in range(20):
        random = np.random.default_rng(run)
        truth = unit(random.standard_normal((1, dim)))[0]
        sketch = sb.FrequentDirections(dim, size=3, compensation=compensation)
        beta = sb.Confidence(noise=0.3, theta_norm=1.0, delta=0.1)
        policy = sb.LinUCB(sketch, ridge=1.0, beta=beta, forget=forget)
        is_out = False
        for _ in range(150):
            arms = unit(random.standard_normal((4, dim)))
            arm = arms[policy.select(arms)]
            policy.update(arm, float(arm @ truth + 0.3 * random.standard_normal()))
            off = policy.theta - truth
            matrix = sketch.covariance() + np.eye(dim)
            share = math.sqrt(float(off @ matrix @ off)) / policy.radius
            is_out |= share > 1.0
            tight = max(tight, share)
        failures += is_out
        assert sketch.error_bound > 0.1
    assert failures <= 2
    assert tight > 0.2  # not so wide that the test says nothing


def test_the_radius_shares_delta_between_moments() -> None:
    """delta / ((n + 1)(n + 2)) after the n-th round; a policy that has not forgotten has the half of it."""
    beta = sb.Confidence(delta=0.1)
    assert sum(beta.after_forgetting(n).delta for n in range(100_000)) == pytest.approx(0.1, rel=1e-4)
    policy = sb.oful(3, beta=beta, forget=0.5)
    assert policy.radius == sb.oful(3, beta=sb.Confidence(delta=0.05)).radius
    for _ in range(4):
        policy.update([1.0, 0.0, 0.0], 0.0)
    assert policy.radius == policy.estimate.radius(sb.Confidence(delta=0.1 / 30))
    twin = restored(policy)
    twin.merge(policy)
    assert twin.radius > policy.radius
    assert twin._posterior.clock.careful(beta).delta == pytest.approx(0.1 / (30 * 30 * 90))


# -- worlds that change ---------------------------------------------------------------------------------


def regret(policy: Any, environment: Any, count: int) -> Matrix:
    """Of every round."""
    lost = np.empty(count)
    for i, drawn in enumerate(environment.rounds(count)):
        chosen = policy.select(drawn.arms)
        policy.update(drawn.arms[chosen], drawn.reward(chosen))
        lost[i] = drawn.means.max() - drawn.means[chosen]
    return lost


def test_a_policy_that_forgets_comes_back_after_a_switch() -> None:
    """Its regret of the last rounds is near that before the switch; that of the other is not."""
    first, then = (sb.GaussianArms(dim=10, arms=10, seed=seed, noise=0.05) for seed in (0, 1))
    world = sb.Switching(first, then, at=1500)
    lost = {forget: regret(sb.soful(10, size=8, forget=forget), world, 2500) for forget in (None, 0.99)}
    for values in lost.values():
        values[:500] = 0.0  # while they learn
    before, after = (lost[0.99][some].mean() for some in (slice(500, 1500), slice(2100, 2500)))
    assert after <= 1.5 * before + 0.01
    assert lost[None][2100:].mean() > 5.0 * after


@pytest.mark.parametrize("name", FORGETTING)
def test_health_promises_no_sublinear_regret_where_rounds_are_forgotten(name: str) -> None:
    """A memory that ends knows theta no better than its length allows; the sentence says how long it is."""
    policy = train(FORGETTING[name](9, forget=0.9), 60, 9)
    sentence = policy.health().sentence
    if name == "cbrap":
        assert "certifies nothing" in sentence
    else:
        assert "regret" not in sentence
        assert f"{policy.sketch.effective_count:.4g} rounds are remembered" in sentence
    policy._watch.drift.changed_at = policy.rounds
    assert policy.health().sentence.endswith(f"The policy forgets, so it adapts. {sentence}")


# -- start again ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", EVERY)
def test_a_policy_that_is_reset_is_a_fresh_one(name: str) -> None:
    """To the bit, and so is all that it learns from then on."""
    policy, fresh = (EVERY[name](9, size=4, ridge=0.5, beta=0.3) for _ in range(2))
    train(policy, 120, 9, seed=3)
    policy.reset()
    assert saved(policy) == saved(fresh)
    assert saved(train(policy, 80, 9)) == saved(train(fresh, 80, 9))


@pytest.mark.usefixtures("short_warm_up")
def test_reset_keeps_settings_scaling_and_columns() -> None:
    """What was learned from rewards goes, what was learned of the features stays."""
    random = np.random.default_rng(0)
    policy: Any = sb.adaptive(4, seed=0, rewards=sb.Logistic(), forget=500)
    for _ in range(60):
        arms = 5.0 + random.standard_normal((6, 4))
        policy.update(arms[policy.select(arms)], float(random.random() < 0.5))
    assert not policy.is_warming_up
    scaling, rule, state = policy.scaling, repr(policy.explore), policy.random.bit_generator.state
    policy.reset()
    assert (policy.rounds, policy.forget, policy.scaling) == (0, sb.oful(1, forget=500).forget, scaling)
    assert (repr(policy.explore), policy.random.bit_generator.state) == (rule, state)
    assert policy.mean(arms[0]) == 0.5
    policy.update(arms[0], 1.0)
    assert policy.rounds == 1


@pytest.mark.usefixtures("short_warm_up")
def test_reset_in_the_warm_up() -> None:
    """The requests seen still count for the scaling; their rewards are gone."""
    policy: Any = sb.adaptive(3, seed=0)
    arms = np.random.default_rng(0).standard_normal((10, 3))
    policy.update(arms[policy.select(arms)], 1.0)
    seen = policy.requests_seen
    policy.reset()
    assert policy.is_warming_up
    assert (policy.rounds, policy.requests_seen, policy._warm_up.rounds) == (0, seen, [])
    for _ in range(30):
        policy.update(arms[policy.select(arms)], 0.5)
    assert not policy.is_warming_up
    assert policy.rounds == 30


def test_reset_with_a_base_of_the_users() -> None:
    """The factory is asked again."""
    sketch = sb.DyadicBlockSketch(8, size=2, epsilon=1.0, base=sb.FrequentDirections)
    policy = train(sb.LinUCB(sketch), 60, 8)
    policy.reset()
    assert policy.sketch.count == 0
    assert policy.sketch._settings() == sketch._settings()
    train(policy, 60, 8)


def test_reset_keeps_the_class_of_a_sketch_of_the_users() -> None:
    """Of one that is derived from ours."""

    class Own(sb.DyadicBlockSketch):
        kind = "test-own-blocks"

    policy = train(sb.LinUCB(Own(6, size=2)), 20, 6)
    policy.reset()
    assert type(policy.sketch) is Own


def test_models_of_actions_forget_and_are_reset() -> None:
    """By one clock; one or all of them are reset, and the board knows."""
    models = sb.PerAction(["a", "b"], lambda: sb.oful(3, forget=0.9, baseline=False))
    x = np.array([1.0, 0.0, 0.0])
    for _ in range(50):
        models.update(x, "a", 1.0)
    models.update(x, "b", 1.0)
    found = models.health()
    assert found["a"].effective_rounds == pytest.approx(0.9 * 9.0, abs=0.1)
    assert found["b"].effective_rounds == pytest.approx(0.9)
    assert models.mean(x)[0] > 0.8
    models.reset("a")
    assert (models["a"].rounds, models["b"].rounds) == (0, 1)
    assert models.mean(x)[0] == 0.0
    assert models.select(x) == "b"
    with pytest.raises(sb.InputError, match="unknown action"):
        models.reset("c")
    with pytest.raises(sb.InputError, match=r"belongs to a PerAction; reset it there: models\.reset"):
        models["b"].reset()
    models.reset()
    assert models.rounds == 0
    models.update(x, "b", 1.0)
    assert models.select(x) == "b"


def test_parts_that_cannot_forget_are_refused() -> None:
    """An estimate of the user's without the method."""

    class Blind(sb.Linear):
        kind = "test-blind"
        forget = sb.Estimate.forget

    with pytest.raises(TypeError, match="Blind cannot forget"):
        sb.oful(3, rewards=Blind(), forget=0.9)
    sb.oful(3, rewards=Blind())
