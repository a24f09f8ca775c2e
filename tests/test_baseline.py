"""The baseline: rewards are learned less their mean, so a constant added to all changes nothing."""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import sketchbandit as sb
from sketchbandit.estimate import RewardScale
from tests.policies import CERTIFIED, Matrix, rounds, saved, train
from tests.scalings import RECIPES
from tests.soak import either_backend, examples

pytestmark = [
    pytest.mark.usefixtures("backend"),
    pytest.mark.filterwarnings("ignore::sketchbandit.SketchTooSmallWarning"),
]
DIM = 6
RULES: dict[str, Callable[[], sb.Explore]] = {
    "ucb": lambda: sb.UCB(0.3),
    "ucb-auto": lambda: sb.UCB("auto"),
    "thompson": lambda: sb.Thompson(0.2, seed=1),
    "thompson-auto": lambda: sb.Thompson("auto", seed=1),
    "inverse-gap": lambda: sb.InverseGap(30.0, seed=1),
    "inverse-gap-eliminate": lambda: sb.InverseGap(30.0, eliminate=0.5, floor=0.05, seed=1),
    "epsilon-greedy": lambda: sb.EpsilonGreedy(0.1, seed=1),
    "greedy": sb.Greedy,
}
AUTO = ["ucb-auto", "thompson-auto", "epsilon-greedy", "greedy"]
MODELS: dict[str, Callable[[], sb.Estimate]] = {
    "linear": sb.Linear,
    "robust": lambda: sb.Robust(scale=0.3),
}
FORMS: dict[str, Callable[[Matrix], Any]] = {
    "dense": lambda rows: rows,
    "float32": lambda rows: rows.astype(np.float32),
    "sparse": sparse.csr_array,
    "catalogue": sb.Catalogue,
}


def worlds(count: int = 60, *, seed: int = 0) -> list[tuple[Matrix, Matrix]]:
    """Arms and the rewards of every arm, some 1 apart."""
    return [(arms, rewards) for arms, rewards in rounds(count, DIM, seed=seed, noise=0.3)]


def of_actions(make: Callable[..., Any] = sb.oful, **more: Any) -> sb.PerAction:
    """Three actions over contexts."""
    return sb.PerAction(["a", "b", "c"], lambda: make(DIM, **more))


# -- exact: what ridge regression finds for rewards less their mean --------------------------------------


@pytest.mark.parametrize("form", ["dense", "sparse"])
@pytest.mark.parametrize("forget", [None, 0.9])
@pytest.mark.parametrize("name", CERTIFIED)
def test_theta_is_that_of_rewards_less_their_mean(name: str, forget: float | None, form: str) -> None:
    """theta = A^-1 sum w (r - mean) x at every round, with the weighted mean of all rewards so far."""
    sketch = CERTIFIED[name](DIM, size=3, ridge=0.5, beta=0.2).sketch
    policy = sb.LinUCB(sketch, ridge=0.5, beta=0.2, forget=forget, baseline=True)
    rows, rewards, weights, last = [], [], np.ones(0), 0
    for arms, values in worlds(70):
        chosen = policy.select(FORMS[form](arms))
        policy.update(FORMS[form](arms[[chosen]]), [values[chosen] + 5.0])
        rows.append(arms[chosen])
        rewards.append(values[chosen] + 5.0)
        weights = np.append(weights, 1.0)
        if (
            forget is not None
            and policy._posterior.clock is not None
            and policy._posterior.clock.last != last
        ):
            weights *= forget ** (policy._posterior.clock.last - last)
            last = policy._posterior.clock.last
        mean = weights @ rewards / weights.sum()
        S, X = policy.sketch.rows, np.array(rows)
        A = S.T @ S + (0.5 + policy.sketch.alpha) * np.eye(DIM)
        expected = np.linalg.solve(A, X.T @ (weights * (rewards - mean)))
        assert policy.baseline == pytest.approx(mean, rel=1e-12)
        np.testing.assert_allclose(policy.theta, expected, rtol=1e-8, atol=1e-9)
        np.testing.assert_allclose(policy.mean(FORMS[form](arms)), mean + arms @ expected, rtol=1e-8)
    assert forget is None or last > 0


def test_models_share_the_mean_of_all_their_rewards() -> None:
    """theta of an action is ridge regression on its own rewards, less the mean of those of all actions."""
    models, random = of_actions(ridge=0.5), np.random.default_rng(0)
    seen: list[tuple[str, Matrix, float]] = []
    for t in range(60):
        x, action = random.standard_normal(DIM), "abc"[t % 3]
        reward = float(x[0]) + t % 3 + 7.0
        models.update(x, action, reward)
        seen.append((action, x, reward))
        mean = np.mean([reward for _, _, reward in seen])
        for k, name in enumerate(models):
            X = np.array([x for action, x, _ in seen if action == name]).reshape(-1, DIM)
            r = np.array([reward for action, _, reward in seen if action == name])
            theta = np.linalg.solve(0.5 * np.eye(DIM) + X.T @ X, X.T @ (r - mean))
            assert models.mean(x)[k] == pytest.approx(mean + x @ theta, rel=1e-9)
    models.add("new")
    assert models.mean(x)[3] == models.baseline == pytest.approx(mean)
    assert models.width(x)[3] == pytest.approx(np.linalg.norm(x) / np.sqrt(0.5))


def test_the_mean_of_clicks_is_their_base_rate() -> None:
    """Through the link, with a reward at margin 0 beside: an action without data has it."""
    models = sb.PerAction(["a", "b"], lambda: sb.oful(2, rewards=sb.Logistic(), beta=0.1))
    for t in range(400):
        models.update([1.0, t % 2], "a", float(t % 20 == 0))
    assert models.mean([1.0, 0.0])[1] == pytest.approx((20 + 0.5) / 401)
    counts = sb.oful(2, rewards=sb.Poisson(), beta=0.1, baseline=True)
    counts.update([[0.0, 0.0]] * 10, [3.0] * 10)
    assert counts.mean([0.0, 1.0]) == pytest.approx((30 + 0.5) / 10.5)


@given(
    rewards=st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=40),
    cut=st.integers(0, 40),
    factor=st.floats(0.5, 1.0),
)
def test_a_scale_is_that_of_weighted_rewards(rewards: list[float], cut: int, factor: float) -> None:
    """Mean and deviation as numpy has them, with a part that is forgotten and a part that is merged."""
    scale, other = RewardScale(baseline=True), RewardScale(baseline=True)
    for reward in rewards[:cut]:
        scale.see(reward)
    scale.forget(factor)
    for reward in rewards[cut:]:
        other.see(reward)
    scale.add(other)
    weights = np.array([factor if i < cut else 1.0 for i in range(len(rewards))])
    mean = np.average(rewards, weights=weights)
    deviation = np.sqrt(np.average(np.square(rewards - mean), weights=weights))
    assert scale.mean == pytest.approx(mean, rel=1e-9, abs=1e-9)
    assert scale.deviation == pytest.approx(deviation, rel=1e-6, abs=1e-6)


# -- the law: rewards plus a constant, and rewards in another unit ----------------------------------------


def played(
    policy: Any, worlds: list[tuple[Matrix, Matrix]], change: Callable[[float], float], form: str
) -> Any:
    """Choices over arms, and the policy that has learned from the changed rewards."""
    chosen = []
    for arms, rewards in worlds:
        given = FORMS[form](arms)
        index = policy.select(given)
        row = arms[[index]] if form == "catalogue" else given[[index]]
        policy.update(row, [change(float(rewards[index]))])
        chosen.append(index)
    return chosen, policy


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("rule", RULES)
def test_a_constant_changes_no_choice(rule: str, model: str, form: str) -> None:
    """For every rule, model and form of arms: up to a million spreads."""
    found = []
    for added in (0.0, -3.7, 1e6):
        policy = sb.adaptive(DIM, explore=RULES[rule](), rewards=MODELS[model](), scaling="rows")
        chosen, policy = played(policy, worlds(), lambda r, c=added: r + c, form)  # type: ignore[misc]
        found.append((chosen, policy.mean(np.eye(DIM)) - added, policy.width(np.eye(DIM))))
    for chosen, means, widths in found[1:]:
        assert chosen == found[0][0]
        np.testing.assert_allclose(means, found[0][1], atol=1e-7)
        np.testing.assert_allclose(widths, found[0][2], rtol=1e-9)


@pytest.mark.parametrize("name", RECIPES)
@pytest.mark.parametrize("forget", [None, 0.97])
@examples(8)
@given(added=st.floats(-1e6, 1e6), seed=st.integers(0, 99))
def test_a_constant_changes_no_choice_of_any_recipe(
    name: str, forget: float | None, added: float, seed: int
) -> None:
    """With forgetting, a warm-up, batches, late rewards and a merge on the way."""
    ends = []
    for c in (0.0, added):
        policy, late, chosen = (
            RECIPES[name](DIM, explore=sb.UCB("auto"), forget=forget, baseline=True, scaling="auto"),
            [],
            [],
        )
        other = copy.deepcopy(policy)
        for t, (arms, rewards) in enumerate(worlds(30, seed=seed)):
            index = policy.select(arms)
            chosen.append(index)
            late.append((arms[index], rewards[index] + c))
            if t % 4 == 3:
                policy.update([row for row, _ in late], [reward for _, reward in late])
                late = []
        for arms, rewards in worlds(10, seed=seed + 1):
            other.update(arms[0], rewards[0] + c)
        if policy.scaling is None or not policy.is_warming_up:
            policy.merge(other)
        ends.append((chosen, policy.select_many([arms for arms, _ in worlds(20, seed=seed + 2)]).tolist()))
    assert ends[0] == ends[1]


@either_backend
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("forget", [None, 0.97])
def test_a_constant_changes_no_choice_of_actions(
    rule: str, model: str, forget: float | None, tmp_path: Path
) -> None:
    """A model for each action: with an action added and one retired, a merge, and a save and load."""
    ends = []
    for added in (0.0, 12.5, -1e6):
        models: Any = of_actions(sb.adaptive, explore=RULES[rule](), rewards=MODELS[model](), forget=forget)
        random, chosen = np.random.default_rng(3), []
        for t in range(80):
            x, noise = random.standard_normal(DIM), random.standard_normal()
            action = models.select(x)
            chosen.append(action)
            models.update(x, action, float(x["abcd".index(action)] + 0.3 * noise + added))
            if t == 30:
                models.add("d")
            if t == 50:
                models.save(tmp_path / "models")
                models = sb.load(tmp_path / "models")
            if t == 60:
                models.retire("a")
        assert len(set(chosen)) > 1
        ends.append(chosen)
    assert ends[0] == ends[1] == ends[2]


@pytest.mark.parametrize("rule", AUTO)
@examples(10)
@given(factor=st.floats(1e-6, 1e6), added=st.floats(-1e3, 1e3))
def test_the_unit_of_rewards_changes_no_choice(rule: str, factor: float, added: float) -> None:
    """Where the strength of the rule is "auto": k·r + c for r."""
    ends = []
    for k, c in ((1.0, 0.0), (factor, added * factor)):
        policy = sb.adaptive(DIM, explore=RULES[rule](), scaling="rows")
        models = of_actions(sb.adaptive, explore=RULES[rule](), scaling="rows")
        chosen: list[Any] = played(policy, worlds(40), lambda r, k=k, c=c: k * r + c, "dense")[0]  # type: ignore[misc]
        for arms, rewards in worlds(40, seed=1):
            action = models.select(arms[0])
            models.update(arms[0], action, float(k * (rewards[0] + "abc".index(str(action))) + c))
            chosen.append(action)
        ends.append(chosen)
    assert ends[0] == ends[1]


def test_policies_that_merge_agree_on_the_mean() -> None:
    """Two that learned from rewards apart: their merge is what one would have learned from all."""
    whole, first, second = (sb.oful(DIM, baseline=True) for _ in range(3))
    for t, (arms, rewards) in enumerate(worlds(40)):
        reward = float(rewards[0]) + 100.0
        whole.update(arms[0], reward)
        (first if t < 15 else second).update(arms[0], reward)
    first.merge(second)
    assert first.baseline == pytest.approx(whole.baseline)
    np.testing.assert_allclose(first.theta, whole.theta, rtol=1e-8, atol=1e-10)
    apart, other = of_actions(), of_actions()
    for t, (arms, rewards) in enumerate(worlds(40)):
        (apart if t < 15 else other).update(arms[0], "abc"[t % 3], float(rewards[0]) + 100.0)
    together = of_actions()
    for t, (arms, rewards) in enumerate(worlds(40)):
        together.update(arms[0], "abc"[t % 3], float(rewards[0]) + 100.0)
    apart.merge(other)
    x = worlds(1, seed=5)[0][0][0]
    np.testing.assert_allclose(apart.mean(x), together.mean(x), rtol=1e-9)


# -- what was never tried gets tried ------------------------------------------------------------------------


def earned_by_actions(
    seed: int, pays: list[float], more: float | None = None, **settings: Any
) -> sb.PerAction:
    """300 rounds: actions that pay so much, give or take 0.1. One that pays ``more`` comes midway."""
    random = np.random.default_rng(seed)
    names = [str(pay) for pay in pays]
    models = sb.PerAction(names, lambda: sb.adaptive(10, seed=seed, **settings))
    for t in range(300):
        if more is not None and t == 150:
            models.add(str(more))
        x = random.standard_normal(10)
        action = models.select(x)
        models.update(x, action, float(action) + 0.1 * random.standard_normal())
    return models


@either_backend
def test_the_best_action_is_found_where_all_rewards_are_positive() -> None:
    """Every action is tried, and the best one is chosen in the end, in each of 20 runs."""
    for seed in range(20):
        models = earned_by_actions(seed, [0.5, 0.7, 0.9])
        assert models["0.9"].rounds > 150
        assert min(models[name].rounds for name in models) > 0


@either_backend
def test_a_better_action_that_is_added_is_adopted() -> None:
    """It has the mean of all rewards and the width of its prior, so it is tried."""
    for seed in range(20):
        assert earned_by_actions(seed, [0.5, 0.7, 0.9], 1.2)["1.2"].rounds > 100


@either_backend
@pytest.mark.parametrize("recipe", [sb.adaptive, sb.oful])
def test_fixed_arms_that_all_pay_are_all_tried(recipe: Callable[..., Any]) -> None:
    """Ten one-hot arms that pay 0.5 to 0.9."""
    pays, share = np.linspace(0.5, 0.9, 10), []
    for seed in range(10):
        random, total = np.random.default_rng(seed), 0.0
        rule = sb.Thompson("auto", seed=seed)
        policy = recipe(10, explore=rule, baseline=True)
        for _ in range(600):
            index = policy.select(np.eye(10))
            policy.update(np.eye(10)[index], float(pays[index] + 0.1 * random.standard_normal()))
            total += pays[index] / 600
        share.append(total)
    assert min(share) > 0.8


@either_backend
def test_an_abandoned_action_is_forgotten_by_the_clock_of_all() -> None:
    """With forget=200 the action that becomes the better one is noticed."""
    shares = []
    for seed in range(5):
        random = np.random.default_rng(seed)
        models = sb.PerAction(["a", "b"], lambda: sb.adaptive(2, forget=200, seed=1))
        late = 0
        for t in range(3_000):
            x = np.array([1.0, random.standard_normal()])
            action = models.select(x)
            pays = {"a": 1.0, "b": 0.5 if t < 1_000 else 1.5}[str(action)]
            models.update(x, action, pays + 0.1 * random.standard_normal())
            late += t >= 2_000 and action == "b"
        shares.append(late / 1_000)
    assert min(shares) >= 0.85


def test_a_scaling_that_is_fitted_again_keeps_the_clock_of_all(tmp_path: Path) -> None:
    """What is relearned is as old as it was, also from a file and after a merge: as with a known scaling."""
    contexts = np.random.default_rng(1).standard_normal((205, 3))

    def learned(scaling: Any, *, through_a_file: bool) -> sb.PerAction:
        models = sb.PerAction(["a", "b"], lambda: sb.oful(3, scaling=scaling, forget=20))
        for t, x in enumerate(contexts):
            models.select(x)
            models.update(x, "ab"[t >= 100], float(x[0]))
            if through_a_file and t == 150:
                models.save(tmp_path / "models")
                models = sb.load(tmp_path / "models", sb.PerAction)
        return models

    found = learned("columns", through_a_file=False)
    assert not found.is_warming_up
    known = learned(found.scaling, through_a_file=False)
    for models in (found, learned("columns", through_a_file=True)):
        masses = [models[action].sketch.mass for action in "ab"]
        assert masses == pytest.approx([known[action].sketch.mass for action in "ab"], rel=0.1)
    assert found["a"].sketch.mass < 0.05 * found["b"].sketch.mass


@pytest.mark.parametrize("at", range(6))
def test_one_outlier_costs_a_robust_model_little_whenever_it_comes(at: int) -> None:
    """Also as the first reward, from which the others are measured."""
    models = sb.PerAction(["a", "b"], lambda: sb.oful(1, rewards=sb.Robust()))
    random = np.random.default_rng(at)
    for t in range(600):
        reward = 100.0 if t == at else t % 2 + 0.5 * random.standard_normal()
        models.update([1.0], "ab"[t % 2], float(reward))
    assert models.mean([1.0]) == pytest.approx([0.0, 1.0], abs=0.5)


def test_a_reset_is_a_fresh_start() -> None:
    """Of all models: nothing of the clock stays. Of one: the others are untried as before."""
    models, fresh = (sb.PerAction(["a", "b"], lambda: sb.oful(3, forget=20)) for _ in range(2))
    random = np.random.default_rng(0)
    for t in range(30):
        models.update(random.standard_normal(3), "ab"[t % 2], 100.0 + random.standard_normal())
    models.reset()
    for _ in range(30):
        x, reward = random.standard_normal(3), float(random.standard_normal())
        models.update(x, "a", reward)
        fresh.update(x, "a", reward)
    assert (models["a"].theta == fresh["a"].theta).all()
    three = sb.PerAction(["a", "b", "c"], lambda: sb.oful(1))
    for t in range(600):
        three.update([1.0], "ab"[t % 2], float(t % 2))
    three.reset("a")
    assert three.health()["c"].untried == ("c",)


def test_a_refused_reward_leaves_the_clocks_alone() -> None:
    """They count what was learned."""
    models = sb.PerAction(["a", "b"], lambda: sb.oful(3, forget=20))
    for x in np.random.default_rng(0).standard_normal((30, 3)):
        models.update(x, "a", 1.0)
    before = saved(models)
    with pytest.raises(sb.InputError):
        models.update(np.ones(3), "b", float("nan"))
    assert saved(models) == before


def test_models_that_forget_by_one_clock_equal_one_policy() -> None:
    """One-hot blocks of one policy are the models of a ``PerAction``; both forget by the same rounds."""
    models = sb.PerAction(["a", "b"], lambda: sb.oful(2, forget=0.9, baseline=False))
    whole, random = sb.oful(4, forget=0.9), np.random.default_rng(2)
    for t in range(120):
        x, action = random.standard_normal(2), "ab"[int(random.random() < 0.15)]
        models.update(x, action, float(x[0] + t))
        row = np.zeros(4)
        row[2 * "ab".index(action) :][:2] = x
        whole.update(row, float(x[0] + t))
    x = random.standard_normal(2)
    rows = np.zeros((2, 4))
    rows[0, :2] = rows[1, 2:] = x
    np.testing.assert_allclose(models.mean(x), whole.mean(rows), rtol=0.1)
    np.testing.assert_allclose(models.width(x), whole.width(rows), rtol=0.1)


# -- where it is on, and where it cannot be ------------------------------------------------------------------


def test_which_policies_have_a_baseline() -> None:
    """On in ``adaptive`` and ``PerAction``, off in the paper's recipes, and as the user says."""
    assert sb.adaptive(2)._has_baseline
    assert not sb.adaptive(2, baseline=False)._has_baseline
    assert not sb.adaptive(2, intercept=False)._has_baseline
    assert sb.adaptive(2, intercept=False, baseline=True)._has_baseline
    assert not of_actions(sb.adaptive, intercept=False)["a"]._has_baseline
    for recipe in (sb.oful, sb.soful, sb.cbscfd, sb.dbslinucb, sb.cbrap):
        assert not recipe(3)._has_baseline
        assert recipe(3, baseline=True)._has_baseline
    assert of_actions()["a"]._has_baseline
    assert not of_actions(baseline=False)["a"]._has_baseline


@either_backend
@pytest.mark.parametrize("intercept", [True, False])
def test_the_default_is_as_good_as_without_a_baseline_where_rewards_are_linear(intercept: bool) -> None:
    """Linear rewards around 0: nothing to gain. A baseline without an intercept has four times the regret."""
    regret = {}
    for baseline in (None, False):
        regret[baseline] = 0.0
        for seed in range(3):
            random = np.random.default_rng(seed)
            policy = sb.adaptive(10, intercept=intercept, baseline=baseline, seed=seed)
            theta = random.standard_normal(10) / np.sqrt(10)
            for arms in random.standard_normal((400, 10, 10)):
                means = arms @ theta
                index = policy.select(arms)
                policy.update(arms[index], float(means[index] + 0.3 * random.standard_normal()))
                regret[baseline] += float(means.max() - means[index])
    assert regret[None] < 1.5 * regret[False]


def test_a_theorem_has_no_baseline() -> None:
    """By default it gives way to a Confidence; to ask for both is refused, and changes nothing."""
    confidence = sb.Confidence(noise=0.1, theta_norm=1.0, arm_norm=1.0, delta=0.01)
    assert not sb.adaptive(2, beta=confidence)._has_baseline
    assert not of_actions(beta=confidence)["a"]._has_baseline
    with pytest.raises(sb.InputError, match="baseline=False"):
        sb.adaptive(2, beta=confidence, baseline=True)
    policy = train(sb.adaptive(DIM), 5, DIM)
    before = saved(policy)
    with pytest.raises(sb.InputError, match="baseline=False"):
        policy.explore = sb.UCB(confidence)
    assert saved(policy) == before
    with pytest.raises(sb.InputTypeError, match="baseline is 1"):
        sb.oful(2, baseline=1)  # type: ignore[arg-type]


def test_policies_merge_if_both_have_a_baseline() -> None:
    """Or neither."""
    with pytest.raises(sb.MergeError, match="baseline"):
        sb.oful(2, baseline=True).merge(sb.oful(2))
