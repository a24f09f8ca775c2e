"""Models of the rewards beside the linear one: against dense oracles, with every way to explore."""

import copy
import math
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import sketchbandit as sb
from sketchbandit.estimate.one_pass import implicit_margin
from tests.one_pass import MODELS, SKETCHES, Clicks, Oracle, arms_of, trained
from tests.policies import saved

pytestmark = pytest.mark.filterwarnings("ignore::sketchbandit.SketchTooSmallWarning")

ESTIMATES: dict[str, Callable[[], Any]] = {
    "logistic": sb.Logistic,
    "logistic-within": lambda: sb.Logistic(theta_norm=0.7),
    "poisson": sb.Poisson,
    "robust": lambda: sb.Robust(moment=1.5, scale=0.3),
}


# -- the step ------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("theta_norm", [None, 0.6])
@pytest.mark.parametrize("name", SKETCHES)
@pytest.mark.parametrize("model", MODELS)
def test_theta_is_that_of_the_dense_step(model: str, name: str, theta_norm: float | None) -> None:
    """Through rows, a matrix, shrinks and compensations; margins, means and widths follow from it."""
    dim, ridge, link = 9, 0.5, MODELS[model]
    policy = sb.LinUCB(SKETCHES[name](dim), ridge=ridge, rewards=link.made(theta_norm=theta_norm))
    oracle = Oracle(SKETCHES[name](dim), ridge)
    step = 1.0 if theta_norm is None else 1.0 + theta_norm
    random = np.random.default_rng(3)
    theta = arms_of(1, dim, random)[0]
    for _ in range(60):
        arms = arms_of(5, dim, random)
        x = arms[policy.select(arms)]
        reward = link.draw(float(x @ theta), random)
        policy.update(x, reward)
        oracle.generalized(link, x, reward, step=step, most=math.inf if theta_norm is None else theta_norm)
        assert np.allclose(policy.theta, oracle.theta, rtol=1e-7, atol=1e-9)
        assert np.allclose(policy.width(arms), oracle.width(arms), rtol=1e-7)
        assert np.allclose(policy.margin(arms), arms @ oracle.theta, rtol=1e-7, atol=1e-9)
        assert np.allclose(policy.mean(arms), link.mean(arms @ oracle.theta), rtol=1e-7)
    assert (policy.sketch.error_bound > 0.0) == (name != "exact")


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("name", SKETCHES)
def test_robust_is_the_dense_step(name: str) -> None:
    """With noise that is clipped now and then."""
    settings = sb.Robust(moment=1.5, scale=0.3, threshold=0.5, caution=0.8)
    policy = sb.LinUCB(SKETCHES[name](9), ridge=0.5, rewards=settings)
    oracle = Oracle(SKETCHES[name](9), 0.5)
    random = np.random.default_rng(4)
    for count in range(1, 61):
        x = arms_of(1, 9, random)[0]
        reward = float(x[0] + 0.3 * random.standard_t(1.5))
        policy.update(x, reward)
        oracle.robust(settings, x, reward, count)
        assert np.allclose(policy.theta, oracle.theta, rtol=1e-7, atol=1e-9)
        assert np.allclose(policy.width(x), oracle.width(x[np.newaxis])[0], rtol=1e-7)


def test_robust_without_a_threshold_is_linear() -> None:
    """To rounding, on an exact sketch; and one outlier moves it no further than the threshold says."""
    arms = arms_of(50, 6, np.random.default_rng(0))
    rewards = arms[:, 0] + np.random.default_rng(1).standard_normal(50)
    linear = sb.oful(6)
    robust = sb.oful(6, rewards=sb.Robust(threshold=1e12, caution=0.0))
    for policy in (linear, robust):
        policy.update(arms, rewards)
    assert np.allclose(linear.theta, robust.theta, rtol=1e-9)
    assert np.allclose(linear.width(arms), robust.width(arms), rtol=1e-9)
    hit = {}
    for outlier in (1e3, 1e9):
        policy = sb.oful(6, rewards=sb.Robust())
        policy.update(arms, rewards)
        before = policy.theta
        policy.update(arms[0], outlier)
        hit[outlier] = policy.theta - before
    assert np.array_equal(hit[1e3], hit[1e9])


def exp_of(z: float) -> float:
    """exp, infinite where it overflows."""
    return math.exp(z) if z < 700.0 else math.inf


@given(
    margin=st.sampled_from([-1000.0, -40.0, -1.0, 0.0, 0.3, 5.0, 29.0, 1000.0]),
    reach=st.floats(1e-12, 1e6) | st.sampled_from([1e30, 1e150]),
    reward=st.sampled_from([0.0, 0.2, 1.0]),
    count=st.sampled_from([0.0, 3.0, 1e9, 1e200]),
)
def test_the_implicit_step_solves_its_equation(
    margin: float, reach: float, reward: float, count: float
) -> None:
    """z = margin + reach·(reward - mu(z)), at margins where exp overflows too."""
    clicks: Any = sb.Logistic()
    pulls: list[tuple[Any, Any]] = [
        (clicks, lambda z: reward / (1.0 + exp_of(z)) - (1.0 - reward) / (1.0 + exp_of(-z))),
        (sb.Poisson(), lambda z: count - float(sb.Poisson().expected(np.array([z]))[0])),
    ]
    for estimate, pull in pulls:
        given_reward = reward if estimate is clicks else count
        own = partial(estimate.pull, given_reward)
        z = implicit_margin(own, margin=margin, reach=reach)

        def off(z: float, pull: Any = pull) -> float:
            return float((z - margin) - reach * pull(z))

        near = 1e-12 * (1.0 + abs(z) + abs(margin))
        assert off(z - near) <= 0.0 <= off(z + near)


@pytest.mark.parametrize("name", ESTIMATES)
def test_margins_of_a_thousand(name: str) -> None:
    """Nothing overflows, probabilities stay in [0, 1], and learning goes on."""
    policy = sb.LinUCB(sb.ExactSketch(3), ridge=1e-3, rewards=ESTIMATES[name]())
    for length in (1.0, 1e3, 1e6, 1e3):
        for reward in (0.0, 1.0, 1.0):
            policy.update(np.array([length, 0.0, 1.0]), reward)
    theta = policy.theta
    policy.estimate._theta = theta + 1.0
    arms = np.array([[1e3, 0.0, 0.0], [-1e3, 0.0, 0.0], [0.0, -1000.0, 0.0], [0.0, 1000.0, 0.0]])
    for arm in arms:
        policy.update(arm, 1.0)
        policy.update(arm, 0.0)
    means = policy.mean(arms)
    assert np.isfinite(policy.theta).all()
    assert np.isfinite(means).all()
    if name.startswith("logistic"):
        assert ((means >= 0.0) & (means <= 1.0)).all()
    assert np.isfinite(policy.ucb(arms)).all()


def test_an_arm_without_information_leaves_the_sketch_alone() -> None:
    """A click that was certain weighs nothing; it counts as a round all the same."""
    for dtype, margin in ((np.float64, 1000.0), (np.float32, 1000.0), (np.float32, 90.0)):
        policy = sb.LinUCB(sb.FrequentDirections(2, size=2, dtype=dtype), rewards=sb.Logistic())
        policy.estimate._thetas = np.array([[margin, 0.0]])
        policy.update(np.array([1.0, 0.0], dtype=dtype), 1.0)
        assert (policy.rounds, policy.sketch.count, policy.sketch.mass) == (1, 1, 0.0)
        assert policy.width([1.0, 0.0]) == 1.0


# -- ways to feed it -----------------------------------------------------------------------------------


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("sketch", ["exact", "fd", "adaptive"])
@pytest.mark.parametrize("name", ESTIMATES)
def test_many_are_one_by_one(name: str, sketch: str) -> None:
    """Whatever the portions, to rounding; whether somebody chose and asked in between, to the bit."""
    random = np.random.default_rng(2)
    arms, rewards = arms_of(80, 9, random), (random.random(80) < 0.5).astype(float)
    single, together, asked = (sb.LinUCB(SKETCHES[sketch](9), rewards=ESTIMATES[name]()) for _ in range(3))
    for arm, reward in zip(arms, rewards.tolist(), strict=True):
        single.update(arm, reward)
        asked.select(arm[np.newaxis])
        asked.update(arm, reward)
        asked.choose(arms[:3])
    together.update(arms[:50], rewards[:50])
    together.update(arms[50:], rewards[50:])
    assert saved(single) == saved(asked)
    assert np.allclose(single.theta, together.theta, rtol=1e-9, atol=1e-12)
    assert np.allclose(single.width(arms), together.width(arms), rtol=1e-9)


@pytest.mark.parametrize("name", ESTIMATES)
def test_sparse_and_float32_arms(name: str) -> None:
    """Learn the same to rounding."""
    random = np.random.default_rng(2)
    arms, rewards = arms_of(60, 12, random).round(3), (random.random(60) < 0.5).astype(float)
    arms *= random.random(arms.shape) < 0.4
    dense, thin = (sb.LinUCB(SKETCHES["scfd"](12), rewards=ESTIMATES[name]()) for _ in range(2))
    sketch = sb.FrequentDirections(12, size=3, compensation=1.0, dtype=np.float32)
    short = sb.LinUCB(sketch, rewards=ESTIMATES[name]())
    for arm, reward in zip(arms, rewards.tolist(), strict=True):
        dense.update(arm, reward)
        short.update(arm.astype(np.float32), reward)
        thin.update(sparse.csr_array(arm[np.newaxis]), reward)
    assert np.allclose(dense.theta, thin.theta, rtol=1e-8, atol=1e-11)
    assert np.allclose(dense.mean(sparse.csr_array(arms)), thin.mean(arms), rtol=1e-8)
    assert np.allclose(dense.theta, short.theta, rtol=1e-4, atol=1e-5)
    assert np.allclose(dense.width(arms), short.width(arms), rtol=1e-3)


@pytest.mark.parametrize("name", ESTIMATES)
def test_a_warm_up_ends_where_the_scaling_would_have_begun(name: str) -> None:
    """What was learned before is learned anew, by the same steps."""
    random = np.random.default_rng(5)
    arms, rewards = random.standard_normal((300, 5)) * 3.0, (random.random(300) < 0.5).astype(float)
    warmed = sb.adaptive(5, rewards=ESTIMATES[name](), seed=0)
    for arm, reward in zip(arms, rewards.tolist(), strict=True):
        warmed.update(arm, reward)
    assert not warmed.is_warming_up
    known = sb.adaptive(5, rewards=ESTIMATES[name](), seed=0, scaling=warmed.scaling)
    known.update(arms, rewards)
    assert np.allclose(warmed.theta, known.theta, rtol=1e-9, atol=1e-12)
    assert np.allclose(warmed.width(arms), known.width(arms), rtol=1e-9)


def test_a_compression_in_between() -> None:
    """theta stays, the widths follow the sketch, and so does the next step."""
    policy = trained(
        sb.LinUCB(sb.FrequentDirections(12, size=4, compensation=1.0), rewards=sb.Logistic()), 10
    )
    theta, x = policy.theta, np.eye(12)[0]
    policy.sketch.compress()
    matrix = policy.sketch.covariance() + np.eye(12)
    assert np.array_equal(policy.theta, theta)
    assert policy.width(x) ** 2 == pytest.approx(float(np.linalg.inv(matrix)[0, 0]))
    image = np.linalg.solve(matrix, x)
    policy.update(x, 1.0)
    moved = policy.theta - theta
    assert np.allclose(moved / np.linalg.norm(moved), image / np.linalg.norm(image))


# -- exploring -----------------------------------------------------------------------------------------

RULES: dict[str, Callable[[], sb.Explore]] = {
    "ucb": lambda: sb.UCB(0.7),
    "thompson": lambda: sb.Thompson(0.5, seed=1),
    "gap": lambda: sb.InverseGap(20.0, seed=1),
    "eliminate": lambda: sb.InverseGap(20.0, eliminate=0.5, seed=1),
    "greedy": sb.Greedy,
}


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("name", ["logistic", "poisson"])
def test_what_is_said_of_a_choice(name: str, rule: str) -> None:
    """mean: the expected reward; score: margin + radius·width; one by one, in batches and in rankings."""
    policy = sb.LinUCB(sb.ExactSketch(6), explore=RULES[rule](), rewards=ESTIMATES[name]())
    trained(policy, 30, model=MODELS[name])
    arms = arms_of(5, 6, np.random.default_rng(9))
    mean, margin, width = policy.mean(arms), policy.margin(arms), policy.width(arms)
    score = margin + policy.radius * width
    assert np.allclose(mean, MODELS[name].mean(margin), rtol=1e-12)
    assert np.allclose(policy.ucb(arms), score, rtol=1e-12)
    ranking = policy.rank(arms, 5)
    for kind, found in (
        ("choose", [policy.choose(arms)]),
        ("slate", policy.slate(arms, 3)),
        ("many", policy.choose_many([arms, arms])),
        ("rank", [sb.Choice(*row) for row in zip(*(part.tolist() for part in ranking), strict=True)]),
        ("one", [sb.Choice(*(part.tolist()[0] for part in policy.rank(arms, 1, probabilities=False)))]),
    ):
        for choice in found:
            said = choice.mean, choice.width, choice.score
            true = mean[choice.index], width[choice.index], score[choice.index]
            assert said == pytest.approx(true, rel=1e-12), kind
    if rule == "ucb":
        assert policy.select(arms) == int(score.argmax())
    if rule == "greedy":
        assert policy.select(arms) == int(mean.argmax())


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("eliminate", [None, 0.5])
def test_gaps_are_those_of_expected_rewards(eliminate: float | None) -> None:
    """Not those of margins: the probabilities by hand, and the frequencies of ``select``."""
    rule = sb.InverseGap(30.0, eliminate=eliminate, seed=3)
    policy = trained(sb.LinUCB(sb.ExactSketch(6), explore=rule, rewards=sb.Logistic()), 30)
    arms = arms_of(4, 6, np.random.default_rng(9))
    mean, margin = policy.mean(arms), policy.margin(arms)
    bonus = policy.radius * policy.width(arms)
    left = np.ones(4, dtype=bool) if eliminate is None else margin + bonus >= (margin - bonus).max()
    wanted = np.where(left, 1.0 / (left.sum() + 30.0 * (mean.max() - mean)), 0.0)
    wanted[mean.argmax()] += 1.0 - wanted.sum()
    assert np.allclose(policy.probabilities(arms), wanted, rtol=1e-12)
    counts = np.bincount([policy.select(arms) for _ in range(2000)], minlength=4)
    many = np.bincount(policy.select_many(np.stack([arms] * 2000)), minlength=4)
    for found in (counts, many):
        assert np.abs(found / 2000 - wanted).max() < 4.5 * math.sqrt(0.25 / 2000)


def test_the_strength_that_is_found_is_in_units_of_the_noise() -> None:
    """Where A is in them already, the deviation of the rewards has no say; of PerAction neither."""
    arms = arms_of(40, 4, np.random.default_rng(0))
    for rewards in (sb.Logistic(), sb.Robust(scale=2.0)):
        policy = sb.oful(4, beta="auto", rewards=rewards)
        policy.update(arms, [1.0] + [0.0] * 39)
        assert policy.radius == 0.15
        models = sb.PerAction(["a", "b"], partial(sb.oful, 4, beta="auto", rewards=rewards))
        models.update(arms[0], "a", 1.0)
        assert np.allclose(models.ucb(arms[0]) - models.margin(arms[0]), 0.15 * models.width(arms[0]))


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("rule", RULES)
def test_a_model_for_every_action(rule: str) -> None:
    """Each is a policy by itself; means are probabilities, and the choice says so."""

    def made() -> sb.LinUCB:
        return sb.soful(6, size=3, explore=RULES[rule](), rewards=sb.Logistic(), baseline=False)

    models, alone = sb.PerAction(["a", "b"], made), {"a": made(), "b": made()}
    random = np.random.default_rng(0)
    for x in arms_of(60, 6, random):
        action, reward = ("a", "b")[int(random.random() < 0.5)], float(random.random() < 0.6)
        models.select(x)
        models.update(x, action, reward)
        alone[action].update(x, reward)
    x = arms_of(1, 6, random)[0]
    assert models.mean(x) == pytest.approx([alone[name].mean(x) for name in "ab"], rel=1e-12)
    assert models.margin(x) == pytest.approx([alone[name].margin(x) for name in "ab"], rel=1e-12)
    assert models.ucb(x) == pytest.approx([alone[name].ucb(x) for name in "ab"], rel=1e-12)
    for choice in (models.choose(x), *models.slate(x, 2), *models.choose_many(x[np.newaxis])):
        policy = alone[str(choice.action)]
        assert choice.mean == pytest.approx(policy.mean(x), rel=1e-12)
        assert choice.score == pytest.approx(policy.ucb(x), rel=1e-12)
    ranking = models.rank(x, 2)
    assert ranking.mean == pytest.approx(models.mean(x)[ranking.index], rel=1e-12)
    if rule == "gap":
        gap = abs(float(np.diff(models.mean(x))[0]))
        assert models.probabilities(x).min() == pytest.approx(1.0 / (2.0 + 20.0 * gap), rel=1e-12)


def test_linear_margins_are_means() -> None:
    """Nothing has changed for linear rewards."""
    policy = sb.soful(6, size=3)
    policy.update(np.eye(6), np.arange(6.0))
    assert np.array_equal(policy.mean(np.eye(6)), policy.margin(np.eye(6)))
    assert policy.margin(np.eye(6)[3]) == policy.mean(np.eye(6)[3])


# -- files, copies, merging, bad input -----------------------------------------------------------------


@pytest.mark.parametrize("sketch", ["exact", "fd", "scfd", "adaptive"])
@pytest.mark.parametrize("name", ESTIMATES)
def test_saved_and_loaded_it_goes_on_to_the_bit(name: str, sketch: str, tmp_path: Path) -> None:
    """So does a copy; settings are kept."""
    policy = trained(sb.LinUCB(SKETCHES[sketch](9), rewards=ESTIMATES[name]()), 40)
    policy.save(tmp_path / "p")
    twin, copied = sb.load(tmp_path / "p", sb.LinUCB), copy.deepcopy(policy)
    assert repr(twin.estimate) == repr(policy.estimate)
    before = saved(policy)
    for other in (twin, copied):
        assert saved(other) == before
        trained(other, 30, seed=7)
    assert saved(policy) == before
    trained(policy, 30, seed=7)
    assert saved(policy) == saved(twin) == saved(copied)


def test_a_theorems_radius_goes_on_too(tmp_path: Path) -> None:
    """What a file has of it is enough, also where a shrink has not been looked at yet."""
    confidence = sb.Confidence(theta_norm=2.0, delta=0.1)
    sketch = sb.FrequentDirections(9, size=3, compensation=1.0)
    policy = trained(sb.LinUCB(sketch, beta=confidence, rewards=sb.Logistic(theta_norm=2.0)), 40)
    policy.sketch.compress()
    policy.save(tmp_path / "p")
    twin = sb.load(tmp_path / "p", sb.LinUCB)
    assert policy.radius == twin.radius
    assert trained(policy, 20).radius == trained(twin, 20).radius


@pytest.mark.parametrize("name", ESTIMATES)
def test_one_pass_does_not_merge(name: str) -> None:
    """Refused with the reason, and nothing has changed; neither do unlike models."""
    one, other = (trained(sb.LinUCB(sb.ExactSketch(4), rewards=ESTIMATES[name]()), 5) for _ in range(2))
    before = saved(one)
    with pytest.raises(sb.MergeError, match=r"learns in one pass: .* give all rewards to one policy"):
        one.merge(other)
    linear = sb.LinUCB(sb.ExactSketch(4))
    with pytest.raises(sb.MergeError, match=r"rewards is '\w+' here and 'Linear' there"):
        one.merge(linear)
    models, others = (sb.PerAction(["a"], lambda: sb.oful(4, rewards=ESTIMATES[name]())) for _ in range(2))
    with pytest.raises(sb.MergeError, match="learns in one pass"):
        models.merge(others)
    assert saved(one) == before


@pytest.mark.parametrize(
    ("rewards", "bad", "said"),
    [
        (sb.Logistic(), 1.5, "reward is 1.5, but Logistic takes rewards from 0 to 1"),
        (sb.Logistic(), -0.1, "reward is -0.1, but Logistic takes rewards from 0 to 1"),
        (sb.Poisson(), -1.0, "reward is -1, but Poisson takes counts, which are at least 0"),
    ],
)
def test_rewards_that_the_model_has_no_place_for(rewards: Any, bad: float, said: str) -> None:
    """One, many, in a warm-up, of an action: refused, and nothing has changed."""
    policy = trained(sb.LinUCB(sb.ExactSketch(4), rewards=rewards), 5)
    warm = sb.adaptive(4, rewards=rewards, seed=0)
    for one in (policy, warm):
        before = saved(one)
        for arms, given_rewards in ((np.eye(4)[0], bad), (np.eye(4), [0.0, 1.0, bad, 1.0])):
            with pytest.raises(sb.InputError, match=said):
                one.update(arms, given_rewards)
            assert saved(one) == before
    models = sb.PerAction(["a", "b"], lambda: sb.oful(4, rewards=rewards))
    with pytest.raises(sb.InputError, match=said):
        models.update(np.eye(4)[:2], ["a", "b"], [1.0, bad])
    assert models.rounds == 0


def test_settings_that_make_no_sense() -> None:
    """The value seen, and what it may be."""
    for moment in (1.0, 2.5, math.nan):
        with pytest.raises(sb.InputError, match="moment must be finite, above 1 and at most 2"):
            sb.Robust(moment=moment)
    for make in (
        lambda: sb.Robust(scale=0.0),
        lambda: sb.Robust(threshold=0.0),
        lambda: sb.Robust(caution=-1.0),
        lambda: sb.Logistic(theta_norm=0.0),
        lambda: sb.Logistic(step=-1.0),
        lambda: sb.Poisson(arm_norm=math.inf),
    ):
        with pytest.raises(sb.InputError, match="must be finite"):
            make()
    with pytest.raises(sb.InputTypeError, match="rewards is the class Logistic; give an instance"):
        sb.oful(3, rewards=sb.Logistic)  # type: ignore[arg-type]


def test_radii_that_no_theorem_gives() -> None:
    """Each refusal says what to write instead; a rule that is set later is refused too."""
    beta = sb.Confidence(theta_norm=2.0)
    for rewards in (sb.Logistic(), sb.Poisson(theta_norm=1.0), sb.Logistic(theta_norm=2.0, arm_norm=3.0)):
        with pytest.raises(sb.InputError, match=r"give rewards=\w+\(theta_norm=2, arm_norm=1\)"):
            sb.oful(3, rewards=rewards, beta=beta)
    with pytest.raises(sb.InputError, match="needs a step of at least 3, got 1; leave out step"):
        sb.oful(3, rewards=sb.Logistic(theta_norm=2.0, step=1.0), beta=beta)
    policy = sb.oful(3, rewards=sb.Robust())
    with pytest.raises(sb.InputError, match="no theorem gives the radius of Robust rewards"):
        policy.explore = sb.UCB(beta)
    assert policy.explore.beta == 0.1
    with pytest.raises(sb.InputError, match="no theorem gives gamma for Logistic rewards; give InverseGap a"):
        sb.oful(3, rewards=sb.Logistic(theta_norm=2.0), explore=sb.InverseGap(beta))


def test_clicks_are_learned() -> None:
    """Where the data are many, theta comes near the one they were drawn from, and the mean is calibrated."""
    random = np.random.default_rng(0)
    theta = np.array([1.5, -1.0, 0.5, 0.0])
    policy = sb.oful(4, rewards=sb.Logistic())
    arms = arms_of(4000, 4, random)
    policy.update(arms, (random.random(4000) < Clicks.mean(arms @ theta)).astype(float))
    assert np.abs(policy.mean(arms) - Clicks.mean(arms @ theta)).mean() < 0.03
