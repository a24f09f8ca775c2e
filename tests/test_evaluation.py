"""Evaluation from logs: the laws of the estimators, of their intervals, and of replay."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.integrate import quad
from sklearn.linear_model import LinearRegression, LogisticRegression

import sketchbandit as sb
from sketchbandit.evaluation import (
    METHODS,
    AnytimeValue,
    Batched,
    Log,
    LowerBound,
    Ridge,
    evaluate,
    replay,
    train,
    train_and_judge,
)
from sketchbandit.evaluation.estimators import Sample
from sketchbandit.evaluation.intervals import Bootstrap, normal
from sketchbandit.evaluation.models import fit
from sketchbandit.evaluation.sequences import mixture_boundary
from sketchbandit.evaluation.target_policies import candidates_of
from sketchbandit.evaluation.terms import terms_of
from tests.logs import ARMS, THETA, TRUTH, contexts, mean_rewards, rival, uniform_log, world

ALL = tuple(METHODS)


def test_the_textbook_gives_the_same_numbers() -> None:
    """IPS, SNIPS, DM, DR and Switch-DR as OBP writes them, to 1e-9; and their normal intervals."""
    w = world(3000, seed=1)
    n, rows = 3000, np.arange(3000)
    q = w.arms @ np.array([0.1, 0.2, 0.0, -0.1]) + 0.3

    def model(arms: np.ndarray) -> np.ndarray:
        found: np.ndarray = arms @ np.array([0.1, 0.2, 0.0, -0.1]) + 0.3
        return found

    found = evaluate(w.log, {"candidate": w.candidate}, ALL, model=model, interval="normal")
    chosen, r = w.log.chosen, w.log.reward
    iw = w.candidate[rows, chosen] / w.logging[rows, chosen]
    dm = np.average(q, weights=w.candidate, axis=1)
    doubly = dm + iw * (r - q[rows, chosen])
    expected = {
        "dm": dm.mean(),
        "ips": (iw * r).mean(),
        "snips": (iw * r).sum() / iw.sum(),
        "dr": doubly.mean(),
    }
    for method, value in expected.items():
        assert abs(found.of("candidate", method).value - value) < 1e-9
    half = 1.959963984540054 * doubly.std(ddof=1) / np.sqrt(n)
    row = found.of("candidate", "dr")
    assert np.allclose([row.low, row.high], [row.value - half, row.value + half], atol=1e-9)
    assert row.effective_size == pytest.approx(iw.sum() ** 2 / (iw**2).sum())
    for method in ("dm", "switch-dr", "drs", "drs-pessimistic"):  # biased: no more is known than by dr
        other = found.of("candidate", method)
        assert (other.low, other.high) == (min(row.low, other.value), max(row.high, other.value))


def test_ips_and_dr_are_unbiased() -> None:
    """Over 300 logs the mean of the estimates is the truth, whatever the model; that of the model is not."""
    values: dict[str, list[float]] = {"ips": [], "dr": [], "dm": [], "wrong": []}
    for seed in range(300):
        w = world(400, seed)
        found = evaluate(w.log, {"c": w.candidate}, ("ips", "dr", "dm"))
        wrong = evaluate(w.log, {"c": w.candidate}, ("dr",), model=lambda rows: np.full(len(rows), 0.9))
        for row in found:
            values[row.method].append(row.value)
        values["wrong"].append(wrong[0].value)
    errors = {name: np.mean(some) - TRUTH for name, some in values.items()}
    deviations = {name: np.std(some) / np.sqrt(300) + 0.0003 for name, some in values.items()}
    for name in ("ips", "dr", "wrong"):
        assert abs(errors[name]) < 4 * deviations[name], name
    worlds = [world(400, seed) for seed in range(3)]
    biased = [evaluate(w.log, {"c": w.candidate}, ("dm",), model=lambda x: 0.9 + 0 * x[:, 0]) for w in worlds]
    assert min(abs(found[0].value - TRUTH) for found in biased) > 0.2
    assert np.std(values["dr"]) < np.std(values["ips"])  # what the model is for


def test_dr_is_the_direct_method_with_an_exact_model_and_ips_without_one() -> None:
    """With rewards without noise, and the model that made them; and with the model zero."""
    w = world(800, seed=3)
    rows = np.arange(800)
    exact = Log(
        arms=w.arms,
        chosen=w.log.chosen,
        reward=w.means[rows, w.log.chosen],
        probability=w.log.probability,
    )
    found = evaluate(exact, {"c": w.candidate}, ALL, model=mean_rewards)
    for method in ("dr", "switch-dr", "drs", "drs-pessimistic"):
        assert abs(found.of("c", method).value - found.of("c", "dm").value) < 1e-12
    zero = evaluate(w.log, {"c": w.candidate}, ("ips", "dr"), model=lambda x: np.zeros(len(x)))
    assert abs(zero[0].value - zero[1].value) < 1e-12


def test_no_row_is_predicted_from_itself() -> None:
    """A model that remembers everything cannot make the doubly robust estimate its own rewards."""
    w = world(600, seed=4)

    class Memory:
        """Predicts the reward that it has seen for a row, else 0.5."""

        def fit(self, rows: np.ndarray, rewards: np.ndarray) -> "Memory":
            self.seen = {row.tobytes(): reward for row, reward in zip(rows, rewards, strict=True)}
            return self

        def predict(self, rows: np.ndarray) -> np.ndarray:
            return np.array([self.seen.get(row.tobytes(), 0.5) for row in rows])

    for folds in (2, 5, "past"):
        found = evaluate(w.log, {"c": w.candidate}, ("dm",), model=Memory(), folds=folds)
        assert found[0].value <= 0.5 + 1e-12
        if folds != "past":
            assert found[0].value == pytest.approx(0.5)


@pytest.mark.parametrize("model", ["ridge", Ridge(0.5, size=50), LinearRegression(), LogisticRegression()])
def test_models_help(model: object) -> None:
    """Ours and scikit-learn's: about the same value as IPS, and a shorter interval."""
    w = world(4000, seed=5)
    ips, dr = evaluate(w.log, {"c": w.candidate}, ("ips", "dr"), model=model)
    assert abs(dr.value - TRUTH) < 0.03
    assert dr.high - dr.low < ips.high - ips.low


def test_the_ridge_is_the_ridge() -> None:
    """m + x'(X'X + ridge I)^-1 X'(r - m) with a column of ones and the mean reward m, dense."""
    random = np.random.default_rng(6)
    rows, rewards = random.standard_normal((200, 5)), 50.0 + random.random(200)
    model = Ridge(0.7)
    for some in np.array_split(np.arange(200), 3):
        model.learn(rows[some], rewards[some])
    wide = np.hstack([rows, np.ones((200, 1))])
    mean = rewards.mean()
    theta = np.linalg.solve(wide.T @ wide + 0.7 * np.eye(6), wide.T @ (rewards - mean))
    assert np.allclose(model.finish()(rows), mean + wide @ theta, atol=1e-10)


@pytest.mark.parametrize("added", [-7.5, 1e6])
def test_a_constant_is_added_to_every_estimate(added: float) -> None:
    """Rewards r + c: policies learn to choose the same, and estimates and intervals move by c."""
    random = np.random.default_rng(2)
    arms, chosen, reward = contexts(600, random), random.integers(ARMS, size=600), random.random(600)
    reward += arms[np.arange(600), chosen] @ THETA
    log, moved = (
        Log(arms=arms, chosen=chosen, reward=reward + c, probability=np.full(600, 1 / ARMS))
        for c in (0.0, added)
    )
    makers = {
        "adaptive": lambda: sb.adaptive(len(THETA), explore=sb.UCB("auto")),
        "floor": lambda: sb.adaptive(len(THETA), explore=sb.EpsilonGreedy(0.2)),
    }
    methods = ("snips", "dm", "dr", "switch-dr", "drs")
    for before, after in zip(*(train_and_judge(one, makers, methods) for one in (log, moved)), strict=True):
        shown = [after.value, after.low, after.high]
        wanted = [before.value, before.low, before.high]
        assert [value - added for value in shown] == pytest.approx(wanted, abs=1e-6)


# -- intervals ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("interval", ["bounded", "normal", "bootstrap"])
def test_intervals_cover(interval: str) -> None:
    """95 % intervals of value and difference hold the truth in nine of ten logs or more (200 of them)."""
    draws: dict[str, Any] = {"draws": 200} if interval == "bootstrap" else {}
    hits = dict.fromkeys([*ALL, "difference"], 0)
    uniform = float(mean_rewards(contexts(400_000, np.random.default_rng(98))).mean())
    for seed in range(200):
        w = world(600, seed + 1000)
        found = evaluate(w.log, {"c": w.candidate, "u": "uniform"}, ALL, interval=interval, **draws)
        for method in ALL:
            row = found.of("c", method)
            hits[method] += row.low <= TRUTH <= row.high
        between = found.difference("c", "u", "dr")
        hits["difference"] += between.low <= TRUTH - uniform <= between.high
    assert min(hits.values()) >= 180, hits


def test_any_time_intervals_cover_at_every_step() -> None:
    """Of 200 logs of 3,000 decisions at most 5 % leave the truth at any step."""
    missed = missed_by_normal = 0
    for seed in range(200):
        w = world(3000, seed + 5000)
        weights = w.candidate[np.arange(3000), w.log.chosen] / w.log.probability
        low, high = AnytimeValue().path(weights, w.log.reward)
        missed += bool((low > TRUTH).any() or (high < TRUTH).any())
        x = weights * w.log.reward
        counts = np.arange(1, 3001)
        means = np.cumsum(x) / counts
        deviations = np.sqrt(np.maximum(np.cumsum(x**2) / counts - means**2, 1e-12) / counts)
        missed_by_normal += bool((np.abs(means - TRUTH) > 1.96 * deviations)[50:].any())
    assert missed <= 10
    assert missed_by_normal > 40  # why one needs it
    assert high[-1] - low[-1] < 0.25


@pytest.mark.parametrize("variance", [0.0, 0.3, 20.0, 5000.0])
@pytest.mark.parametrize("alpha", [0.05, 0.001])
def test_the_boundary_is_where_the_mixture_reaches_one_over_alpha(variance: float, alpha: float) -> None:
    """The integral over l, by quadrature."""
    wanted = np.log(1.0 / alpha)
    rho = 300.0 / (2.0 * wanted + np.log(1.0 + 2.0 * wanted))
    s = float(mixture_boundary(np.array([variance]), alpha)[0])

    def density(u: float) -> float:
        return float(np.exp((rho - 1.0) * np.log(u) - rho * u))

    def grown(u: float) -> float:  # u = 1 - l
        return density(u) * float(np.exp((1.0 - u) * (s + variance) + variance * np.log(u)))

    whole = quad(density, 0.0, 1.0, limit=500)[0]
    assert quad(grown, 0.0, 1.0, limit=500, points=[0.9, 0.97])[0] / whole == pytest.approx(
        1 / alpha, rel=1e-5
    )


@given(st.lists(st.floats(0.0, 50.0), min_size=1, max_size=60), st.integers(1, 7))
def test_a_bound_does_not_depend_on_the_pieces(values: list[float], pieces: int) -> None:
    """One by one, in pieces, at once, and through JSON: the same path."""
    whole, parts = LowerBound(0.05), LowerBound(0.05)
    path = whole.path(values)
    found = []
    for some in np.array_split(values, pieces):
        found.append(parts.path(some))
        parts = LowerBound.from_json(parts.to_json())
    assert np.allclose(np.concatenate(found), path, rtol=1e-9, atol=1e-9)
    assert parts.value == pytest.approx(whole.value, abs=1e-9)


def test_an_any_time_value_goes_on_where_it_stopped() -> None:
    """In two parts, through JSON, in another unit: the same as at once, and as ``evaluate`` says."""
    w = world(600, seed=7)
    weights = w.candidate[np.arange(600), w.log.chosen] / w.log.probability
    rewards = 4.0 * w.log.reward - 1.0
    whole = AnytimeValue((-1.0, 3.0))
    whole.update(weights, rewards)
    part = AnytimeValue((-1.0, 3.0))
    part.update(weights[:250], rewards[:250])
    part = AnytimeValue.from_json(json.loads(json.dumps(part.to_json())))
    part.update(weights[250:], rewards[250:])
    ends = [(one.count, one.low, one.high, one.value) for one in (part, whole)]
    assert ends[0] == pytest.approx(ends[1])
    log = Log(arms=w.arms, chosen=w.log.chosen, reward=rewards, probability=w.log.probability)
    row = evaluate(log, {"c": w.candidate}, ("ips",), interval="anytime", reward_range=(-1.0, 3.0))[0]
    assert (row.low, row.high) == pytest.approx((whole.low, whole.high))
    with pytest.raises(sb.InputError, match="a reward is 7"):
        whole.update([1.0], [7.0])
    with pytest.raises(sb.InputError, match="least, most"):
        AnytimeValue((1.0, 1.0))


def test_an_any_time_value_takes_all_or_nothing() -> None:
    """What one of its two ends would refuse changes neither."""
    value = AnytimeValue()
    value.update([1.0, 2.0], [1.0, 0.0])
    before = value.to_json()
    for weights, rewards, said in (
        ([-1.0], [0.0], "a weight is -1"),
        ([np.inf], [1.0], "a weight is inf"),
        ([1.0, np.nan], [1.0, 1.0], "a weight is nan"),
        ([1.0, 2.0], 1.0, "a weight and a reward"),
    ):
        for take in (value.update, value.path):
            with pytest.raises(sb.InputError, match=said):
                take(weights, rewards)
    assert value.to_json() == before
    with pytest.raises(sb.InputError, match="finite"):
        LowerBound(0.05).update([np.inf])


def test_models_of_the_past_do_not_know_how_long_the_log_will_be() -> None:
    """Any-time intervals are of one sequence of numbers: those of a row stay when more rows come."""
    w = world(900, seed=8)
    seen = []
    for part in (w.log.part(0, 300), w.log):
        chances = candidates_of(part, {"u": "uniform"})
        seen.append(terms_of(part, chances, fit(part, "ridge", "past"))["u"].predicted[:300])
    assert np.array_equal(seen[0], seen[1])
    assert not seen[0][:32].any()
    assert seen[0][32:].all()


def test_any_time_evaluation() -> None:
    """ips, dr within a known largest weight, and differences: truth inside, and narrower with more data."""
    w = world(20_000, seed=8)
    found = evaluate(w.log, {"c": w.candidate}, ("ips", "dr"), interval="anytime", max_weight=ARMS / 0.2)
    for row in found:
        assert row.low < TRUTH < row.high
        assert row.high - row.low < 0.3
    few = evaluate(w.log.part(0, 1000), {"c": w.candidate[:1000]}, ("ips",), interval="anytime")[0]
    assert few.high - few.low > found[0].high - found[0].low
    difference = found.difference("c", method="ips")
    assert difference.low < TRUTH - w.log.reward.mean() < difference.high
    just = w.candidate[np.arange(20_000), w.log.chosen] / w.log.probability
    rounded = float(just.max()) * (1.0 - 1e-12)  # K / floor, in other last digits
    assert evaluate(w.log, {"c": w.candidate}, "dr", interval="anytime", max_weight=rounded)[0].low < TRUTH
    with pytest.raises(sb.InputError, match="max_weight"):
        evaluate(w.log, {"c": w.candidate}, ("dr",), interval="anytime")
    with pytest.raises(sb.InputError, match="snips"):
        evaluate(w.log, {"c": w.candidate}, ("snips",), interval="anytime")


def test_the_bootstrap_has_the_variance_of_the_normal_interval() -> None:
    """Also where sums of neighbours are resampled, as many to a sum or not, and far from zero."""
    random = np.random.default_rng(9)
    for count, is_ratio in ((2000, True), (30_000, True), (15_000, True), (15_000, False)):
        below = random.random(count) + 0.5
        sample = Sample(10.0 + random.exponential(size=count), below if is_ratio else None)
        key = ("one", "ips")
        low, high = Bootstrap({key: sample}, below, 0.95, draws=1500, seed=0).interval(*key)
        exact = normal(sample, 0.95)
        assert (high - low) / (exact.high - exact.low) == pytest.approx(1.0, abs=0.08)


# -- candidates ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "rule",
    [
        sb.UCB(0.3),
        sb.UCB(0.3, floor=0.2, seed=0),
        sb.Greedy(),
        sb.EpsilonGreedy(0.1),
        sb.InverseGap(20.0),
        sb.InverseGap(5.0, growth=0.5, floor=0.1),
        sb.InverseGap(9.0, eliminate=0.5),
        sb.Thompson(0.3, samples=50),
    ],
)
@pytest.mark.parametrize("rewards", [sb.Linear, sb.Logistic])
def test_probabilities_of_many_sets_are_those_of_each(rule: sb.Explore, rewards: type, backend: str) -> None:
    """An array, a ragged list, and one after another; and asking leaves no trace."""
    del backend
    random = np.random.default_rng(10)
    policy = sb.oful(5, explore=rule, rewards=rewards())
    policy.update(random.standard_normal((40, 5)), (random.random(40) < 0.5).astype(float))
    batch = random.standard_normal((7, 4, 5))
    batch[2, 3] = batch[2, 1]
    before = policy.dump()[0]
    expected = np.array([policy.probabilities(arms) for arms in batch])
    assert np.allclose(policy.probabilities_many(batch), expected, atol=1e-12)
    ragged = [random.standard_normal((k, 5)) for k in (1, 3, 2, 6)]
    for found, arms in zip(policy.probabilities_many(ragged), ragged, strict=True):
        assert np.allclose(found, policy.probabilities(arms), atol=1e-12)
    assert policy.dump()[0] == before
    with pytest.raises(sb.InputError, match="set 1"):
        policy.probabilities_many([np.ones((2, 5)), np.ones((2, 4))])


@pytest.mark.parametrize("learned", [0, 5, 300])
def test_probabilities_of_many_sets_while_a_scaling_warms_up_and_through_a_projection(learned: int) -> None:
    """The recipes: one by one is the same, and asking is no part of the warm-up."""
    random = np.random.default_rng(11)
    rows, rewards = random.standard_normal((300, 6)) * 50.0, random.random(300)
    batch = random.standard_normal((9, 3, 6)) * 50.0
    for policy in (sb.adaptive(6, explore=sb.UCB(0.2)), sb.cbrap(6, size=3), sb.oful(6, dtype=np.float32)):
        if learned:
            policy.update(rows[:learned], rewards[:learned])
        before = policy.requests_seen
        found = policy.probabilities_many(batch)
        assert np.allclose(found, [policy.probabilities(arms) for arms in batch], atol=1e-12)
        assert policy.requests_seen == before


def test_all_ways_to_give_a_candidate_agree() -> None:
    """A policy, a function of one set, of many sets, and its probabilities as an array."""
    w = world(500, seed=11)
    policy = rival()
    policy.update(w.arms[:50, 0] * 0.9, w.log.reward[:50])
    ways = {
        "policy": policy,
        "function": policy.probabilities,
        "batched": Batched(policy.probabilities_many),
        "array": np.array([policy.probabilities(arms) for arms in w.arms]),
    }
    found = evaluate(w.log, ways, ALL)
    for method in ALL:
        values = [found.of(name, method).value for name in ways]
        assert np.allclose(values, values[0], atol=1e-12)
    assert found.difference("policy", "function").value == pytest.approx(0.0, abs=1e-12)


def test_arms_from_anywhere_are_the_same_log(tmp_path: Path) -> None:
    """An array, a list of sets, sparse sets, a function and an npy file: the same numbers."""
    w = world(300, seed=12)
    path = tmp_path / "arms.npy"
    np.save(path, w.arms)
    columns: dict[str, Any] = {
        "chosen": w.log.chosen,
        "reward": w.log.reward,
        "probability": w.log.probability,
    }
    policy = rival()
    expected = evaluate(w.log, {"p": policy}, ALL)
    sources = [list(w.arms), [sparse.csr_array(arms) for arms in w.arms], lambda a, b: w.arms[a:b], path]
    for arms in sources:
        found = evaluate(Log(arms=arms, **columns), {"p": policy}, ALL)
        assert np.allclose([row.value for row in found], [row.value for row in expected], atol=1e-9)
    lives = [replay(Log(arms=arms, **columns), {"p": rival})["p"].numbers for arms in sources]
    assert len(lives[0]) > 5
    assert all(np.array_equal(kept, lives[0]) for kept in lives)


def test_contexts_and_actions() -> None:
    """A model per action, and the same as one policy over products of features, have one value."""
    random = np.random.default_rng(13)
    names = ["a", "b", "c"]
    context, chosen = random.standard_normal((400, 3)), random.integers(3, size=400)
    reward = context[np.arange(400), chosen]
    log = Log(
        context=context,
        actions=names,
        chosen=np.array(names)[chosen],
        reward=reward,
        probability=np.full(400, 1 / 3),
    )
    past, future = log.split(0.5)
    models = train(sb.PerAction(names, lambda: sb.oful(3, explore=sb.Greedy())), past)
    joined = train(sb.oful(9, explore=sb.Greedy()), past)
    found = evaluate(future, {"models": models, "joined": joined}, ("snips",))
    assert found[0].value == pytest.approx(found[1].value, abs=1e-9)
    assert found[0].value > 0.5
    life = replay(log, {"models": lambda: sb.PerAction(names, lambda: sb.oful(3))})["models"]
    assert 90 < life.rounds < 180
    assert life.estimate.value > 0.4


# -- the two questions --------------------------------------------------------------------------------


def test_a_policy_is_not_judged_by_what_it_has_learned() -> None:
    """Trained on rows of the log, or by hand on all of it: refused; on other rows: judged."""
    w = world(400, seed=14)
    past, future = w.log.split(0.5)
    policy = train(rival(), past)
    assert policy.rounds == 200
    with pytest.raises(sb.InputError, match="split"):
        evaluate(w.log, {"mine": policy})
    with pytest.raises(sb.InputError, match="split"):
        evaluate(past, {"mine": policy})
    with pytest.raises(sb.InputError, match="split"):
        evaluate(w.log.part(150, 300), {"mine": policy})
    assert len(evaluate(future, {"mine": policy})) == 3
    again = world(400, seed=14).log  # read a second time
    with pytest.raises(sb.InputError, match="split"):
        evaluate(again, {"mine": policy})
    by_hand = rival()
    by_hand.update(w.arms[np.arange(400), w.log.chosen], w.log.reward)
    with pytest.raises(sb.InputError, match="split"):
        evaluate(w.log, {"mine": by_hand})


def test_what_was_learned_before_a_bad_row_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows 0 to 300 were learned when a later one was refused; those after it were not."""
    monkeypatch.setattr("sketchbandit.evaluation.logged_arms._TOGETHER", 100 * ARMS * len(THETA))
    w = world(400, seed=14)
    spoilt = w.arms.copy()
    spoilt[350] = np.nan
    policy, log = rival(), w.log
    with pytest.raises(sb.InputError, match="decision 350: its arms contain NaN"):
        train(policy, Log(arms=spoilt, chosen=log.chosen, reward=log.reward, probability=log.probability))
    assert policy.rounds == 300
    with pytest.raises(sb.InputError, match="has learned from rows 0 to 300"):
        evaluate(log, {"mine": policy})
    assert len(evaluate(log.part(300, 400), {"mine": policy}, ("ips",))) == 1


def test_learning_and_judging_apart() -> None:
    """Rewards that are noise flatter nobody; real ones are found; existing policies are refused."""
    w = world(4000, seed=15)
    found = train_and_judge(w.log, {"oful": rival, "uniform": "uniform"}, ("snips",))
    assert found.difference("oful", "uniform", "snips").low > 0.05
    assert found.weights["oful"].decisions == 2000
    crossed = train_and_judge(w.log, {"oful": rival}, ("snips",), parts=4)
    assert crossed.weights["oful"].decisions == 4000
    assert abs(crossed[0].value - found[0].value) < 0.05
    random = np.random.default_rng(1)
    arms, chosen = (
        random.standard_normal((600, 3, 60)),
        random.integers(3, size=600),
    )  # more than can be learned
    log = Log(arms=arms, chosen=chosen, reward=random.random(600), probability=np.full(600, 1 / 3))
    judged = train_and_judge(log, {"greedy": lambda: sb.oful(60, explore=sb.Greedy())}, ("snips",), parts=3)
    assert judged[0].low < 0.5 < judged[0].high
    with pytest.raises(TypeError, match="returns a fresh policy"):
        train_and_judge(w.log, {"mine": rival()})
    with pytest.raises(TypeError, match="mine: a maker takes no arguments"):
        train_and_judge(w.log, {"mine": lambda arms: np.eye(len(arms))[0]})


def test_replay_has_the_law_of_a_life() -> None:
    """Kept rounds earn what the policy earns live, round by round; 150 replays against 150 lives."""
    rounds, many = 40, 150
    replayed, lived = np.zeros((many, rounds)), np.zeros((many, rounds))
    for seed in range(many):
        log, _ = uniform_log(6 * ARMS * 12, seed)
        kept = replay(log, {"p": lambda: rival(seed)})["p"]  # noqa: B023  (called at once)
        assert kept.rounds >= rounds
        assert kept.learned.rounds == kept.rounds
        assert np.array_equal(kept.rewards, log.reward[kept.numbers])
        replayed[seed] = kept.rewards[:rounds]
        random, policy = np.random.default_rng(seed + 10_000), rival(seed + 7)
        for number in range(rounds):
            arms = contexts(1, random)[0]
            index = policy.select(arms)
            reward = float(random.random() < mean_rewards(arms)[index])
            policy.update(arms[index], reward)
            lived[seed, number] = reward
    for some in (slice(0, 5), slice(5, 20), slice(20, 40)):
        one, other = replayed[:, some].mean(axis=1), lived[:, some].mean(axis=1)
        error = np.sqrt((one.var() + other.var()) / many)
        assert abs(one.mean() - other.mean()) < 4 * error


def test_replay_of_unequal_probabilities_keeps_the_law_of_arms() -> None:
    """A log that prefers an arm: of the kept rounds of a uniform policy every arm has its share."""
    random = np.random.default_rng(16)
    chances = np.array([0.6, 0.3, 0.1])
    chosen = random.choice(3, size=6000, p=chances)
    log = Log(arms=np.eye(3), chosen=chosen, reward=np.zeros(6000), probability=chances[chosen])
    found = replay(log, {"u": lambda: sb.oful(3, explore=sb.EpsilonGreedy(1.0, seed=0))})["u"]
    shares = np.bincount(chosen[found.numbers], minlength=3) / found.rounds
    assert 500 < found.rounds < 700  # 6,000 decisions times the least probability
    assert np.abs(shares - 1 / 3).max() < 0.08


def test_a_policy_that_warms_up_is_replayed_as_it_lives() -> None:
    """Its scaling comes from the rounds that were kept: fed by hand with those, it is the same."""
    log, _ = uniform_log(1000, seed=17)
    arms = np.array(next(log.chunks()).arms)
    for rule in (sb.UCB(0.2), sb.EpsilonGreedy(0.2, seed=3)):
        found = replay(log, {"p": lambda: sb.adaptive(len(THETA), explore=rule)})["p"]  # noqa: B023  (called at once)
        lived = sb.adaptive(len(THETA), explore=rule)
        for number in found.numbers:
            lived.select(arms[number])
            lived.update(arms[number, log.chosen[number]], log.reward[number])
        assert found.rounds > 100
        assert not lived.is_warming_up
        assert np.array_equal(lived.theta, found.learned.theta)


def test_replay_says_when_the_log_does_not_hold_what_is_played() -> None:
    """Two of three arms were ever logged: who plays the third is not kept as often as is due."""
    random = np.random.default_rng(18)
    chosen = random.integers(2, size=3000)
    log = Log(arms=np.eye(3), chosen=chosen, reward=random.random(3000), probability=np.full(3000, 0.5))
    found = replay(log, {"u": lambda: sb.oful(3, explore=sb.EpsilonGreedy(1.0, seed=0))})["u"]
    assert "1500 were expected" in found.verdict
    assert np.isnan(found.estimate.low)
