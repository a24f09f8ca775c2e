"""A policy that scales its arms is a plain policy that is given scaled arms."""

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import sketchbandit as sb
from sketchbandit.errors import FileError
from tests.policies import Matrix, saved
from tests.scalings import FORMS, RECIPES, SCALINGS, make, plain, raw_rounds, read_by
from tests.soak import examples

pytestmark = [
    pytest.mark.usefixtures("backend"),
    pytest.mark.filterwarnings("ignore::sketchbandit.SketchTooSmallWarning"),
]
DIM = 9


def same(one: Any, other: Any, arms: Any, scaled: Matrix) -> None:
    """Both tell the same, to rounding."""
    assert np.allclose(one.theta, other.theta, rtol=1e-8, atol=1e-9)
    for ask in ("mean", "width", "ucb"):
        assert np.allclose(getattr(one, ask)(arms), getattr(other, ask)(scaled), rtol=1e-8, atol=1e-9)
    assert np.allclose(one.radius, other.radius, rtol=1e-9)


def dense(rows: Any) -> Matrix:
    """As an array."""
    return np.asarray(rows.toarray() if sparse.issparse(rows) else rows)


@pytest.mark.parametrize("name", RECIPES)
@examples(10)
@given(seed=st.integers(0, 9999), kind=st.sampled_from(list(SCALINGS)), form=st.sampled_from(list(FORMS)))
def test_a_scaling_is_a_change_of_arms(name: str, seed: int, kind: str, form: str) -> None:
    """Numbers to rounding and the choices of all verbs, whatever the arms come as."""
    scaling, as_form = SCALINGS[kind](DIM), FORMS[form]
    ours, theirs = read_by(name, scaling), plain(name, scaling)
    for t, (arms, rewards) in enumerate(raw_rounds(30, DIM, seed=seed)):
        given_arms, scaled = as_form(arms), scaling.apply(arms)
        chosen, scores = ours.select(given_arms), theirs.ucb(scaled)
        assert scores[chosen] >= scores.max() - 1e-9  # the same, but for ties
        assert ours.choose(given_arms).index == chosen
        if t % 10 == 9:
            same(ours, theirs, given_arms, scaled)
            assert np.allclose(scores[ours.top(given_arms, 2)], np.sort(scores)[:-3:-1], rtol=0.0, atol=1e-9)
            sets = [given_arms, as_form(arms[:1]), given_arms]
            assert ours.select_many(sets).tolist() == [chosen, 0, chosen]
            assert [c.index for c in ours.choose_many(sets)] == [chosen, 0, chosen]
            ours.update(given_arms, rewards)
            theirs.update(scaled, rewards)
        ours.update(as_form(arms[[chosen]]), [rewards[chosen]])
        theirs.update(scaled[chosen], rewards[chosen])
    assert ours.rounds == theirs.rounds
    assert ours.dim == DIM
    assert ours.sketch.dim == theirs.sketch.dim


@pytest.mark.parametrize("kind", SCALINGS)
@pytest.mark.parametrize("explore", [sb.Thompson(0.3, seed=1), sb.UCB(0.3, floor=0.2, seed=1)], ids=repr)
def test_chance_falls_alike(kind: str, explore: sb.Explore) -> None:
    """The same draws in the scaled space: choices, probabilities and the generator."""
    scaling = SCALINGS[kind](DIM)
    ours, theirs = (of("soful", scaling, explore=explore) for of in (read_by, plain))
    for arms, rewards in raw_rounds(60, DIM):
        scaled = scaling.apply(arms)
        chosen = ours.select(arms)
        assert chosen == theirs.select(scaled)
        ours.update(arms[chosen], rewards[chosen])
        theirs.update(scaled[chosen], rewards[chosen])
    assert np.allclose(ours.probabilities(arms), theirs.probabilities(scaled), atol=0.03)  # estimates
    assert ours.random.bit_generator.state == theirs.random.bit_generator.state


@pytest.mark.usefixtures("short_warm_up")
@pytest.mark.parametrize("name", [name for name in RECIPES if name != "cbrap"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_certificate_holds_in_the_scaled_space(name: str, dtype: Any) -> None:
    """S'S <= Z'Z <= S'S + eI, Z all arms learned from as they are read, those of the warm-up too."""
    policy = make(name, 30, "columns", intercept=True, dtype=dtype)
    played = []
    for arms, rewards in raw_rounds(150, 30):
        chosen = policy.select(arms.astype(dtype))
        policy.update(arms[chosen].astype(dtype), rewards[chosen])
        played.append(arms[chosen])
    assert not policy.is_warming_up
    rows, sketch = policy.scaling.apply(np.array(played)), policy.sketch
    loss = np.linalg.eigvalsh(rows.T @ rows - sketch.rows.T.astype(float) @ sketch.rows)
    slack = 1e-9 if dtype is np.float64 else 1e-4
    assert loss[0] >= -slack
    assert loss[-1] <= sketch.error_bound + slack
    assert (sketch.count, policy.rounds, sketch.dim) == (150, 150, 31)


def test_the_theorem_covers_the_parameter_of_the_scaled_space() -> None:
    """|theta - theta*|_A <= beta_t with the theorem's radius: in all of 40 runs at delta = 0.01."""
    confidence = sb.Confidence(noise=0.1, theta_norm=1.0, arm_norm=1.2, delta=0.01)
    for seed in range(40):
        random = np.random.default_rng(seed)
        policy = make("soful", 6, "rows", intercept=True, ridge=0.5, beta=confidence)
        theta = random.standard_normal(7)
        theta /= np.linalg.norm(theta)
        for arms, _ in raw_rounds(40, 6, seed=seed):
            chosen = policy.select(arms)
            z = policy.scaling.apply(arms[chosen])[0]
            policy.update(arms[chosen], float(z @ theta + 0.1 * random.standard_normal()))
        off = policy.theta - theta
        matrix = policy.sketch.covariance() + 0.5 * np.eye(7)
        assert np.sqrt(off @ matrix @ off) <= policy.radius


@pytest.mark.parametrize("kind", SCALINGS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_sparse_and_dense_read_alike(kind: str, dtype: Any) -> None:
    """Of either dtype, of integers, with empty rows: a scaling that centres makes them dense."""
    scaling = SCALINGS[kind](DIM)
    (rows, _), *_ = raw_rounds(1, DIM)
    rows[0] = 0.0
    for given_rows in (rows.astype(dtype), rows.astype(np.int64)):
        read = scaling.apply(sparse.csr_array(given_rows))
        assert sparse.issparse(read) != scaling.centres
        assert np.allclose(
            dense(read), scaling.apply(given_rows), rtol=1e-6 if dtype is np.float32 else 1e-12
        )


@pytest.mark.parametrize("name", RECIPES)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_arms_at_once_are_learned_as_one_by_one(name: str, dtype: Any) -> None:
    """The sketch takes the same rows to the bit, whatever they come as; the rest follows to rounding."""
    scaling = SCALINGS["columns"](DIM)
    at_once, one_by_one = (read_by(name, scaling, dtype=dtype) for _ in range(2))
    forms = list(FORMS.values())
    for t, (arms, rewards) in enumerate(raw_rounds(18, DIM)):
        at_once.update(forms[t % len(forms)](arms), rewards)
        for i, reward in enumerate(rewards):
            one_by_one.update(forms[t % len(forms)](arms[[i]]), reward)
    if name != "cbrap":
        assert saved(at_once.sketch) == saved(one_by_one.sketch)
    assert at_once.rounds == one_by_one.rounds
    assert np.allclose(at_once.theta, one_by_one.theta, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("name", ["soful", "cbrap"])
@pytest.mark.parametrize("wanted", ["rows", "columns", None])
@pytest.mark.parametrize("form", ["float64", "csr"])
def test_what_is_not_finite_is_refused_as_it_came(name: str, wanted: Any, form: str) -> None:
    """By every verb, though clipping could hide it, in the warm-up and after it; nothing changes."""
    policy, as_form = make(name, DIM, wanted, intercept=True), FORMS[form]
    for bad, count in ((np.nan, 3), (np.inf, 3), (-np.inf, 60)):
        for arms, rewards in raw_rounds(count, DIM):
            policy.select(as_form(arms))
            policy.update(as_form(arms), rewards)
        arms = np.ones((3, DIM))
        arms[1, 2] = bad
        before = saved(policy)
        says = f"arm 1 contains {bad}"
        for verb in (
            policy.select,
            policy.choose,
            policy.ucb,
            policy.width,
            policy.mean,
            policy.probabilities,
        ):
            with pytest.raises(sb.InputError, match=says):
                verb(as_form(arms))
        with pytest.raises(sb.InputError, match=says):
            policy.top(as_form(arms), 2)
        with pytest.raises(sb.InputError, match=f"set 1: {says}"):
            policy.select_many([as_form(arms[:1]), as_form(arms)])
        with pytest.raises(sb.InputError, match=says):
            policy.update(as_form(arms), np.zeros(3))
        with pytest.raises(sb.InputError, match=f"arm 0 contains {bad}"):
            policy.update(as_form(arms[[1]])[0] if form == "float64" else as_form(arms[[1]]), 1.0)
        assert saved(policy) == before


@pytest.mark.parametrize("wanted", ["rows", "columns", "auto", None])
def test_what_cannot_be_read_teaches_nothing(wanted: Any) -> None:
    """A wrong length, no arms, no number, more places than arms: refused, the statistics as they were."""
    policy = make("soful", 3, wanted, intercept=True, explore=sb.Thompson(0.3, seed=0))
    policy.select(np.eye(3))
    before = saved(policy)
    for verb in (policy.select, policy.choose):
        for arms in (np.ones((2, 4)), np.empty((0, 3)), [["a", "b", "c"]]):
            with pytest.raises((sb.InputError, sb.InputTypeError)):
                verb(arms)
    calls: Any = [
        lambda: policy.top(np.eye(3), 4),
        lambda: policy.select_many([np.eye(3), np.ones((2, 4))]),
        lambda: policy.update(np.ones(4), 1.0),
        lambda: policy.update(np.ones((2, 3)), [1.0, np.nan]),
        lambda: policy.update(np.ones((2, 3)), [1.0]),
        lambda: policy.select(np.eye(3), random=3),
    ]
    for call in calls:
        with pytest.raises((sb.InputError, sb.InputTypeError)):
            call()
    assert saved(policy) == before


# -- the scaling itself ---------------------------------------------------------------------------------


def test_what_a_scaling_computes() -> None:
    """By hand: centred, multiplied, cut, and a constant; rows to length one, a zero row left alone."""
    columns = sb.Scaling.columns([1.0, 2.0], [2.0, 0.0], bound=3.0, constant=0.5)
    assert columns.apply([[2.0, 9.0], [9.0, 2.0], [-9.0, 0.0]]).tolist() == [
        [2.0, 0.0, 0.5],
        [3.0, 0.0, 0.5],
        [-3.0, 0.0, 0.5],
    ]
    assert np.allclose(sb.Scaling.rows(2).apply([[3.0, 4.0], [0.0, 0.0]]), [[0.6, 0.8], [0.0, 0.0]])
    assert sb.Scaling.none(1, constant=2.0).apply([5.0]).tolist() == [[5.0, 2.0]]
    assert (columns.kind, columns.bound, columns.constant, columns.dim) == ("columns", 3.0, 0.5, 2)
    assert columns.centres
    assert not sb.Scaling.columns([0.0], [2.0]).centres


@pytest.mark.parametrize("kind", SCALINGS)
def test_a_scaling_never_changes(kind: str) -> None:
    """Nor does a copy of it; equal ones are equal, and hash alike."""
    scaling = SCALINGS[kind](3)
    unpickled = pickle.loads(pickle.dumps(scaling))  # noqa: S301  (our own)
    for twin in (scaling, copy.copy(scaling), copy.deepcopy(scaling), unpickled):
        assert twin == scaling
        assert hash(twin) == hash(scaling)
        with pytest.raises(ValueError, match="read-only"):
            twin.lens[0] = 1.0
    assert scaling != SCALINGS[kind](4)
    assert scaling != "rows"


@pytest.mark.parametrize(
    ("make_one", "says"),
    [
        (lambda: sb.Scaling.columns([1.0, 2.0], [1.0]), "2 and 1"),
        (lambda: sb.Scaling.columns([], []), "0 and 0"),
        (lambda: sb.Scaling.columns([np.nan], [1.0]), "centre must be a vector of finite numbers"),
        (lambda: sb.Scaling.columns([1.0], [np.inf]), "factor must be a vector of finite numbers"),
        (lambda: sb.Scaling.columns([[1.0]], [[1.0]]), "centre must be a vector"),
        (lambda: sb.Scaling.columns(["a"], [1.0]), "centre must be a vector of numbers"),
        (lambda: sb.Scaling.columns([1.0], [1.0], bound=0.0), "bound must be finite, above 0"),
        (lambda: sb.Scaling.columns([1.0], [1.0], constant=np.nan), "constant must be finite"),
        (lambda: sb.Scaling.rows(0), "dim must be at least 1"),
        (lambda: sb.Scaling.none(2, constant=np.inf), "constant must be finite"),
        (lambda: sb.Scaling.rows(2).apply(np.ones((2, 3))), "length 3, but dim is 2"),
    ],
)
def test_a_scaling_that_makes_no_sense_is_refused(make_one: Any, says: str) -> None:
    """By a message that says what is wrong."""
    with pytest.raises((sb.InputError, sb.InputTypeError), match=says):
        make_one()


@pytest.mark.parametrize(
    "damaged",
    [
        {"lens": np.array([7.0, 1.0, 0.0])},
        {"lens": np.array([1.0, 1.0])},
        {"lens": np.array([np.nan, 1.0, 0.0])},
        {"lens": np.array([1.0, np.inf, 0.0])},
        {"lens": np.array([2.0, -1.0, 0.0, 1.0, 1.0])},
        {"lens": np.array([2.0, 1.0, 0.0, 1.0])},
        {"lens": np.ones((1, 3))},
        {"lens": np.ones(3, np.float32)},
    ],
)
def test_a_damaged_scaling_is_refused(damaged: Any) -> None:
    """Of another length, kind or dtype, or not finite."""
    with pytest.raises(FileError, match="makes no sense"):
        sb.Scaling.undump({"dim": 1}, damaged)


@pytest.mark.parametrize(
    ("settings_", "says"),
    [
        ({"scaling": "cols"}, 'None, "rows", "columns", "auto" or a Scaling'),
        ({"scaling": np.zeros(3)}, 'None, "rows", "columns", "auto" or a Scaling'),
        ({"scaling": sb.Scaling.rows(4)}, "for 4 columns"),
        ({"scaling": sb.Scaling.rows(3, constant=1.0)}, "no intercept"),
        ({"scaling": sb.Scaling.rows(3), "intercept": True}, "an intercept"),
        ({"intercept": -1.0}, "intercept must be finite, at least 0"),
        ({"intercept": np.nan}, "intercept must be finite"),
        ({"intercept": "yes"}, "intercept must be a real number"),
        ({"intercept": None}, "intercept must be a real number"),
    ],
)
@pytest.mark.parametrize("name", ["oful", "cbrap"])
def test_settings_that_make_no_sense_are_refused(name: str, settings_: Any, says: str) -> None:
    """When the policy is made."""
    with pytest.raises((sb.InputError, sb.InputTypeError), match=says):
        RECIPES[name](3, **settings_)


def test_a_sketch_needs_a_column_for_the_constant() -> None:
    """One column is none for the arm."""
    with pytest.raises(sb.InputError, match="one column more than an arm"):
        sb.LinUCB(sb.ExactSketch(1), intercept=True)
    assert sb.LinUCB(sb.ExactSketch(2), intercept=True).dim == 1


@pytest.mark.parametrize("offset", [0.0, 10.0, -1000.0])
@pytest.mark.parametrize("unit", [1.0, 100.0])
def test_what_all_rewards_share_does_not_matter(offset: float, unit: float) -> None:
    """Rewards of 0 and 1, of 10 and 11, of -1000 and -999, of cents: the default finds the arm that pays."""
    policy, random, lost = sb.adaptive(6, seed=0), np.random.default_rng(3), 0.0
    for _ in range(400):
        arms = random.standard_normal((5, 6)) * [1.0, 10.0, 0.1, 1.0, 5.0, 1.0] + 3.0
        pays = float(arms[:, 1].argmax())
        chosen = policy.select(arms)
        lost += float(chosen != pays)
        policy.update(arms[chosen], unit * (float(chosen == pays) + offset))
    assert lost < 0.3 * 0.8 * 400
