"""A scaling fits whatever arms are like: products, power laws, units far apart, gross errors, drift."""

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import sketchbandit as sb
from sketchbandit.features.fitting import Sample, fitted, without_outliers
from sketchbandit_service.describing import describe
from sketchbandit_service.scaling_bytes import decode, encode
from tests.policies import Matrix, saved


def products(seed: int, actions: int = 28, rounds: int = 700) -> Iterator[tuple[Matrix, Matrix, float]]:
    """Outer products of a context and the features of actions: the rows of a request are alike."""
    random = np.random.default_rng(seed)
    features = random.standard_normal((actions, 8)) / np.sqrt(8)
    theta = random.standard_normal(80)
    for _ in range(rounds):
        context = random.standard_normal(10) / np.sqrt(10)
        arms = np.einsum("ak,f->akf", features, context).reshape(actions, -1)
        yield arms, arms @ theta, 0.3 * random.standard_normal()


def power_law(seed: int, dim: int = 50, rounds: int = 700) -> Iterator[tuple[Matrix, Matrix, float]]:
    """Columns of one unit whose deviations fall like 1/j."""
    random = np.random.default_rng(seed)
    theta = random.standard_normal(dim) / np.sqrt(dim)
    for _ in range(rounds):
        arms = random.standard_normal((10, dim)) / np.arange(1, dim + 1)
        yield arms, arms @ theta, 0.1 * random.standard_normal()


def units(seed: int, dim: int = 20, rounds: int = 700) -> Iterator[tuple[Matrix, Matrix, float]]:
    """Columns in units far apart, and off zero, each of which matters."""
    random = np.random.default_rng(seed)
    unit, theta = 10.0 ** random.uniform(-3, 3, dim), random.standard_normal(dim) / np.sqrt(dim)
    for _ in range(rounds):
        true = random.standard_normal((10, dim))
        yield (true + 2.0) * unit, true @ theta, 0.1 * random.standard_normal()


def lost(policy: Any, world: Any) -> float:
    """The regret, and what was chosen is learned from."""
    total = 0.0
    for arms, means, noise in world:
        chosen = policy.select(arms)
        total += means.max() - means[chosen]
        policy.update(arms[chosen], float(means[chosen] + noise))
    return total


@pytest.mark.parametrize(("world", "kind"), [(products, None), (power_law, None), (units, "columns")])
def test_the_default_is_near_the_best_fixed_scaling(world: Any, kind: Any) -> None:
    """Over three seeds; in a shorter run than the page's a late decision weighs more than there."""
    found: dict[Any, float] = {}
    for scaling in ("auto", kind):
        for seed in range(3):
            dim = next(iter(world(seed)))[0].shape[1]
            policy = sb.adaptive(dim, scaling=scaling, seed=seed)
            found[scaling] = found.get(scaling, 0.0) + lost(policy, world(seed))
    assert found["auto"] <= 1.3 * found[kind]


# -- gross errors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("large", [1e3, 1e6, 1e8])
@pytest.mark.parametrize("at", [0, 5])
def test_one_bad_request_does_not_ruin_the_scaling(large: float, at: int) -> None:
    """As the first, or later: what is earned then is what is earned without it."""
    random, policy = np.random.default_rng(0), sb.adaptive(3, seed=0)
    theta, earned, most = np.array([1.0, -0.5, 0.3]), 0.0, 0.0
    for number in range(600):
        if number == at:
            bad = np.array([[large] * 3, [0.0] * 3])
            policy.update(bad[policy.select(bad)], 0.5)
        arms = random.standard_normal((5, 3))
        means = arms @ theta
        chosen = policy.select(arms)
        policy.update(arms[chosen], float(means[chosen] + 0.1 * random.standard_normal()))
        earned, most = earned + means[chosen], most + means.max()
    assert earned > 0.97 * most


def test_bad_contexts_do_not_ruin_the_scaling_of_actions() -> None:
    """Its centres and deviations are those without them, nearly."""
    random = np.random.default_rng(0)
    models = sb.PerAction(["a", "b"], lambda: sb.adaptive(3, scaling="columns"))
    contexts = random.standard_normal((200, 3)) * [1.0, 10.0, 0.1] + 5.0
    contexts[[3, 70]] = 1e9
    models.select_many(contexts)
    assert not models.is_warming_up
    clean = np.delete(contexts, [3, 70], axis=0)
    scaling: Any = models.scaling
    assert np.allclose(scaling.centre, clean.mean(axis=0), atol=0.1 * clean.std(axis=0))
    deviations = scaling.bound / 3.0 / scaling.factor
    assert np.allclose(deviations, clean.std(axis=0), rtol=0.1)


@given(st.integers(0, 10**6))
def test_without_gross_errors_nothing_is_cut(seed: int) -> None:
    """Normal, skewed, offset, constant, binary and rare columns; dense or sparse: the very same arms."""
    random = np.random.default_rng(seed)
    count = int(random.integers(1, 300))
    arms = np.column_stack(
        [
            random.standard_normal(count),
            random.exponential(size=count),
            1.7e9 + random.random(count),
            np.full(count, 0.1),
            random.random(count) < 0.5,
            random.random(count) < 0.01,
            random.random(count) < 0.99,
        ]
    ).astype(float)
    assert without_outliers(arms) is arms
    matrix = sparse.csr_array(arms)
    assert without_outliers(matrix) is matrix


@given(st.integers(0, 10**6), st.floats(3.0, 200.0))
def test_gross_errors_are_cut_and_nothing_else(seed: int, power: float) -> None:
    """One entry in each of two columns, dense about the median or sparse about 0: the others stay."""
    random = np.random.default_rng(seed)
    arms = random.standard_normal((60, 4))
    arms[:, 3] = random.random(60) < 0.2
    arms[:2, 3] = 1.0
    rows = random.choice(60, 2, replace=False)
    bad = arms.copy()
    bad[rows, [0, 3]] = -(10.0**power)
    for form in (np.asarray, sparse.csr_array):
        cut = without_outliers(form(bad))
        found = cut.toarray() if sparse.issparse(cut) else cut
        assert (np.abs(found[rows, [0, 3]]) <= 4.0).all()
        left = np.ones(arms.shape, dtype=bool)
        left[rows, [0, 3]] = False
        assert np.array_equal(found[left], arms[left])


# -- rewards choose -------------------------------------------------------------------------------------


@given(st.integers(0, 10**6), st.sampled_from([1.0, 1e-200, 1e200]))
def test_the_choice_does_not_depend_on_the_unit_of_rewards(seed: int, unit: float) -> None:
    """Nor on what they share, nor on how they are parted among models; without rewards it is columns."""
    random = np.random.default_rng(seed)
    arms = random.standard_normal((120, 12)) / np.arange(1, 13) ** 2
    rewards = arms[:60] @ random.standard_normal(12)
    plain = fitted("auto", arms, 1.0, [(arms[:60], rewards)], 0.05)
    again = fitted("auto", arms, 1.0, [(arms[:60], unit * (rewards + 3.0)), (arms[:0], rewards[:0])], 0.05)
    assert plain == again
    assert fitted("auto", arms, 1.0) == fitted("columns", arms, 1.0)
    assert fitted("auto", arms, 1.0, [(arms[:60], np.full(60, 0.1))], 0.05) == fitted("columns", arms, 1.0)


# -- ranges ---------------------------------------------------------------------------------------------


def fed(policy: Any, rows: Matrix) -> Any:
    """One by one, with rewards of either sign."""
    for number, row in enumerate(rows):
        policy.update(row, float(number % 2))
    return policy


@pytest.mark.parametrize("make", [sb.oful, sb.adaptive, lambda dim, **more: sb.cbrap(dim, size=3, **more)])
def test_health_says_when_features_have_left_their_range(make: Any, tmp_path: Path) -> None:
    """And which, until they are back; blocks are single arms; a file knows it too."""
    rows = np.random.default_rng(0).standard_normal((1000, 4))
    at_once, policy = (make(4, scaling="columns", intercept=True) for _ in range(2))
    fed(policy, rows[:600])
    assert policy.health().out_of_range == ()
    rows[600:, 2] += 30.0
    fed(policy, rows[600:900])
    health = policy.health()
    assert health.out_of_range == (2,)
    assert "1 of 4 columns lies far outside" in health.sentence
    assert not describe(policy).is_healthy
    policy.save(tmp_path / "p")
    fed(fed(at_once, rows[:201]), rows[201:217])
    at_once.update(rows[217:900], np.arange(217, 900) % 2.0)
    loaded: Any = sb.load(tmp_path / "p")
    for other in (at_once, loaded):
        assert other.health().out_of_range == (2,)
        assert other._watch.ranges.dump() == policy._watch.ranges.dump()
    rows[900:, 2] -= 30.0
    fed(policy, np.concatenate([rows[900:]] * 3))
    assert policy.health().out_of_range == ()


def test_a_rare_feature_that_is_always_chosen_is_in_its_range() -> None:
    """It is many deviations out whenever it is there; so it was in the warm-up."""
    random, policy = np.random.default_rng(0), sb.oful(3, scaling="columns")
    for _ in range(800):
        arms = random.standard_normal((20, 3))
        arms[:, 1] = random.random(20) < 0.02
        policy.select(arms)
        policy.update(arms[arms[:, 1].argmax()], 1.0)
    assert not policy.is_warming_up
    assert policy.health().out_of_range == ()


def test_actions_and_sparse_arms_know_their_range() -> None:
    """Every model for itself; sparse columns from 0."""
    random = np.random.default_rng(0)
    models = sb.PerAction(["a", "b"], lambda: sb.oful(3, scaling="columns"))
    for number in range(900):
        x = random.standard_normal(3) + 50.0 * (number > 400) * np.array([0.0, 0.0, number % 2])
        models.update(x, "ab"[number % 2], 1.0)
    assert (models.health()["a"].out_of_range, models.health()["b"].out_of_range) == ((), (2,))
    policy = sb.oful(4, scaling="columns", forget=1000)
    for number in range(600):
        row = np.zeros((1, 4))
        row[0, number % 2] = 1.0 + 99.0 * (number > 300)
        row[0, 2] = 1.0
        policy.update(sparse.csr_array(row), [1.0])
    assert policy.health().out_of_range == (0,)  # every eighth arm is looked at


# -- digits ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("offset", [1e12, 1e13])
def test_columns_with_a_huge_offset_are_learned(offset: float) -> None:
    """Their deviations have digits enough."""
    random, policy = np.random.default_rng(0), sb.oful(2, scaling="columns", intercept=True)
    true, offsets = random.standard_normal((400, 2)), np.array([offset, 0.0])
    for row, reward in zip(true + offsets, true[:, 0].tolist(), strict=True):
        policy.update(row, reward)
    assert policy.health().enough_digits
    left = np.clip(true, -2.0, 2.0)
    assert np.corrcoef(policy.mean(left + offsets), left[:, 0])[0, 1] > 0.99


def test_columns_that_are_dropped_are_named() -> None:
    """Once by a warning, always by health; a constant column is no loss."""
    policy, rows = sb.oful(3, scaling="columns", intercept=True), np.full((600, 3), 0.1 + 0.2)
    rows[:, :2] = np.random.default_rng(0).standard_normal((600, 2)) + np.array([3e15, 0.0])
    with warnings.catch_warnings(record=True) as given_:
        warnings.simplefilter("always")
        fed(policy, rows)
    assert [warning.category for warning in given_] == [sb.TooFewDigitsWarning]
    health = policy.health()
    assert policy.scaling is not None
    assert policy.scaling.dropped == (0,)
    assert not health.enough_digits
    assert "taken as constant: 0. Subtract" in health.sentence


@pytest.mark.parametrize(
    "make", [sb.oful, lambda dim: sb.cbrap(dim, size=3), lambda dim: sb.soful(dim, size=9)]
)
def test_arms_that_are_too_long_are_named(make: Any) -> None:
    """Of length 10⁷: the sentence says so, whatever else there is to say."""
    policy = make(5)
    with pytest.warns(sb.TooFewDigitsWarning):
        fed(policy, 1e7 * np.random.default_rng(0).standard_normal((100, 5)))
    assert not policy.health().enough_digits
    assert "too long for float64" in policy.health().sentence


# -- bytes ----------------------------------------------------------------------------------------------


def test_the_reach_is_recorded() -> None:
    """In bytes and in files; it tells nothing about how arms are read."""
    scaling = sb.Scaling.columns([1.0, 2.0], [0.5, 0.5], bound=3.0, reach=[2.0, 7.0])
    read = decode(encode(scaling), 2)
    assert read == scaling == sb.Scaling.columns([1.0, 2.0], [0.5, 0.5], bound=3.0)
    for one in (read, sb.Scaling.undump(*scaling.dump())):
        assert one.reach is not None
        assert one.reach.tolist() == [2.0, 7.0]
    with pytest.raises(sb.InputError, match="reach needs a number per column"):
        sb.Scaling.columns([1.0], [1.0], reach=[1.0, 2.0])


def test_equal_updates_after_a_load_in_a_warm_up(tmp_path: Path) -> None:
    """Requests of many arms are thinned alike before and after a file."""
    random, policy = np.random.default_rng(0), sb.adaptive(3, seed=0)
    twin: Any = policy
    for number in range(90):
        if number % 20 == 9:
            policy.save(tmp_path / "p")
            twin = sb.load(tmp_path / "p")
        arms = random.standard_normal((40, 3))
        for one in (policy,) if twin is policy else (policy, twin):
            one.update(arms[one.select(arms)], float(arms[0, 0]))
    assert saved(twin) == saved(policy)


@pytest.mark.filterwarnings("ignore::sketchbandit.TooFewDigitsWarning")
def test_an_intercept_too_long_for_the_ridge_is_no_reason_to_stop() -> None:
    """The rewards cannot tell then which scaling is better."""
    policy, random = sb.oful(3, scaling="auto", intercept=1e8), np.random.default_rng(0)
    for _ in range(20):
        arms = random.standard_normal((4, 3))
        policy.update(arms[policy.select(arms)], float(random.standard_normal()))
    assert policy.rounds == 20


def test_a_merged_warm_up_goes_on_from_a_file_to_the_bit() -> None:
    """As many arms of each request are kept as before, whichever side they come from."""
    long, short = Sample(3), Sample(3)
    random = np.random.default_rng(0)
    for _ in range(130):
        long.add(random.standard_normal((3, 3)))
    for _ in range(5):
        short.add(random.standard_normal((50, 3)))
    long.merge(short)
    assert np.array_equal(long.rows, Sample.undump(*long.dump()).rows)
