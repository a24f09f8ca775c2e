"""Models of many actions share one scaling, and one warm-up."""

import copy
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import sketchbandit as sb
from sketchbandit.features.features import WARM_UP
from tests.policies import Matrix, saved
from tests.scalings import RECIPES, make

pytestmark = [
    pytest.mark.usefixtures("backend"),
    pytest.mark.filterwarnings("ignore::sketchbandit.SketchTooSmallWarning"),
]
DIM, NAMES = 5, ["a", "b", "c"]


def of_recipe(name: str = "soful", wanted: Any = "columns", **more: Any) -> sb.PerAction:
    """Models that have a warm-up."""
    return sb.PerAction(NAMES, lambda: make(name, DIM, wanted, intercept=True, **more))


def contexts(count: int, seed: int = 0) -> Matrix:
    """Raw: columns far apart in scale, off zero."""
    return np.random.default_rng(seed).standard_normal((count, DIM)) * [1e-3, 1.0, 7.0, 1e3, 1.0] + 3.0


def play(models: sb.PerAction, rows: Matrix, seed: int = 0) -> list[tuple[Matrix, Any, float]]:
    """Choose and learn; what was learned from."""
    random, pairs = np.random.default_rng(seed), []
    for x in rows:
        pairs.append((x, models.select(x), float(random.standard_normal())))
        models.update(*pairs[-1])
    return pairs


@pytest.mark.cores
@pytest.mark.parametrize("name", RECIPES)
@pytest.mark.parametrize("wanted", ["columns", "auto", None])
def test_after_the_warm_up_each_model_is_a_policy_that_had_the_scaling(name: str, wanted: Any) -> None:
    """Means, widths and theta of separate policies with that scaling, fed with the same."""
    models = of_recipe(name, wanted, baseline=False)
    pairs = play(models, contexts(WARM_UP - 1))
    assert models.requests_seen == WARM_UP - 1
    pairs += play(models, contexts(40, seed=1))
    assert not models.is_warming_up
    assert models.rounds == len(pairs)
    apart = {action: make(name, DIM, models.scaling, intercept=1.0, baseline=False) for action in NAMES}
    for x, action, reward in pairs:
        apart[action].update(x, reward)
    for action in NAMES:
        assert saved(models[action].sketch) == saved(apart[action].sketch)
        assert np.array_equal(models[action].theta, apart[action].theta)
    x = contexts(1, seed=3)
    assert np.allclose(models.ucb(x), [policy.ucb(x)[0] for policy in apart.values()], rtol=1e-9)


@pytest.mark.cores
@pytest.mark.parametrize("explore", [sb.UCB(0.3), sb.Thompson("auto", seed=2)], ids=repr)
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_load_then_continue(explore: sb.Explore, form: Any, tmp_path: Path) -> None:
    """At every stage, with actions that come, go and merge; file, copy and pickle go on to the bit."""
    models, path = of_recipe(explore=explore), tmp_path / "models.safetensors"
    rows = contexts(WARM_UP + 10)
    for t in range(0, len(rows), 30):
        models.save(path)
        twins: list[Any] = [models, copy.deepcopy(models), sb.load(path)]
        twins.append(pickle.loads(pickle.dumps(models)))  # noqa: S301  (our own)
        for twin in twins:
            if t == 30:
                twin.add("d")
                twin.retire("a")
            if t == 60:
                twin.remove("b")
                twin.add("a")
            if t == 90:
                twin.merge(copy.deepcopy(twin))
            for x in rows[t : t + 30]:
                twin.update(form(x[np.newaxis]), twin.select(form(x[np.newaxis])), float(x[1]))
            assert saved(twin) == saved(models)
        models = twins[2]
    assert not models.is_warming_up
    assert models["d"].scaling == models.scaling == models["a"].scaling


def test_what_was_learned_in_the_warm_up_is_kept_whoever_comes_and_goes() -> None:
    """A retired model learns late rewards, an added one begins, a removed one is gone; then all are fixed."""
    models = of_recipe()
    pairs = play(models, contexts(30))
    models.retire("a")
    models.add("new")
    models.update(contexts(1)[0], "a", 1.0)
    play(models, contexts(30, seed=1))
    counts = {action: policy.rounds for action, policy in models.policies.items()}
    assert counts["a"] == sum(action == "a" for _, action, _ in pairs) + 1
    assert counts["new"] > 0
    models.remove("b")
    models.scaling = sb.Scaling.rows(DIM, constant=1.0)
    assert {name: policy.rounds for name, policy in models.policies.items()} == {
        name: count for name, count in counts.items() if name != "b"
    }
    assert all(policy.sketch.count == policy.rounds for policy in models.policies.values())
    assert not models["new"].is_warming_up


def test_a_model_has_no_scaling_of_its_own() -> None:
    """It is that of all of them: set there, and nowhere else."""
    models = of_recipe()
    with pytest.raises(sb.InputError, match=r"models\.scaling"):
        models["a"].scaling = sb.Scaling.rows(DIM, constant=1.0)
    assert models.is_warming_up


def test_refused_contexts_teach_nothing() -> None:
    """Not finite, of another length, an unknown action, a bad reward in a block."""
    models = of_recipe()
    play(models, contexts(9))
    before, bad = saved(models), contexts(2)
    bad[1, 3] = np.inf
    calls: Any = [
        lambda: models.select(bad[1]),
        lambda: models.choose(sparse.csr_array(bad[1:])),
        lambda: models.select_many(bad),
        lambda: models.top(bad[1], 2),
        lambda: models.select(np.ones(DIM + 1)),
        lambda: models.update(bad, ["a", "b"], [1.0, 1.0]),
        lambda: models.update(bad[0], "z", 1.0),
        lambda: models.update(contexts(2), ["a", "b"], [1.0, np.nan]),
    ]
    for call in calls:
        with pytest.raises((sb.InputError, sb.InputTypeError)):
            call()
        assert saved(models) == before
    with pytest.raises(sb.InputError, match="context 1 contains inf"):
        models.select_many(bad)
    for tell in ("mean", "width", "ucb", "probabilities", "scores"):
        getattr(models, tell)(contexts(1)[0])
    assert saved(models) == before


def test_blocks_are_single_contexts_through_the_warm_up() -> None:
    """How rewards are packed is the same to the bit, as long as the scaling is learned."""
    at_once, one_by_one = of_recipe(), of_recipe()
    rows, random = contexts(WARM_UP - 1), np.random.default_rng(0)
    actions = [NAMES[i] for i in random.integers(3, size=len(rows))]
    rewards = random.standard_normal(len(rows))
    for x, action, reward in zip(rows, actions, rewards.tolist(), strict=True):
        one_by_one.update(x, action, reward)
    for start in range(0, len(rows), 17):
        some = slice(start, start + 17)
        at_once.update(rows[some], actions[some], rewards[some])
    assert saved(at_once) == saved(one_by_one)
    for models in (at_once, one_by_one):
        models.update(rows[:2], ["a", "b"], [1.0, 2.0])
        assert not models.is_warming_up
        assert models.rounds == WARM_UP + 1


def test_merges_of_sets_that_warm_up() -> None:
    """Equal ones add up, with actions that only one of them has; others are refused, and nothing changes."""
    one = of_recipe()
    play(one, contexts(20))
    other = copy.deepcopy(one)
    other.add("d")
    one.merge(other)
    assert one.rounds == 40
    assert one.actions == ("a", "b", "c", "d")
    different = of_recipe()
    play(different, contexts(20, seed=5))
    before = saved(one)
    with pytest.raises(sb.MergeError, match="different scalings"):
        one.merge(different)
    assert saved(one) == before
    play(one, contexts(WARM_UP, seed=6))
    assert not one.is_warming_up
    assert one.rounds == 40 + WARM_UP


def test_bytes_of_the_warm_up_are_counted() -> None:
    """Contexts seen, and pairs kept by any model."""
    models = of_recipe("oful")
    before = models.nbytes
    rows = contexts(20)
    play(models, rows)
    held = sum(policy.nbytes for policy in models.policies.values())
    assert models.nbytes >= before + 2 * rows.nbytes
    assert models.nbytes > held
    assert f"{len(rows)} of {WARM_UP} requests seen" in repr(models)
    assert all("warming up" in str(health.scaling) for health in models.health().values())
