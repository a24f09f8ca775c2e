"""One model per action: against dense oracles, against policies asked one by one, and what it holds."""

import copy
import inspect
import pickle
import threading
import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.stats import chisquare

import sketchbandit as sb
from sketchbandit.kernels import kernels
from tests.policies import EVERY, Matrix, learned, saved, unit
from tests.test_threads import all_at_once, switching_often

pytestmark = [
    pytest.mark.usefixtures("backend"),
    pytest.mark.filterwarnings("ignore::sketchbandit.SketchTooSmallWarning"),
]
DIM = 12
NAMES: list[str | int] = ["a", "b", "c", 7]
CONFIDENCE = sb.Confidence(noise=0.1, theta_norm=1.0, delta=0.01)
RULES: dict[str, sb.Explore] = {
    "ucb": sb.UCB(0.4),
    "ucb floor": sb.UCB(0.4, floor=0.2, seed=1),
    "ucb theorem": sb.UCB(CONFIDENCE),
    "thompson": sb.Thompson(0.4, samples=2000, floor=0.1, seed=1),
    "thompson theorem": sb.Thompson(CONFIDENCE, samples=500, seed=1),
    "thompson batch": sb.Thompson(0.4, per="batch", samples=500, seed=1),
    "inverse gap": sb.InverseGap(20.0, floor=0.1, seed=1),
    "inverse gap grows": sb.InverseGap(2.0, growth=0.5, eliminate=0.5, seed=1),
    "inverse gap theorem": sb.InverseGap(CONFIDENCE, eliminate=CONFIDENCE, seed=1),
    "epsilon": sb.EpsilonGreedy(0.3, seed=1),
    "greedy": sb.Greedy(),
}


def contexts(count: int, dim: int = DIM, seed: int = 0) -> Matrix:
    """Of unit length."""
    return unit(np.random.default_rng(seed).standard_normal((count, dim)))


def of_rule(rule: sb.Explore, names: Any = NAMES, *, baseline: bool | None = None) -> sb.PerAction:
    """Exact models."""
    return sb.PerAction(names, lambda: sb.oful(DIM, ridge=0.7, explore=rule, baseline=baseline))


def play(models: sb.PerAction, count: int, seed: int = 0) -> sb.PerAction:
    """So many rounds, in which each action has a theta of its own."""
    random = np.random.default_rng(seed)
    truth = {action: random.standard_normal(models.dim) for action in models.policies}
    for x in contexts(count, models.dim, seed):
        action = models.select(x.astype(models.dtype))
        reward = float(truth[action] @ x + 0.1 * random.standard_normal())
        models.update(x.astype(models.dtype), action, reward)
    return models


# -- laws --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array, np.ndarray.tolist])
def test_each_model_is_a_ridge_regression_of_its_own(form: Callable[[Any], Any]) -> None:
    """Means and widths are those of separate dense systems. ``test_baseline`` has them with a baseline."""
    models = of_rule(sb.UCB(0.4), baseline=False)
    systems = {name: (0.7 * np.eye(DIM), np.zeros(DIM)) for name in NAMES}
    random = np.random.default_rng(1)
    for x in contexts(150):
        means = np.array([x @ np.linalg.solve(A, b) for A, b in systems.values()])
        widths = np.sqrt([x @ np.linalg.solve(A, x) for A, _ in systems.values()])
        given = form(x[np.newaxis])
        assert np.allclose(models.mean(given), means, rtol=1e-9, atol=1e-12)
        assert np.allclose(models.width(given), widths, rtol=1e-9)
        assert np.allclose(models.ucb(given), means + 0.4 * widths, rtol=1e-9, atol=1e-12)
        action = NAMES[int(random.integers(4))]
        reward = float(random.standard_normal())
        models.update(given, action, reward)
        A, b = systems[action]
        systems[action] = A + np.outer(x, x), b + reward * x
    assert models.rounds == 150


@pytest.mark.parametrize(
    ("form", "dtype"),
    [(np.asarray, np.float64), (sparse.csr_array, np.float64), (np.asarray, np.float32)],
    ids=["dense", "sparse", "float32"],
)
@pytest.mark.parametrize("name", EVERY)
def test_ucb_is_policies_asked_one_by_one(name: str, form: Any, dtype: Any) -> None:
    """Choices, scores and all that is learned are those of policies without a baseline, to the bit."""

    def make() -> Any:
        return EVERY[name](30, size=4, ridge=0.5, beta=0.3, dtype=dtype, baseline=False)

    models, apart = sb.PerAction(NAMES, make), {action: make() for action in NAMES}
    random = np.random.default_rng(0)
    for t, x in enumerate(contexts(90, 30)):
        given = form(x[np.newaxis].astype(dtype))
        scores = np.array([policy.ucb(given)[0] for policy in apart.values()])
        assert np.allclose(models.ucb(given), scores, rtol=1e-6 if dtype is np.float32 else 1e-10)
        chosen = models.select(given[0] if form is np.asarray else given)
        assert scores[NAMES.index(chosen)] >= scores.max() - 1e-6
        if t % 3 == 0:  # another action than the one chosen
            chosen = NAMES[int(random.integers(4))]
        reward = float(random.standard_normal())
        for learner in (models.update(given, chosen, reward), apart[chosen].update(given, reward)):
            assert learner is None
    assert all(learned(models[action]) == learned(apart[action]) for action in NAMES)
    assert repr(models.health()) == repr({action: policy.health() for action, policy in apart.items()})


def test_ties_go_to_the_first() -> None:
    """In the order of the actions, or in that of those that are named."""
    models, x = of_rule(sb.UCB(0.4)), contexts(1)[0]
    assert models.select(x) == "a"
    assert models.select(x, ["c", "b"]) == "c"
    assert models.top(x, 3) == ["a", "b", "c"]
    assert models.select(np.zeros(DIM)) == "a"


@pytest.mark.parametrize("baseline", [False, True])
@pytest.mark.parametrize("name", EVERY)
def test_select_is_the_first_argmax(name: str, baseline: bool) -> None:
    """Pruned or not, to the bit; with models that are equal, too. A baseline can only round into a tie."""
    random = np.random.default_rng(0)
    for dim, beta in ((1, 0.1), (9, 3.0), (33, 0.3), (60, 0.05)):
        models = sb.PerAction(
            range(9), partial(EVERY[name], dim, size=4, ridge=0.3, beta=beta, baseline=baseline)
        )
        for x in contexts(40, dim, seed=dim):
            scores, order = models.ucb(x), np.array(models.top(x, 9))
            assert order[0] == models.select(x)
            assert (np.diff(scores[order]) <= 0.0).all()
            if not baseline:
                assert order.tolist() == np.argsort(-scores, kind="stable").tolist()
            reward = float(random.standard_normal())
            models.update([x, x, x], [int(random.integers(7)), 7, 8], [reward] * 3)


@pytest.mark.parametrize("rule", RULES)
def test_probabilities_are_those_of_the_choices(rule: str) -> None:
    """20,000 choices for the rules that draw, chi-square against what was said."""
    models = play(of_rule(RULES[rule]), 30)
    x = contexts(1, seed=5)[0]
    subset: list[str | int] = ["c", "a", 7]
    for actions in (None, subset):
        names = actions or NAMES
        chances = models.probabilities(x, actions)
        assert chances.sum() == pytest.approx(1.0)
        if not RULES[rule].is_random:
            assert chances[names.index(models.select(x, actions))] == 1.0
            continue
        draws = 20_000 if rule in ("thompson", "inverse gap") and actions is None else 2_000
        if rule == "thompson batch":
            chosen = [models.select(x, actions) for _ in range(draws)]
        else:
            chosen = models.select_many(np.tile(x, (draws, 1)), actions)
        found = np.array([float(chosen.count(name)) for name in names])
        if RULES[rule].exact_probabilities:
            assert (found[chances == 0.0] == 0.0).all()
            some = chances > 0.0
            assert len(found[some]) == 1 or chisquare(found[some], draws * chances[some]).pvalue > 1e-3
        else:  # both are sampled
            error = np.sqrt(chances * (1 - chances) * (1 / draws + 1 / RULES[rule].samples))  # type: ignore[attr-defined]
            assert (np.abs(found / draws - chances) <= 4.0 * error + 1e-3).all()


def test_thompson_draws_every_action_for_itself() -> None:
    """Scores are means + radius·width·z with independent z: their chances are an integral."""
    rule = sb.Thompson(0.5, samples=200_000, seed=0)
    models = play(of_rule(rule), 40)
    x = contexts(1, seed=5)[0]
    means, spread = models.mean(x), 0.5 * models.width(x)
    scores = means + spread * np.random.default_rng(9).standard_normal((400_000, 4))
    wanted = np.bincount(scores.argmax(axis=1), minlength=4) / 400_000
    assert np.allclose(models.probabilities(x), wanted, atol=5e-3)
    generator, twin = np.random.default_rng(3), np.random.default_rng(3)
    drawn = means + spread * twin.standard_normal(4)
    assert models.select(x, random=generator) == NAMES[int(drawn.argmax())]
    assert generator.bit_generator.state == twin.bit_generator.state


def test_thompson_of_a_zero_context_is_certain() -> None:
    """No action has a width: the first is chosen, and its probability is one."""
    models = of_rule(sb.Thompson(0.5, seed=0))
    assert models.probabilities(np.zeros(DIM)).tolist() == [1.0, 0.0, 0.0, 0.0]
    assert {models.select(np.zeros(DIM)) for _ in range(20)} == {"a"}


def test_one_theta_an_action_for_a_batch() -> None:
    """per="batch": equal contexts get equal answers, and the scores are those of a theta for each action."""
    models = play(of_rule(sb.Thompson(2.0, per="batch", samples=200, seed=0)), 40)
    x = contexts(1, seed=5)[0]
    answers = [models.select_many(np.tile(x, (30, 1))) for _ in range(40)]
    assert all(len(set(answer)) == 1 for answer in answers)
    assert len({answer[0] for answer in answers}) > 1
    generator, twin = np.random.default_rng(3), np.random.default_rng(3)
    batch = contexts(20, seed=6)
    chosen = models.select_many(batch, random=generator)
    thetas = [
        policy.theta + 2.0 * policy.precision.sample_direction(twin) for policy in models.policies.values()
    ]
    assert chosen == [NAMES[int(k)] for k in (batch @ np.array(thetas).T).argmax(axis=1)]
    assert [c.action for c in models.choose_many(batch, random=np.random.default_rng(3))] == chosen


def test_theorems_add_up() -> None:
    """Each action has the radius of its own model; the bound on all errors is the sum."""
    models = play(of_rule(sb.InverseGap(CONFIDENCE, seed=1)), 60)
    seen = {}

    class Looking(sb.Explore):
        beta = CONFIDENCE
        draws = False

        def choose(self, candidates: sb.Candidates, count: int, random: Any) -> list[int]:
            del random
            seen["radius"], seen["rounds"] = candidates.radius, candidates.rounds
            seen["bound"] = candidates.regression_bound(CONFIDENCE)
            seen["bonus"] = candidates.bonus(2), candidates.bonuses()[2]
            seen["most"] = (candidates.bonuses() <= candidates.most_bonuses() * (1 + 1e-12)).all()
            return list(range(count))

    looking = of_rule(Looking())
    for action, policy in models.policies.items():
        looking[action].sketch.merge(policy.sketch)
        looking[action]._posterior.rounds = policy.rounds
    x = contexts(1)[0]
    looking.select(x)
    assert seen["radius"].tolist() == [policy.radius for policy in looking.policies.values()]
    assert len(set(seen["radius"])) == 4
    assert seen["rounds"] == 60
    assert seen["most"]
    assert seen["bonus"][0] == seen["bonus"][1] == looking["c"].radius * looking["c"].width(x)
    alone = [looking[name]._posterior.candidates(looking[name]._features.read(x)) for name in NAMES]
    assert seen["bound"] == pytest.approx(sum(one.regression_bound(CONFIDENCE) for one in alone))


@pytest.mark.parametrize("rule", RULES)
def test_many_contexts_are_a_loop(rule: str) -> None:
    """Choices, probabilities and the generator; per="batch" draws once, which is another thing."""
    models = play(of_rule(RULES[rule]), 40)
    batch = contexts(25, seed=3)
    offered: tuple[list[str | int] | None, ...] = (None, [7, "b"])
    for actions in offered:
        loop, many, choosing = (copy.deepcopy(models) for _ in range(3))
        one_by_one = [loop.choose(x, actions) for x in batch]
        for form in (np.asarray, sparse.csr_array, np.ndarray.tolist):
            assert len(copy.deepcopy(models).select_many(form(batch), actions)) == 25
        if rule == "thompson batch":
            continue
        assert many.select_many(batch, actions) == [choice.action for choice in one_by_one]
        assert choosing.choose_many(batch, actions) == one_by_one
        assert saved(many) == saved(choosing) == saved(loop)


@pytest.mark.parametrize("rule", RULES)
def test_what_a_choice_tells(rule: str) -> None:
    """Its probability, mean, width and score; a slate's are those of its places; asking leaves no trace."""
    models = play(of_rule(RULES[rule]), 40)
    for x in contexts(5, seed=4):
        before = saved(models)
        chances, means, widths, scores = (
            ask(x) for ask in (models.probabilities, models.mean, models.width, models.ucb)
        )
        assert models.scores(x).probabilities().tolist() == chances.tolist()
        assert saved(models) == before
        twin = copy.deepcopy(models)
        choice = models.choose(x)
        assert choice.action == twin.select(x)
        at = NAMES.index(choice.action)
        chance = models.scores(x).propensity(at)
        assert choice[1:] == pytest.approx((chance, means[at], widths[at], scores[at]), rel=1e-9)
        assert chance == pytest.approx(chances[at], abs=1.0 / 500)
        twin = copy.deepcopy(models)
        slate = models.slate(x, 4)
        assert [c.action for c in slate] == twin.top(x, 4)
        assert sorted(map(str, (c.action for c in slate))) == sorted(map(str, NAMES))
        assert slate[0].probability == models.scores(x).propensity(NAMES.index(slate[0].action))
        assert slate[-1].probability == pytest.approx(1.0)


def test_the_callers_generator_moves_instead() -> None:
    """With random= the own one stays where it is."""
    models, x = of_rule(sb.EpsilonGreedy(0.9, seed=1)), contexts(1)[0]
    before = saved(models)
    asked = [models.select(x, random=np.random.default_rng(seed)) for seed in range(30)]
    again = [models.choose(x, random=np.random.default_rng(seed)).action for seed in range(30)]
    models.top(x, 2, random=np.random.default_rng(0))
    models.select_many([x, x], random=np.random.default_rng(0))
    assert asked == again
    assert len(set(asked)) > 1
    assert saved(models) == before
    with pytest.raises(sb.InputTypeError, match="default_rng"):
        models.select(x, random=0)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["adaptive", "oful"])
def test_only_models_that_can_win_are_asked_for_a_width(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One action is far ahead: one width."""
    models = sb.PerAction(range(20), lambda: EVERY[name](40, size=4, ridge=1.0, beta=0.1))
    x = contexts(1, 40)[0]
    models.update(np.tile(x, (60, 1)), list(range(20)) * 3, [float(k == 11) for k in range(20)] * 3)
    asked: list[Any] = []

    def noting(call: Any) -> Any:
        def noted(*arguments: Any) -> Any:
            asked.append(arguments)
            return call(*arguments)

        return noted

    inverse: Any = type(models[0].precision.inverse)
    monkeypatch.setattr(inverse, "leverage", noting(inverse.leverage))
    compiled = kernels()
    if compiled is not None:
        monkeypatch.setattr(compiled, "leverage_above", noting(compiled.leverage_above))
    assert models.select(x) == 11
    assert len(asked) == 1


@pytest.mark.parametrize("backend", ["compiled"], indirect=True)
@pytest.mark.parametrize("dim", [1, 2, 3, 4, 5, 7, 16, 19, 32, 33, 60])
def test_a_model_is_ruled_out_by_half_of_its_matrix(dim: int) -> None:
    """Never one whose score reaches what is to be beaten, and always one that stays clearly below."""
    random = np.random.default_rng(dim)
    model = sb.oful(dim, ridge=0.5)
    for t, arm in enumerate(contexts(3 * dim + 9, dim, seed=dim)):
        model.update(3.0 * arm, 1.0)
        inverse: Any = model.precision.inverse
        if t < dim or not hasattr(inverse, "pending"):
            continue
        x = random.standard_normal(dim) * 10.0 ** random.uniform(-3, 3, dim)
        width, norm_sq = model.width(x), float(x @ x)
        for share in (0.0, 0.5, 0.999, 1.0, 1.001, 1.5):
            may_win = kernels().may_win_dense(
                x, norm_sq, 2.0, 0.3, 2.0 + 0.3 * share * width, inverse.inverse, inverse.pending,
                inverse.pending_count, inverse.shift,
            )  # fmt: skip
            assert may_win or share > 1.0
            if share >= 1.5 and width**2 > 1e-6 * norm_sq:
                assert not may_win


# -- actions that come and go ------------------------------------------------------------------------------


def test_a_new_action_is_tried() -> None:
    """Its width is that of the prior, and its model knows nothing."""
    models = play(sb.PerAction(["a", "b"], lambda: sb.oful(DIM, beta=20.0)), 200)
    models.add("new")
    x = contexts(1)[0]
    assert models.actions == ("a", "b", "new")
    assert models.width(x)[2] == pytest.approx(1.0)
    assert models.mean(x)[2] == models["a"].baseline != 0.0
    assert models.select(x) == "new"
    assert models["new"].rounds == 0


def test_a_retired_action_is_not_offered_but_learns() -> None:
    """Rewards come late. Added again it is as it was, at its old place."""
    models = play(of_rule(sb.UCB(0.4)), 60)
    x = contexts(1)[0]
    models.retire("b")
    assert (models.actions, models.retired) == (("a", "c", 7), ("b",))
    assert (len(models), list(models), "a" in models, "b" in models) == (3, ["a", "c", 7], True, False)
    before, rounds = models["b"].mean(x), models["b"].rounds
    models.update(x, "b", 100.0)
    models.update([x, x], ["b", "a"], [100.0, 0.0])
    assert models["b"].mean(x) > before
    assert models["b"].rounds == rounds + 2
    assert len(models.mean(x)) == len(models.probabilities(x)) == 3
    assert models.select(x) != "b"
    with pytest.raises(sb.InputError, match=r"'b' is retired already; .* remove"):
        models.retire("b")
    assert set(models.health()) == set(models.policies) == set(NAMES)
    with pytest.raises(sb.InputError, match=r"'b' is retired; add\('b'\)"):
        models.select(x, ["a", "b"])
    models.add("b")
    assert models.actions == tuple(NAMES)
    assert models.select(x) == "b"
    models.remove("b")
    assert "b" not in models.policies
    with pytest.raises(sb.InputError, match="unknown action 'b'; there are 'a', 'c', 7; use add"):
        models.update(x, "b", 1.0)
    for action in ("a", "c", 7):
        models.retire(action)
    with pytest.raises(sb.InputError, match="all are retired"):
        models.select(x)
    models.remove("c")
    assert models.retired == ("a", 7)


def test_a_model_that_learns_by_itself_is_noticed() -> None:
    """Whoever changes a model that was handed out: scores follow it."""
    models = play(of_rule(sb.UCB(0.4)), 60)
    x = contexts(1)[0]
    for meddle in (
        lambda: models["c"].update(x, 50.0),
        lambda: models["b"].sketch.update(x),
        models[7].sketch.compress,
    ):
        meddle()
        assert np.allclose(models.ucb(x), [policy.ucb(x) for policy in models.policies.values()], rtol=1e-9)
        assert models.select(x) == "c"


# -- bad input ---------------------------------------------------------------------------------------------

NAN = np.full(DIM, np.nan)
X = contexts(3)
BAD: dict[str, tuple[Callable[[Any], Any], str]] = {
    "unknown": (lambda m: m.update(X[0], "z", 1.0), "unknown action 'z'; there are 'a', 'b', 'c', 7"),
    "unknown subset": (lambda m: m.select(X[0], ["a", "z"]), "unknown action 'z'"),
    "unknown item": (lambda m: m["z"], "unknown action 'z'"),
    "a float name": (lambda m: m.update(X[0], 1.5, 1.0), "string or an integer, got 1.5"),
    "a bool name": (lambda m: m.add(True), "string or an integer, got True"),
    "a name for a list": (lambda m: m.select(X[0], "ab"), "list of names"),
    "a number for a list": (lambda m: m.select(X[0], 7), "list of names"),
    "empty subset": (lambda m: m.select(X[0], []), "the list is empty"),
    "twice": (lambda m: m.select(X[0], ["a", "a"]), "'a' is there twice"),
    "added twice": (lambda m: m.add("a"), "'a' is offered already"),
    "retired unknown": (lambda m: m.retire("z"), "unknown action 'z'"),
    "short": (lambda m: m.select(X[0, :5]), "contexts have length 5, but dim is 12"),
    "short update": (lambda m: m.update(X[0, :5], "a", 1.0), "contexts have length 5, but dim is 12"),
    "nan": (lambda m: m.select(NAN), "context 0 contains nan"),
    "nan list": (lambda m: m.choose(NAN.tolist()), "context 0 contains nan"),
    "nan sparse": (lambda m: m.choose(sparse.csr_array(NAN[np.newaxis])), "context 0 contains nan"),
    "nan update": (lambda m: m.update(NAN, "a", 1.0), "contains nan"),
    "nan among many": (lambda m: m.select_many([X[0], NAN]), "context 1 contains nan"),
    "nan among many updates": (lambda m: m.update([X[0], NAN], ["a", "b"], [1.0, 1.0]), "context 1 contains"),
    "too long": (lambda m: m.select(np.full(DIM, 1e200)), "context 0 is too long"),
    "many for one": (lambda m: m.select(X), r"give one context of shape \(dim,\), got 3"),
    "none for one": (lambda m: m.select([]), r"give one context of shape \(dim,\), got 0"),
    "one for many": (lambda m: m.select_many(X[0]), "for one context use select"),
    "k": (lambda m: m.top(X[0], 5), "k is 5, but there are 4 actions"),
    "k of some": (lambda m: m.slate(X[0], 3, ["a", 7]), "k is 3, but there are 2 actions"),
    "nan reward": (lambda m: m.update(X[0], "a", float("nan")), "the reward is nan"),
    "rewards": (lambda m: m.update(X, ["a", "b", "c"], [1.0, 2.0]), "need 3 rewards"),
    "actions": (lambda m: m.update(X, ["a", "b"], [1.0, 2.0, 3.0]), "3 contexts need 3 actions, got 2"),
    "one action": (lambda m: m.update(X, "a", [1.0, 2.0, 3.0]), "3 contexts need as many actions, got one"),
    "a bad last one": (lambda m: m.update(X, ["a", "b", "z"], [1.0, 2.0, 3.0]), "unknown action 'z'"),
    "a long last one": (
        lambda m: m.update([X[0], X[1] * 1.2e154, X[1] * 1.2e154], ["a", "b", "b"], [1.0, 1.0, 1.0]),
        "overflow",
    ),
    "too long among many": (
        lambda m: m.update([X[0], X[1], X[1] * 1e200], ["a", "b", "b"], [1.0, 1.0, 1.0]),
        "context 2 is too long: .*rescale the contexts",
    ),
    "merge": (lambda m: m.merge(of_rule(sb.UCB(0.5))), "beta is|explore is"),
    "merge dim": (lambda m: m.merge(sb.PerAction(NAMES, lambda: sb.oful(3))), "dim is 12 here and 3 there"),
    "merge kind": (lambda m: m.merge(sb.oful(DIM)), "cannot merge LinUCB into PerAction"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_is_refused_changes_nothing(case: str, backend: str) -> None:
    """The message says what was seen, and what to do; generator and models are as before."""
    models = play(of_rule(RULES["ucb" if backend == "compiled" else "thompson"]), 20)
    before = saved(models)
    call, message = BAD[case]
    with pytest.raises(sb.SketchBanditError, match=message):
        call(models)
    assert saved(models) == before


def test_what_it_is_made_of_is_checked() -> None:
    """A list of distinct names, and a function that makes a fresh policy."""
    make = lambda: sb.oful(3)  # noqa: E731
    for actions, factory, message in (
        ([], make, "the list is empty"),
        (["a", 1, "a"], make, "'a' is there twice"),
        ("abc", make, "list of names"),
        (None, make, "list of names"),
        ([1.5], make, "string or an integer"),
        ([None], make, "string or an integer"),
        ([["a"]], make, "string or an integer"),
        (["a"], sb.oful(3), "factory is a LinUCB; give a function"),
        (["a"], None, "factory is a NoneType"),
        (["a"], lambda: sb.ExactSketch(3), "returned a ExactSketch"),
        (["a"], lambda: play(of_rule(sb.UCB(0.4)), 9)["a"], "of .* rounds; let it return a fresh one"),
    ):
        with pytest.raises(sb.SketchBanditError, match=message):
            sb.PerAction(actions, factory)  # type: ignore[arg-type]
    numbers = sb.PerAction(np.arange(3), make)
    assert numbers.actions == (0, 1, 2)
    assert type(numbers.select([1.0, 0.0, 0.0])) is int
    numbers.update([1.0, 0.0, 0.0], np.int64(1), 1)
    assert numbers[1].rounds == 1


def test_scores_that_overflow_name_the_action() -> None:
    """Rather than to choose between infinities."""
    models = sb.PerAction(["a", "b"], lambda: sb.oful(2, ridge=1e-3, baseline=False))
    models.update([1.0, 0.0], "b", 1e290)
    with pytest.raises(sb.InputError, match="score of action 'b' overflows"):
        models.select([1e100, 0.0])


# -- what it is made of ------------------------------------------------------------------------------------


class Doubled(sb.Linear):
    """Means that are no x'theta."""

    kind = "per-action-test-doubled"

    def scan(self, arms: Any) -> Any:
        """Twice what they are."""
        scan = super().scan(arms)
        return scan._replace(means=2.0 * scan.means)


class Second(sb.Explore):
    """The second best mean."""

    kind = "per-action-test-second"
    draws = False

    def choose(self, candidates: sb.Candidates, count: int, random: Any) -> list[int]:
        """By means alone."""
        del random
        best: list[int] = np.argsort(-candidates.means, kind="stable").tolist()
        return (best[1:] + best[:1])[:count]


def test_rules_and_estimates_of_ones_own(tmp_path: Path) -> None:
    """Both are asked; a file brings them back."""
    models = sb.PerAction(NAMES, lambda: sb.oful(DIM, explore=Second(), rewards=Doubled()))
    x = contexts(1)[0]
    models.update([x] * 4, NAMES, [1.0, 4.0, 3.0, 2.0])
    assert models.mean(x) == pytest.approx([1.0, 4.0, 3.0, 2.0])
    assert models.select(x) == "c"
    assert models.probabilities(x).tolist() == [0.0, 0.0, 1.0, 0.0]
    models.save(tmp_path / "m")
    again = sb.load(tmp_path / "m", sb.PerAction)
    assert again.top(x, 4) == ["c", 7, "a", "b"]


def test_an_answer_that_is_none_is_refused() -> None:
    """A rule that answers nonsense, and a reward that an estimate has no place for."""

    class Wild(sb.Explore):
        def choose(self, candidates: Any, count: int, random: Any) -> Any:
            del candidates, count
            random.random()
            return [9]

    class Positive(sb.Linear):
        def check_reward(self, reward: float) -> None:
            if reward < 0.0:
                raise sb.InputError("not negative")

    models = sb.PerAction(NAMES, lambda: sb.oful(DIM, explore=Wild(seed=0), rewards=Positive()))
    state = models._chooser.random.bit_generator.state
    for call in (models.select, models.choose, lambda x: models.top(x, 1), lambda x: models.select_many([x])):
        with pytest.raises(sb.InputError, match="must return 1 different indices from 0 to 3"):
            call(X[0])
    assert models._chooser.random.bit_generator.state == state
    with pytest.raises(sb.InputError, match="not negative"):
        models.update(X, ["a", "b", "c"], [1.0, 1.0, -1.0])
    assert models.rounds == 0


def test_frames_are_put_in_order() -> None:
    """Columns are known by name from the first frame on, whichever action learns."""
    frame = pd.DataFrame(contexts(6, 3), columns=["x", "y", "z"])
    models, plain = (sb.PerAction(["a", "b"], lambda: sb.oful(3)) for _ in range(2))
    models.update(frame, ["a", "b"] * 3, range(6))
    plain.update(frame.to_numpy(), ["a", "b"] * 3, range(6))
    assert models.columns == ("x", "y", "z")
    turned = frame[["z", "x", "y"]]
    assert models.ucb(turned.iloc[0]).tolist() == plain.ucb(frame.to_numpy()[0]).tolist()
    assert models.select_many(turned) == plain.select_many(frame.to_numpy())
    assert models["a"].columns == ("x", "y", "z")
    with pytest.raises(sb.InputError, match="'y' missing"):
        models.select(frame[["x", "z"]])


def test_a_warning_names_the_action() -> None:
    """A sketch that is too small says of which action it is."""
    models = sb.PerAction(["a", "b"], lambda: sb.soful(40, size=3))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for x in contexts(300, 40):
            models.update(x, "b", 0.0)
    assert [warning.category for warning in caught] == [sb.SketchTooSmallWarning]
    assert str(caught[0].message).startswith("action 'b': ")
    assert caught[0].filename == __file__


# -- files, copies, merging, threads -----------------------------------------------------------------------


@pytest.mark.cores
@pytest.mark.parametrize("rule", RULES)
def test_load_then_continue(rule: str, tmp_path: Path) -> None:
    """Bit for bit, retired and new actions included; and a copy or a pickle does."""
    models = of_rule(RULES[rule])
    play(models, 20)
    models.retire("b")
    models.add("new")
    models.save(tmp_path / "m")
    loaded = sb.load(tmp_path / "m", sb.PerAction)
    pickled = pickle.loads(pickle.dumps(models))  # noqa: S301  (our own bytes)
    twins = [models, loaded, copy.copy(models), copy.deepcopy(models), pickled]
    for twin in twins:
        play(twin, 30, seed=2)
        twin.add("b")
        twin.add("newer")
        play(twin, 10, seed=3)
    assert all(saved(twin) == saved(models) for twin in twins[1:])
    assert loaded.actions == ("a", "b", "c", 7, "new", "newer")
    assert type(sb.load(tmp_path / "m")) is sb.PerAction


@pytest.mark.parametrize("name", EVERY)
def test_every_recipe_is_saved(name: str, tmp_path: Path) -> None:
    """And goes on the same; what a choice has computed is what an update would."""
    models = sb.PerAction(NAMES, lambda: EVERY[name](30, size=4, ridge=1.0, beta=0.3))
    play(models, 120)
    models.save(tmp_path / "m")
    asked, silent = models, sb.load(tmp_path / "m", sb.PerAction)
    for x in contexts(40, 30, seed=1):
        chosen = asked.select(x)
        for one in (asked, silent):
            one.update(x.copy(), chosen, 0.3)
    assert saved(asked) == saved(silent)
    with pytest.raises(sb.FileError, match="holds PerAction, not LinUCB"):
        sb.load(tmp_path / "m", sb.Policy)


def test_merge_is_learning_both() -> None:
    """The union of actions; what both have learned of one adds up; the other is left alone."""

    def make(*names: Any) -> sb.PerAction:
        return sb.PerAction(names, lambda: sb.oful(DIM, ridge=0.7))

    one, other, both = make("a", "b"), make("b", "c", "d"), make("a", "b", "c", "d")
    random = np.random.default_rng(0)
    for x in contexts(200):
        part = one if random.random() < 0.5 else other
        action = part.actions[int(random.integers(len(part.actions)))]
        for models in (part, both):
            models.update(x, action, float(x[0]))
    other.retire("d")
    other.retire("b")
    untouched = saved(other)
    one.merge(other)
    assert saved(other) == untouched
    assert one.rounds == both.rounds == 200
    assert (one.actions, one.retired) == (("a", "b", "c"), ("d",))
    one.add("d")
    for x in contexts(20, seed=1):
        assert np.allclose(one.ucb(x), both.ucb(x), rtol=1e-9)
        assert one.select(x) == both.select(x)
    one.merge(one)
    assert one.rounds == 400


def test_memory_is_counted() -> None:
    """That of every model, retired ones too; one that is removed gives it back."""
    models = play(of_rule(sb.UCB(0.4)), 40)
    whole = models.nbytes
    assert whole >= sum(policy.nbytes for policy in models.policies.values())
    models.retire("a")
    assert models.nbytes > whole - models["b"].nbytes
    models.remove("a")
    assert models.nbytes <= whole - models["b"].nbytes
    assert repr(models) == (
        "<PerAction(3 actions, each LinUCB on ExactSketch, explore=UCB(beta=0.4)): "
        f"{models.rounds} rounds, {models.nbytes:,} bytes>"
    )


def test_threads_share_it() -> None:
    """No update is lost; and while one thread holds the lock, nobody gets past it, nor into a model."""
    models = of_rule(sb.Thompson(0.4, samples=50, seed=0))

    def work(seed: int) -> None:
        for t, x in enumerate(contexts(60, seed=seed)):
            action = models.select(x)
            models.update(x, action, 0.5)
            models.choose(x)
            models["a"].ucb(x)
            if t % 20 == 10:
                models.add(f"{seed}-{t}")
                copy.deepcopy(models).merge(models)

    with switching_often():
        all_at_once(*(lambda seed=seed: work(seed) for seed in range(4)))
    assert models.rounds == 240
    assert len(models.actions) == 16
    locks = {id(policy._lock) for policy in models.policies.values()}
    locks |= {id(policy.sketch._lock) for policy in models.policies.values()}
    assert locks == {id(models._lock)}
    twin = copy.deepcopy(models)
    assert twin["a"]._lock is twin._lock is not models._lock


@pytest.mark.parametrize("backend", ["compiled"], indirect=True)
def test_nobody_gets_past_the_lock() -> None:
    """While one thread holds the lock, no public call of another comes back, nor one of a model."""
    models, x, came_back = of_rule(sb.UCB(0.4)), X[0], list[str]()
    arguments: dict[str, tuple[Any, ...]] = {
        **dict.fromkeys(
            ["select", "choose", "probabilities", "scores", "mean", "margin", "width", "ucb"], (x,)
        ),
        **dict.fromkeys(["top", "slate", "rank"], (x, 2)),
        **dict.fromkeys(["select_many", "choose_many"], (X,)),
        **dict.fromkeys(["retire", "remove"], ("a",)),
        "update": (x, "b", 1.0),
        "add": ("new",),
        "read_by": (sb.Scaling.rows(len(x)),),
        "merge": (of_rule(sb.UCB(0.4)),),
        "save": ("/nowhere/at/all",),
    }
    todo: dict[str, Callable[[], Any]] = {"item": lambda: models["b"], "model": partial(models["b"].ucb, x)}
    for name in dir(sb.PerAction):
        member = getattr(sb.PerAction, name)
        if name.startswith("_") or hasattr(member, "_needs_the_lock") or inspect.ismethod(member):
            continue
        if isinstance(member, property) and name not in {"dim", "dtype"}:
            todo[name] = partial(getattr, models, name)
        elif callable(member):
            todo[name] = partial(getattr(models, name), *arguments.get(name, ()))

    def call(name: str) -> None:
        with suppress(OSError, sb.InputError):  # what another thread has retired
            todo[name]()
        came_back.append(name)

    waiting = [threading.Thread(target=call, args=(name,), daemon=True) for name in todo]
    with models._lock:
        for thread in waiting:
            thread.start()
        waiting[-1].join(0.2)
        assert not came_back
    for thread in waiting:
        thread.join(10.0)
    assert sorted(came_back) == sorted(todo)


@pytest.mark.parametrize("backend", ["compiled"], indirect=True)
def test_compiled_loops_look_before_they_read() -> None:
    """Arrays of the wrong size are refused, not read past their end."""
    compiled = kernels()
    x, thetas, which, two, room = np.ones(8), np.ones((2, 8)), np.array([0, 1]), np.ones(2), np.empty(2)
    images, lags = np.ones((2, 8)), np.zeros(2)
    rows, factor, y = np.ones((5, 8)), np.eye(5), np.empty(5)
    calls: tuple[Callable[[], Any], ...] = (
        lambda: compiled.score_models(x[:7], thetas, images, lags, which, two, two, room, room),
        lambda: compiled.score_models(x, thetas, images[:, :7].copy(), lags, which, two, two, room, room),
        lambda: compiled.score_models(x, thetas, images, lags[:1], which, two, two, room, room),
        lambda: compiled.score_models(x, thetas, images, lags, which + 1, two, two, room, room),
        lambda: compiled.score_models(x, thetas, images, lags, which - 1, two, two, room, room),
        lambda: compiled.score_models(x, thetas, images, lags, which, two[:1], two, room, room),
        lambda: compiled.score_models(x, thetas, images, lags, which, two, two, room[:1], room),
        lambda: compiled.may_win_dense(x, 8.0, 0.0, 1.0, 0.0, np.eye(7), rows, 5, 1.0),
        lambda: compiled.may_win_dense(x, 8.0, 0.0, 1.0, 0.0, np.eye(8), rows, 6, 1.0),
        lambda: compiled.may_win_dense(x, 8.0, 0.0, 1.0, 0.0, np.eye(8), rows[:, :7].copy(), 5, 1.0),
        lambda: compiled.leverage_above(x, 8.0, 0.0, 1.0, 0.0, rows[:4], factor, 5, 1.0, y, y),
        lambda: compiled.leverage_above(x, 8.0, 0.0, 1.0, 0.0, rows, factor, 5, 1.0, y[:4], y),
    )
    for call in calls:
        with pytest.raises(ValueError, match="wrong size"):
            call()


def test_models_of_different_clocks_do_not_merge() -> None:
    """Nor those of different rewards: said by name, and nothing changes."""
    one = sb.PerAction(["a"], lambda: sb.oful(2, forget=0.9))
    one.update([1.0, 0.0], "a", 1.0)
    before = repr(one.dump())
    for wrong, says in (
        ({"forget": 0.8}, "forget is"),
        ({}, "forget is"),
        ({"rewards": sb.Robust()}, "rewards is"),
    ):
        other = sb.PerAction(["a", "b"], partial(sb.oful, 2, **wrong))
        other.update([1.0, 0.0], "a", 1.0)
        with pytest.raises(sb.MergeError, match=says):
            one.merge(other)
    assert repr(one.dump()) == before
