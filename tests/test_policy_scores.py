"""Means, widths, scores and choices, against a dense oracle and against one another."""

import copy
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse

import sketchbandit as sb
from sketchbandit.explore import ArmCandidates
from sketchbandit.kernels import choose_again
from sketchbandit.policy.posterior import Posterior
from tests.policies import CERTIFIED, EVERY, Oracle, rounds, train, unit

pytestmark = [
    pytest.mark.usefixtures("backend"),
    pytest.mark.filterwarnings("ignore::sketchbandit.SketchTooSmallWarning"),
]
# The backend is the same for all examples of a property test, which is what it is meant to be.
with_backend = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.mark.parametrize("name", CERTIFIED)
@pytest.mark.parametrize(
    ("dim", "size", "decay", "ridge"),
    [(30, 4, 1.0, 1.0), (30, 4, 0.8, 0.01), (12, 9, 1.0, 0.5), (60, 5, 0.95, 3.0), (1, 2, 1.0, 1.0)],
)
def test_against_a_dense_oracle_at_every_round(
    name: str, dim: int, size: int, decay: float, ridge: float
) -> None:
    """Means, widths and theta to 1e-8, and the choice is the argmax of the oracle's scores, up to ties."""
    policy = CERTIFIED[name](dim, size=size, ridge=ridge, beta=0.3)
    oracle = Oracle(copy.deepcopy(policy.sketch), ridge)
    for arms, rewards in rounds(200, dim, seed=dim, decay=decay):
        chosen = policy.select(arms)
        means, widths = arms @ oracle.theta(), oracle.width(arms)
        scores = means + 0.3 * widths
        assert scores[chosen] >= scores.max() - 1e-10
        scale = np.abs(oracle.theta()).max()
        assert np.allclose(policy.mean(arms), means, rtol=1e-8, atol=1e-9 * scale)
        assert np.allclose(policy.width(arms), widths, rtol=1e-8, atol=0.0)
        assert np.allclose(policy.ucb(arms), scores, rtol=1e-8, atol=1e-9 * scale)
        assert np.allclose(policy.theta, oracle.theta(), rtol=1e-8, atol=1e-9 * scale)
        policy.update(arms[chosen], rewards[chosen])
        oracle.update(arms[chosen], rewards[chosen])
    assert policy.rounds == policy.sketch.count == 200


@pytest.mark.parametrize("name", EVERY)
@with_backend
@given(seed=st.integers(0, 10_000), count=st.integers(1, 60), k=st.integers(1, 60))
def test_select_and_top_are_exact(name: str, seed: int, count: int, k: int) -> None:
    """select is the first argmax of ucb and top its stable order, pruned or not, with repeated arms too."""
    random = np.random.default_rng(seed)
    dim = int(random.integers(1, 25))
    policy = EVERY[name](dim, size=4, ridge=0.3, beta=float(random.choice([0.0, 0.1, 3.0])))
    for _ in range(int(random.integers(0, 40))):
        policy.update(random.standard_normal(dim), random.standard_normal())
    arms = random.standard_normal((count, dim)) * random.choice([0.0, 0.1, 1.0], size=(count, 1))
    arms = arms[random.integers(0, count, size=count)]
    scores = policy.ucb(arms)
    order = np.argsort(-scores, kind="stable")
    assert policy.select(arms) == order[0] == np.argmax(scores)
    k = min(k, count)
    assert policy.top(arms, k).tolist() == order[:k].tolist()


@pytest.mark.parametrize("beta", [0.0, 0.1, 10.0])
@pytest.mark.parametrize("signal", [0.0, 1.0])
def test_many_arms_that_could_win(beta: float, signal: float) -> None:
    """Nothing to rule out by the bounds alone, arms repeated: still the first argmax of ucb, to the bit."""
    random = np.random.default_rng(0)
    policy = sb.oful(900, beta=beta)
    rows = unit(random.standard_normal((900, 900)))
    policy.update(rows, signal * rows[:, 0])
    policy.update(rows[3], signal)
    for count in (2, 5, 60):
        arms = unit(random.standard_normal((count, 900)))[random.integers(0, count, 2 * count)]
        assert policy.select(arms) == np.argmax(policy.ucb(arms))
        chosen = policy.select(arms)
        policy.update(arms[chosen], 0.5)
    matrix = policy.sketch.covariance() + np.eye(900)
    widths = np.sqrt(np.vecdot(arms, np.linalg.solve(matrix, arms.T).T))
    assert np.allclose(policy.width(arms), widths, rtol=1e-9)


@pytest.mark.parametrize("name", EVERY)
def test_equal_arms_tie_to_the_lowest_index(name: str) -> None:
    """Seventeen copies of an arm have the same score to the bit, so the first is chosen."""
    policy = train(EVERY[name](20, size=4, ridge=1.0, beta=0.5), 50, 20)
    arms = np.tile(unit(np.random.default_rng(1).standard_normal((1, 20))), (17, 1))
    assert len(set(policy.ucb(arms).tolist())) == 1
    assert policy.select(arms) == 0
    assert policy.top(arms, 5).tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_sparse_arms_equal_dense_ones(name: str, dtype: type) -> None:
    """CSR arms give the policy that the same dense arms give, to rounding, however many there are."""
    made = [EVERY[name](40, size=4, ridge=0.5, beta=0.3, dtype=dtype) for _ in range(2)]
    dense, from_sparse = made
    random = np.random.default_rng(3)
    for t in range(150):
        arms = random.standard_normal((1 + t % 9, 40)) * (random.random((1 + t % 9, 40)) < 0.2)
        arms = arms.astype(dtype)  # an arm of all zeros among them now and then
        rows = sparse.csr_array(arms)
        tolerance = 1e-9 if dense.dtype == np.float64 else 2e-5
        for method in ("mean", "width", "ucb"):
            one, other = getattr(dense, method)(arms), getattr(from_sparse, method)(rows)
            assert np.allclose(one, other, rtol=tolerance, atol=tolerance)
        assert dense.ucb(arms)[from_sparse.select(rows)] >= dense.ucb(arms).max() - tolerance
        chosen = dense.select(arms)
        reward = float(random.standard_normal())
        dense.update(arms[chosen], reward)
        from_sparse.update(rows[[chosen]], reward)
    assert np.allclose(dense.theta, from_sparse.theta, rtol=1e-7 if dtype == np.float64 else 1e-3, atol=1e-5)


@pytest.mark.parametrize("name", EVERY)
def test_many_at_once_equal_one_by_one(name: str) -> None:
    """Update of n arms and n rewards gives what n updates give; zero arms among them are no trouble."""
    random = np.random.default_rng(0)
    arms = unit(random.standard_normal((230, 16)))
    arms[[3, 50, 51]] = 0.0
    rewards = random.standard_normal(230)
    single, batch = (EVERY[name](16, size=5, ridge=1.0, beta=0.3) for _ in range(2))
    for arm, reward in zip(arms, rewards, strict=True):
        single.update(arm, reward)
    for cut in np.split(np.arange(230), [1, 3, 9, 80, 81]):
        batch.update(arms[cut], rewards[cut])
    batch.update(arms[:0], rewards[:0])
    assert single.rounds == batch.rounds == 230
    assert np.allclose(single.theta, batch.theta, rtol=1e-9, atol=1e-11)
    assert np.allclose(single.width(arms), batch.width(arms), rtol=1e-9, atol=1e-12)
    assert single.radius == batch.radius


@pytest.mark.parametrize(
    "policy",
    [
        sb.soful(10, size=12, ridge=0.7, beta=0.2),
        sb.cbscfd(10, size=12, ridge=0.7, beta=0.2),
        sb.dbslinucb(10, size=3, epsilon=1e-9, ridge=0.7, beta=0.2),
        sb.dbslinucb(10, size=3, epsilon=1e-9, compensation=0.0, ridge=0.7, beta=0.2),
        sb.dbslinucb(10, size=11, ridge=0.7, beta=0.2),
    ],
    ids=["soful", "cbscfd", "dbs tiny epsilon", "dbs-fd tiny epsilon", "dbs first block exact"],
)
def test_a_sketch_that_loses_nothing_is_oful(policy: sb.LinUCB) -> None:
    """The same choices and scores as OFUL, to rounding."""
    policy = copy.deepcopy(policy)
    exact = sb.oful(10, ridge=0.7, beta=0.2)
    for arms, rewards in rounds(300, 10, seed=5):
        assert np.allclose(policy.ucb(arms), exact.ucb(arms), rtol=1e-9, atol=1e-11)
        chosen = exact.select(arms)
        assert policy.select(arms) == chosen
        policy.update(arms[chosen], rewards[chosen])
        exact.update(arms[chosen], rewards[chosen])
    assert policy.sketch.error_bound == 0.0


@pytest.mark.parametrize(
    ("length_sq", "ridge", "tolerance"), [(1.0, 2e-4, 1e-9), (1e4, 2e-4, 1e-5), (1e6, 1e-3, 1e-3)]
)
def test_long_streams_of_low_rank_keep_their_digits(length_sq: float, ridge: float, tolerance: float) -> None:
    """Arms in the span of the sketch: |x|² - |u|² and b - S'g cancel, means and widths must not suffer."""
    random = np.random.default_rng(0)
    basis = np.linalg.qr(random.standard_normal((60, 3)))[0].T
    coordinates = random.standard_normal((30_000, 3)) * np.sqrt(length_sq / 3)
    arms, rewards = coordinates @ basis, coordinates @ np.array([1.0, -2.0, 0.5])
    policy = sb.soful(60, size=10, ridge=ridge, beta=0.1)
    policy.update(arms, rewards)
    for arm, reward in zip(arms[:7], rewards[:7].tolist(), strict=True):
        policy.update(arm, reward)
    seen, got = np.vstack([coordinates, coordinates[:7]]), np.append(rewards, rewards[:7])
    matrix = seen.T @ seen + ridge * np.eye(3)
    theta = np.linalg.solve(matrix, seen.T @ got)
    some = coordinates[100:110]
    widths = np.sqrt(np.vecdot(some, np.linalg.solve(matrix, some.T).T))
    assert np.allclose(policy.width(some @ basis), widths, rtol=max(1e-8, 1e-3 * tolerance))
    means = some @ theta
    assert np.allclose(policy.mean(some @ basis), means, rtol=0.0, atol=tolerance * np.abs(means).max())
    chosen = policy.select(some @ basis)
    assert chosen == np.argmax(policy.ucb(some @ basis))


def test_any_sketch_makes_a_policy() -> None:
    """Incremental SVD, a random projection; not what only looks like a sketch, a rule or an estimate."""
    policy, exact = train(sb.LinUCB(sb.IncrementalSVD(6, size=7)), 60, 6), train(sb.oful(6), 60, 6)
    assert np.allclose(policy.theta, exact.theta, rtol=1e-9)
    assert np.allclose(policy.width(np.eye(6)), exact.width(np.eye(6)), rtol=1e-9)
    projected = train(sb.LinUCB(sb.RandomProjection(6, size=4)), 60, 6)
    matrix = projected.sketch.covariance() + np.eye(6)
    assert np.allclose(projected.theta, np.linalg.solve(matrix, projected.estimate.b), rtol=1e-9)
    with pytest.raises(sb.InputError, match="certifies no error"):
        sb.LinUCB(sb.RandomProjection(6, size=4), beta=sb.Confidence())
    wrong: Any = "a string"
    for name, kind in (("sketch", "Sketch"), ("rewards", "Estimate")):
        settings = {"sketch": sb.ExactSketch(6), name: wrong}
        with pytest.raises(sb.InputTypeError, match=rf"{name} is a str; give .* sketchbandit\.{kind}"):
            sb.LinUCB(**settings)
    used = sb.FrequentDirections(3, size=2)
    used.update(np.ones(3))
    with pytest.raises(sb.InputError, match="fresh"):
        sb.LinUCB(used)


def test_cbrap_is_oful_of_projected_arms() -> None:
    """The same choices as OFUL fed with R'x; and no theorem's radius."""
    policy, small = sb.cbrap(50, size=6, ridge=0.5, beta=0.2, seed=3), sb.oful(6, ridge=0.5, beta=0.2)
    draws = np.random.default_rng(3).standard_normal((50, 6)) / np.sqrt(6)
    for arms, rewards in rounds(150, 50, seed=8):
        projected = arms @ draws
        chosen = small.select(projected)
        assert policy.select(arms) == chosen
        assert np.allclose(policy.mean(arms), arms @ policy.theta, rtol=1e-9, atol=1e-12)
        assert np.allclose(policy.ucb(arms), small.ucb(projected), rtol=1e-9)
        policy.update(arms[chosen], rewards[chosen])
        small.update(projected[chosen], rewards[chosen])
    with pytest.raises(sb.InputTypeError, match="constant beta only"):
        sb.cbrap(50, beta=sb.Confidence())


def test_pruning_skips_arms_that_cannot_win(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a small radius most widths are never computed, by numpy's search at least."""
    monkeypatch.setattr(Posterior, "search", lambda *_: None)
    looked_at: list[int] = []
    original = ArmCandidates.width

    def counting(self: ArmCandidates, index: int) -> float:
        looked_at.append(index)
        return original(self, index)

    monkeypatch.setattr(ArmCandidates, "width", counting)
    policy = train(sb.soful(30, size=5, beta=0.01), 100, 30)
    arms = unit(np.random.default_rng(0).standard_normal((1000, 30)))
    looked_at.clear()
    chosen = policy.select(arms)
    assert 1 <= len(looked_at) <= 50
    assert chosen == np.argmax(policy.ucb(arms))


def test_numpy_and_compiled_choose_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same stream, the same choices by both backends, unless scores are equal up to rounding."""
    for name, make in EVERY.items():
        pair = [
            make(40, size=6, ridge=0.5, beta=sb.Confidence() if name != "cbrap" else 0.2) for _ in range(2)
        ]
        ties = 0
        for arms, rewards in rounds(200, 40, seed=11, arms=15):
            chosen = []
            for compiled, policy in zip("01", pair, strict=True):
                monkeypatch.setenv("SKETCHBANDIT_COMPILED", compiled)
                choose_again()
                chosen.append(policy.select(arms))
            if chosen[0] != chosen[1]:
                ties += 1
                scores = pair[0].ucb(arms[chosen])
                assert np.isclose(scores[0], scores[1], rtol=1e-9, atol=0.0), name
            for policy in pair:
                policy.update(arms[chosen[0]], rewards[chosen[0]])
        assert ties <= 5, name  # the first round has nothing but ties
    choose_again()
