"""The warm-up: what is offered teaches the scaling, it is fixed, and nothing of what was learned is lost."""

import copy
import json
import pickle
import threading
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import sketchbandit as sb
from sketchbandit.features.features import WARM_UP
from tests.policies import saved
from tests.scalings import FORMS, RECIPES, make, offer, play, raw_rounds

pytestmark = [
    pytest.mark.usefixtures("backend"),
    pytest.mark.filterwarnings("ignore::sketchbandit.SketchTooSmallWarning"),
]
DIM = 7
LEARNED = [("columns", False), ("auto", True), (None, True)]
"""Scaling and intercept of the policies that have a warm-up."""


def fresh(policy: Any, name: str, **more: Any) -> Any:
    """One that has the scaling of this policy from the start."""
    constant = policy.scaling.constant and policy._features.intercept
    return make(name, policy.dim, policy.scaling, intercept=constant, **more)


def learned(policy: Any) -> tuple[str, Any]:
    """What a policy would save, but for how the scaling came about."""
    scalars, arrays = saved(policy)
    found = json.loads(scalars)
    for part in (found, found.get("inner", {})):
        part.get("reader", {}).pop("wanted", None)
    return json.dumps(found), arrays


@pytest.mark.cores
@pytest.mark.usefixtures("short_warm_up")
@pytest.mark.parametrize("name", RECIPES)
@pytest.mark.parametrize(("wanted", "intercept"), LEARNED)
@pytest.mark.parametrize("form", ["float64", "csr"])
def test_after_the_warm_up_nothing_tells_that_there_was_one(
    name: str, wanted: Any, intercept: bool, form: str
) -> None:
    """The state is that of a policy which had the scaling all along, and the same rewards: to the bit."""
    policy, pairs = make(name, DIM, wanted, intercept=intercept), []
    ends = 0
    for t, (arms, rewards) in enumerate(raw_rounds(40, DIM, arms=14)):
        chosen = policy.select(FORMS[form](arms))
        pairs.append((FORMS[form](arms[[chosen]]), rewards[chosen]))
        policy.update(*pairs[-1])
        ends = t if policy.is_warming_up else ends
        assert policy.rounds == policy.sketch.count == t + 1
    assert 0 < ends < 39
    twin = fresh(policy, name)
    for arm, reward in pairs:
        twin.update(arm, reward)
    assert learned(policy) == learned(twin)


@pytest.mark.cores
@pytest.mark.parametrize("name", ["oful", "soful", "cbrap"])
@pytest.mark.parametrize(("size", "dtype"), [(3, np.float64), (40, np.float32)])
def test_blocks_are_single_arms_through_the_warm_up(name: str, size: int, dtype: Any) -> None:
    """Rewards without choices: the arms learned from are seen, and how they are packed does not matter."""
    random = np.random.default_rng(size)
    arms = random.standard_normal((WARM_UP - 1, DIM)) * 5.0 + 1.0
    rewards = random.standard_normal(WARM_UP - 1)
    one_by_one, in_blocks = (make(name, DIM, "columns", intercept=True, dtype=dtype) for _ in range(2))
    for arm, reward in zip(arms, rewards, strict=True):
        one_by_one.update(arm, reward)
    for start in range(0, len(arms), size):
        in_blocks.update(arms[start : start + size], rewards[start : start + size])
    assert saved(one_by_one) == saved(in_blocks)
    assert in_blocks.is_warming_up
    assert in_blocks.rounds == WARM_UP - 1
    more = random.standard_normal((size, DIM)), random.standard_normal(size)
    in_blocks.update(*more)
    for arm, reward in zip(*more, strict=True):
        one_by_one.update(arm, reward)
    assert in_blocks.scaling == one_by_one.scaling
    assert not in_blocks.is_warming_up
    assert saved(in_blocks.sketch) == saved(one_by_one.sketch)
    assert np.allclose(in_blocks.theta, one_by_one.theta, rtol=1e-9, atol=1e-12)


@pytest.mark.usefixtures("short_warm_up")
@pytest.mark.parametrize("name", RECIPES)
@pytest.mark.parametrize(("wanted", "intercept"), LEARNED)
def test_load_then_continue_at_every_stage(name: str, wanted: Any, intercept: bool, tmp_path: Path) -> None:
    """A file, a copy and a pickle go on to the bit, the generator included, though arms come in all forms."""
    policy = make(name, DIM, wanted, intercept=intercept, explore=sb.Thompson(0.3, seed=3))
    path = tmp_path / "policy.safetensors"
    forms = [FORMS[form] for form in ("float64", "csr", "lists")]
    for t, (arms, rewards) in enumerate(raw_rounds(36, DIM, arms=14)):
        twins = []
        if t % 5 == 0:
            policy.save(path)
            unpickled = pickle.loads(pickle.dumps(policy))  # noqa: S301  (our own)
            twins = [copy.deepcopy(policy), unpickled, sb.load(path)]
        index = policy.select(forms[t % 3](arms))
        policy.update(forms[t % 2](arms[[index]]), [rewards[index]])
        for twin in twins:
            assert twin.select(forms[t % 3](arms)) == index
            twin.update(forms[t % 2](arms[[index]]), [rewards[index]])
            assert saved(twin) == saved(policy)
            policy = twin
    assert not policy.is_warming_up


@pytest.mark.parametrize("name", ["soful", "cbrap"])
def test_only_choices_teach_the_scaling(name: str) -> None:
    """Every verb that offers arms counts them; those that only tell something leave no trace."""
    policy = make(name, DIM, "columns", intercept=True)
    (arms, _), *_ = raw_rounds(1, DIM)
    start = saved(policy)
    for tell in ("mean", "width", "ucb", "probabilities", "scores"):
        getattr(policy, tell)(arms)
    assert saved(policy) == start
    count = 0
    for verb in (
        policy.select,
        policy.choose,
        partial(policy.top, k=1),
        partial(policy.slate, k=1),
        lambda some: policy.select_many([some, some[:1]]),
        lambda some: policy.choose_many([some[:1], some]),
    ):
        verb(arms)
        count += 1 + (verb.__class__ is type(lambda: 0))
        assert policy.requests_seen == count
        assert policy.rounds == 0
    assert f"{count} of {WARM_UP} requests seen" in repr(policy)


@pytest.mark.usefixtures("short_warm_up")
@pytest.mark.parametrize("name", RECIPES)
def test_after_the_warm_up_asking_leaves_no_trace(name: str) -> None:
    """Not even in the scaling; and a batch is chosen from as in a loop."""
    policy = make(name, DIM, "auto", intercept=True, explore=sb.Thompson(0.3, seed=0))
    play(policy, raw_rounds(35, DIM, arms=14))
    before, scaling = saved(policy), policy.scaling
    sets = [arms for arms, _ in raw_rounds(8, DIM, seed=5)]
    random = [np.random.default_rng(4) for _ in range(2)]
    in_a_loop = [policy.select(arms, random=random[0]) for arms in sets]
    assert policy.select_many(sets, random=random[1]).tolist() == in_a_loop
    assert random[0].bit_generator.state == random[1].bit_generator.state
    assert saved(policy) == before
    assert policy.scaling is scaling


@pytest.mark.parametrize("wanted", ["columns", "auto"])
def test_the_fit_is_centre_and_deviation_of_what_was_offered(wanted: str) -> None:
    """After the warm-up: by column, cut at three deviations, of length one in the mean."""
    policy, offered = make("oful", DIM, wanted), []
    for arms, _ in raw_rounds(WARM_UP + 9, DIM, arms=2):
        if policy.is_warming_up:
            offered.append(arms)
        policy.select(arms)
    rows = np.concatenate(offered)
    scaling = policy.scaling
    assert len(offered) == WARM_UP
    assert np.allclose(scaling.centre, rows.mean(axis=0), rtol=1e-12)
    assert np.allclose(scaling.factor * rows.std(axis=0), scaling.bound / 3.0, rtol=1e-12)
    read = scaling.apply(rows)
    assert np.isclose(np.square(read).sum(axis=1).mean(), 1.0)
    assert np.abs(read).max() <= scaling.bound


def test_sparse_arms_are_never_centred() -> None:
    """Columns are divided by their root mean square; auto takes rows."""
    by_column, auto, mixed = (make("soful", DIM, wanted) for wanted in ("columns", "auto", "columns"))
    offered = []
    for t, (arms, rewards) in enumerate(raw_rounds(WARM_UP, DIM, arms=2)):
        if by_column.is_warming_up:
            offered.append(arms)
        for policy in (by_column, auto, mixed):
            given_arms = arms if policy is mixed and t % 2 else sparse.csr_array(arms)
            policy.select(given_arms)
            policy.update(given_arms[[0]], [rewards[0]])
    mean_squares = np.square(np.concatenate(offered)).mean(axis=0)
    assert not by_column.scaling.centres
    assert not mixed.scaling.centres
    assert np.allclose(by_column.scaling.factor * np.sqrt(mean_squares), by_column.scaling.bound / 3.0)
    assert auto.scaling == sb.Scaling.rows(DIM)


@pytest.mark.parametrize(("price", "kind"), [(20.0, "rows"), (5000.0, "columns")])
def test_auto_looks_at_the_size_of_sparse_columns(price: float, kind: str) -> None:
    """Words and one-hot columns are read as unit rows; beside a price these would leave nothing else."""
    random = np.random.default_rng(0)
    arms = np.zeros((200, DIM))
    arms[np.arange(200), random.integers(1, DIM, 200)] = 1.0
    arms[::2, 0] = price * (1.0 + random.random(100))
    policy = make("soful", DIM, "auto")
    offer(policy, sparse.csr_array(arms))
    assert policy.scaling.kind == kind
    assert not policy.scaling.centres


def test_a_scaling_of_the_warm_up_is_not_for_others() -> None:
    """It would be fixed there, with what few arms have told."""
    first, other = (make("soful", DIM, "columns") for _ in range(2))
    first.select(np.random.default_rng(0).standard_normal((5, DIM)))
    assert "provisional" in repr(first.scaling)
    with pytest.raises(sb.InputError, match="is_warming_up"):
        other.scaling = first.scaling
    with pytest.raises(sb.InputError, match="is_warming_up"):
        make("soful", DIM, first.scaling)
    assert other.is_warming_up
    offer(first, np.random.default_rng(0).standard_normal((200, DIM)))
    other.scaling = first.scaling
    assert other.scaling == first.scaling
    assert not other.is_warming_up


@pytest.mark.parametrize("wanted", ["columns", "auto", None])
@pytest.mark.parametrize(
    "arms",
    [
        np.array([[0.1, 0.2, 0.3]]),
        np.tile([0.1, 0.2, 0.3], (7, 1)),
        np.zeros((4, 3)),
        np.array([[1e300, 0.0, 0.0], [-1e300, 1.0, 0.0]]) * 1e-150,
        np.array([[1e-300, 2e-300, 0.0], [3e-300, 0.0, 0.0]]),
        np.array([[1e-320, 0.0, 0.0], [0.0, 0.0, 0.0]]),
        1.7e9 + np.arange(12.0).reshape(4, 3),
    ],
    ids=["one", "equal", "zero", "long", "tiny", "denormal", "times"],
)
def test_strange_arms(wanted: Any, arms: Any) -> None:
    """Offered all through the warm-up, some learned from: every number stays finite."""
    for given_arms in (arms, sparse.csr_array(arms)):
        policy = make("soful", 3, wanted, intercept=True)
        for t in range(9):
            chosen = policy.select(given_arms)
            policy.update(given_arms[[chosen]], [float(t % 3)])
        offer(policy, given_arms[np.arange(WARM_UP) % len(arms)])
        assert not policy.is_warming_up
        assert np.isfinite(policy.ucb(given_arms)).all()
        assert np.isfinite(policy.theta).all()
        assert np.isfinite(policy.scaling.lens).all()
        read = policy.scaling.apply(given_arms)
        assert np.isfinite(read.toarray() if sparse.issparse(read) else read).all()


def test_values_beyond_the_bound_are_cut_though_they_are_huge() -> None:
    """1e200 in the middle of a warm-up and after it: clipped, learned from, learned anew."""
    policy = make("oful", 3, "columns", intercept=True)
    for t, (arms, rewards) in enumerate(raw_rounds(WARM_UP + 20, 3)):
        if t > 3:
            arms[0] *= 1e200 if t % 5 == 0 else 1.0
        policy.select(arms)
        policy.update(arms[0], rewards[0])
    assert policy.rounds == WARM_UP + 20
    assert np.abs(policy.scaling.apply([[1e308, -1e308, 0.0]])).max() <= policy.scaling.bound
    assert np.isfinite(policy.ucb(arms)).all()


def test_a_column_that_did_not_vary_goes_by_its_largest_entry() -> None:
    """Constant to rounding, or zero; unix times beside shares of one go by their deviations."""
    random = np.random.default_rng(0)
    times, shares = 1.7e9 + 1e7 * random.random(200), 1e-4 * random.random(200)
    arms = np.column_stack([np.full(200, 0.1), np.zeros(200), times, shares, np.full(200, 1.7e9 + 0.1)])
    policy = make("oful", 5, "columns")
    offer(policy, arms)
    expected = [10.0, 1.0, 1.0 / times.std(), 1.0 / shares.std(), 1.0 / (1.7e9 + 0.1)]
    assert np.allclose(policy.scaling.factor * 3.0 / policy.scaling.bound, expected, rtol=1e-9)
    read = policy.scaling.apply(arms)
    assert np.allclose(read[:, [2, 3]].std(axis=0), np.sqrt(0.5))
    assert np.abs(read[:, [0, 1, 4]]).max() < 1e-12


def test_one_column() -> None:
    """dim 1, with an intercept: centred, and the constant beside it."""
    policy = make("oful", 1, "auto", intercept=True)
    offer(policy, np.arange(200.0)[:, np.newaxis])
    assert np.allclose(policy.scaling.centre, 99.5)
    policy.update([[3.0]], [1.0])
    assert policy.theta.shape == (2,)


def test_the_constant_is_as_long_as_was_asked_for_beside_an_arm() -> None:
    """True is an arm's length; a number counts beside arms of length one, or as it is."""
    arms = np.random.default_rng(0).standard_normal((200, 4)) * 50.0
    length = float(np.sqrt(np.square(arms).sum(axis=1).mean()))
    for wanted, intercept, constant in (
        (None, True, length),
        (None, 3.0, 3.0),
        ("rows", True, 1.0),
        ("rows", 2.0, 2.0),
        ("columns", True, 1.0),
        ("auto", 0.25, 0.25),
    ):
        policy = make("oful", 4, wanted, intercept=intercept)
        offer(policy, arms)
        assert np.isclose(policy.scaling.constant, constant)
        assert f"intercept={constant:.4g}" in repr(policy)


# -- setting it, merging --------------------------------------------------------------------------------


def test_a_scaling_may_be_set_in_the_warm_up() -> None:
    """What was learned is learned anew with it, and it is fixed."""
    policy, known = make("soful", DIM, "auto"), sb.Scaling.columns(np.ones(DIM), np.full(DIM, 0.1))
    play(policy, raw_rounds(9, DIM))
    policy.scaling = known
    assert not policy.is_warming_up
    assert policy.scaling == known
    assert policy.rounds == 9
    before = saved(policy)
    policy.scaling = known  # the same again
    assert saved(policy) == before
    with pytest.raises(sb.InputError, match="9 rewards were learned from"):
        policy.scaling = sb.Scaling.rows(DIM)
    assert saved(policy) == before


def test_scalings_that_cannot_be_set() -> None:
    """Another length, an intercept too many, what is none, one that overflows: nothing changes."""
    policy = make("soful", DIM, "auto")
    play(policy, raw_rounds(9, DIM))
    before = saved(policy)
    for scaling, says in (
        (sb.Scaling.rows(DIM + 1), "for 8 columns"),
        (sb.Scaling.rows(DIM, constant=1.0), "no intercept"),
        ("rows", "give a Scaling"),
        (None, "give a Scaling"),
        (sb.Scaling.columns(np.zeros(DIM), np.full(DIM, 1e300)), "cannot be read with that scaling"),
    ):
        with pytest.raises((sb.InputError, sb.InputTypeError), match=says):
            policy.scaling = scaling
        assert saved(policy) == before
    with pytest.raises(sb.InputError, match="scaling="):
        make("soful", DIM).scaling = sb.Scaling.rows(DIM)
    unlearned = make("soful", DIM, "rows")
    unlearned.scaling = sb.Scaling.columns(np.zeros(DIM), np.ones(DIM))
    assert unlearned.scaling.kind == "columns"


@pytest.mark.usefixtures("short_warm_up")
@pytest.mark.parametrize("name", RECIPES)
def test_what_was_learned_with_one_scaling_adds_up(name: str) -> None:
    """After the warm-up, or with a scaling that is given: as without scaling."""
    policy = make(name, DIM, "columns", intercept=True)
    play(policy, raw_rounds(35, DIM, arms=14))
    other = fresh(policy, name)
    play(other, raw_rounds(30, DIM, seed=2))
    mass = policy.sketch.mass + other.sketch.mass
    policy.merge(other)
    assert policy.rounds == policy.sketch.count == 65
    assert np.isclose(policy.sketch.mass, mass)


def test_two_warm_ups_become_one() -> None:
    """While both read alike: the arms seen add up, and so does what was learned, anew with what follows."""
    one, other = (make("oful", DIM, "columns", intercept=True) for _ in range(2))
    rows = np.concatenate([arms for arms, _ in raw_rounds(90, DIM)])
    for policy, some in ((one, rows[:120]), (other, rows[120:240])):
        policy.update(some[:3], [1.0, 2.0, 3.0])
        policy.scaling_due  # noqa: B018  (asking changes nothing)
    with pytest.raises(sb.MergeError, match="while they warm up"):
        one.merge(other)
    one.scaling = other.scaling = sb.Scaling.rows(DIM, constant=1.0)
    one.merge(other)
    assert one.rounds == 6


@pytest.mark.usefixtures("short_warm_up")
def test_equal_warm_ups_merge() -> None:
    """Two copies: twice the arms, every reward twice."""
    one = make("soful", DIM, "columns", intercept=True)
    play(one, raw_rounds(12, DIM))
    other, seen = copy.deepcopy(one), one.requests_seen
    one.merge(other)
    assert one.requests_seen == 2 * seen
    assert one.rounds == 24
    play(one, raw_rounds(60, DIM, seed=3))
    assert one.rounds == one.sketch.count == 84


@pytest.mark.parametrize(
    ("mine", "theirs", "says"),
    [
        (("columns", False), (None, False), "one has a scaling"),
        (("rows", True), ("rows", False), "different scalings"),
        (("rows", 0.5), ("rows", 0.7), "different scalings"),
        (("columns", True), ("auto", True), "'columns' here and 'auto' there"),
        (("rows", True), ("columns", True), "different scalings"),
    ],
)
def test_merges_that_are_refused(mine: Any, theirs: Any, says: str) -> None:
    """Those that read features otherwise, in the warm-up too; nothing changes."""
    one, other = (make("soful", DIM, wanted, intercept=constant) for wanted, constant in (mine, theirs))
    before = saved(one), saved(other)
    with pytest.raises(sb.MergeError, match=says):
        one.merge(other)
    assert (saved(one), saved(other)) == before


# -- what it tells --------------------------------------------------------------------------------------


def test_it_says_what_it_does() -> None:
    """repr and health: warming up, what was chosen; nothing where nothing is scaled."""
    policy = make("soful", DIM, "auto", intercept=True)
    assert "scaling='auto, warming up: 0 of 200 requests seen'" in repr(policy)
    policy.select(np.eye(DIM))
    assert policy.health().scaling == "auto, warming up: 1 of 200 requests seen"
    play(policy, raw_rounds(WARM_UP, DIM, arms=3))
    assert policy.health().scaling == "columns"
    assert "scaling='columns', intercept=1" in repr(policy)
    assert make("soful", DIM).health().scaling is None
    assert "scaling" not in repr(make("soful", DIM))


def test_bytes_of_the_warm_up_are_counted_and_given_back() -> None:
    """Arms seen, pairs kept, the blank sketch; afterwards only the numbers of the scaling."""
    policy, without = make("oful", DIM, "columns"), make("oful", DIM)
    (arms, rewards), *rest = raw_rounds(WARM_UP, DIM)
    policy.select(arms)
    policy.update(arms, rewards)
    without.update(arms, rewards)
    assert policy.nbytes - without.nbytes >= 2 * arms.nbytes
    for more, _ in rest:
        policy.select(more)
    twin = fresh(policy, "oful")
    for arm, reward in zip(arms, rewards, strict=True):
        twin.update(arm, reward)
    assert policy.nbytes == twin.nbytes
    assert policy._features.nbytes == (3 + 4 * DIM) * 8


@pytest.mark.usefixtures("short_warm_up")
def test_threads_share_a_warm_up() -> None:
    """Choices and rewards of many threads: none is lost, and every number is finite."""
    policy = make("soful", DIM, "columns", intercept=True)
    failures: list[BaseException] = []

    def work(seed: int) -> None:
        try:
            play(policy, raw_rounds(40, DIM, seed=seed))
        except BaseException as failure:  # raised below
            failures.append(failure)

    threads = [threading.Thread(target=work, args=(seed,), daemon=True) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60.0)
        assert not thread.is_alive()
    assert not failures
    assert policy.rounds == policy.sketch.count == 240
    assert not policy.is_warming_up


def test_one_request_does_not_end_the_warm_up() -> None:
    """What differs from request to request has to be seen too: requests count, and arms of each are kept."""
    policy, random = make("soful", DIM, "columns"), np.random.default_rng(0)
    for seen in range(1, WARM_UP):
        policy.select(random.standard_normal((1000, DIM)))
        assert policy.requests_seen == seen
        assert min(seen * 50, 100) <= policy._features.sample.rows.shape[0] <= 400
    policy.select(random.standard_normal((1000, DIM)))
    assert not policy.is_warming_up


def test_names_are_remembered_in_the_warm_up_of_actions() -> None:
    """A frame whose columns stand in another order is put in the order of the first."""
    models = sb.PerAction(["a"], lambda: sb.oful(2, scaling="columns"))
    models.update(pd.DataFrame({"x": [1.0], "y": [2.0]}), "a", 1.0)
    assert models.columns == ("x", "y")
    assert models.select_many(np.empty((0, 2))) == []


@pytest.mark.parametrize("reward", [Fraction(1, 2), np.array([[1.0]]), [1.0]])
def test_rewards_are_read_as_ever(reward: Any) -> None:
    """During the warm-up too."""
    policies = sb.oful(2), sb.oful(2, scaling="columns")
    for policy in policies:
        policy.update([1.0, 0.0], reward)
        assert policy.rounds == 1


class Doubled(sb.Linear):
    """Rewards count so many times."""

    kind = "doubled-for-a-test"
    factor = 1.0

    def learn(self, x: Any, reward: float, step: Any) -> None:
        """As one that is larger."""
        super().learn(x, self.factor * reward, step)

    def dump(self) -> Any:
        """With the factor."""
        scalars, arrays = super().dump()
        return {**scalars, "factor": self.factor}, arrays

    def restore(self, scalars: Any, arrays: Any) -> None:
        """With the factor."""
        super().restore(scalars, arrays)
        self.factor = scalars["factor"]


def test_settings_of_an_estimate_outlive_a_file_of_the_warm_up(tmp_path: Path) -> None:
    """What is begun anew after loading is the same estimate."""
    model, random = Doubled(), np.random.default_rng(0)
    model.factor = 5.0
    policy = sb.LinUCB(sb.ExactSketch(3), rewards=model, scaling="columns")
    for _ in range(3):
        policy.update(random.standard_normal(3), 1.0)
    policy.save(tmp_path / "p")
    loaded: Any = sb.load(tmp_path / "p")
    for one in (policy, loaded):
        for x in np.random.default_rng(1).standard_normal((250, 3)):
            one.update(x, 1.0)
    assert loaded.estimate.factor == 5.0
    assert np.array_equal(policy.theta, loaded.theta)
