"""What every policy does: choose, learn, merge, and survive a file."""

import copy
import gc
import tracemalloc
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse

import sketchbandit as sb
from sketchbandit.ridge import RidgeSystem
from sketchbandit.ridge.backend import kernels
from tests.policies import CERTIFIED, EVERY, Oracle, oful, rounds, saved, unit

pytestmark = [
    pytest.mark.usefixtures("backend"),
    pytest.mark.filterwarnings("ignore::sketchbandit.SketchTooSmallWarning"),
]
# The backend is the same for all examples of a property test, which is what it is meant to be.
with_backend = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def train(policy: Any, count: int, dim: int, *, seed: int = 0, decay: float = 1.0) -> Any:
    """Play so many rounds."""
    for arms, rewards in rounds(count, dim, seed=seed, decay=decay):
        chosen = policy.select(arms)
        policy.update(arms[chosen], rewards[chosen])
    return policy


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
    for arms, rewards in rounds(400, dim, seed=dim, decay=decay):
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
    assert policy.rounds == policy.sketch.count == 400


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
    if name in ("rfd", "dbs-fd", "dbs-rfd", "oful"):
        made = [EVERY[name](40, size=4, ridge=0.5, beta=0.3) for _ in range(2)]
    else:
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


@pytest.mark.parametrize("name", EVERY)
def test_merge_adds_the_statistics(name: str) -> None:
    """Two policies that learned apart become one with the summed covariance, b, rounds and certificate."""
    one, other = (
        train(EVERY[name](14, size=4, ridge=1.0, beta=0.3), count, 14, seed=count) for count in (90, 130)
    )
    covariances = one.sketch.covariance() + other.sketch.covariance()
    certificate = one.sketch.error_bound + other.sketch.error_bound
    projection = getattr(one, "_projection", np.eye(14))
    system = (p._inner._system if name == "cbrap" else p._system for p in (one, other))
    b = sum((s.b for s in system), np.zeros(one.sketch.dim))
    untouched = saved(other)
    one.merge(other)
    assert saved(other) == untouched
    assert one.rounds == 220
    assert one.sketch.error_bound >= certificate
    loss = np.linalg.eigvalsh(covariances - one.sketch.covariance())
    assert loss[0] >= -(one.sketch.alpha + 1e-9)
    assert loss[-1] <= one.sketch.error_bound + 1e-9
    matrix = one.sketch.covariance() + 1.0 * np.eye(one.sketch.dim)
    assert np.allclose(one.theta, projection @ np.linalg.solve(matrix, b), rtol=1e-9, atol=1e-12)
    train(one, 30, 14, seed=9)
    before = one.rounds
    one.merge(one)
    assert one.rounds == 2 * before


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("dim", [9, 40])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_load_then_continue(name: str, dim: int, form: Any, tmp_path: Path) -> None:
    """A policy saved and loaded at any time goes on bitwise like one that never was."""
    confidence: Any = sb.Confidence() if name != "cbrap" else 0.3
    policy = EVERY[name](dim, size=4, ridge=0.5, beta=confidence)
    path = tmp_path / "policy.safetensors"
    for t, (arms, rewards) in enumerate(rounds(130, dim, seed=2)):
        chosen = policy.select(form(arms))
        if t % 23 == 0:
            policy.save(path)
            loaded = sb.load(path)
            assert type(loaded) is type(policy)
            assert saved(loaded) == saved(policy)
            assert (loaded.rounds, loaded.radius, loaded.beta) == (policy.rounds, policy.radius, policy.beta)
            policy, old = loaded, policy
            old.update(form(arms)[[chosen]], rewards[[chosen]])
            policy.update(form(arms)[[chosen]], rewards[[chosen]])
            assert saved(old) == saved(policy)
        else:
            policy.update(form(arms)[[chosen]], rewards[[chosen]])


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_asking_changes_nothing(name: str, form: Any) -> None:
    """What a policy learns depends on the updates alone: a replay without the choices gives the same bits."""
    asked, silent = (EVERY[name](20, size=4, ridge=1.0, beta=0.3) for _ in range(2))
    for arms, rewards in rounds(120, 20, seed=4):
        before = saved(asked)
        chosen = asked.select(form(arms))
        asked.top(form(arms), 1)
        asked.theta, asked.ucb(arms), asked.width(form(arms))
        asked.select(form(arms))
        assert saved(asked) == before
        for policy in (asked, silent):
            policy.update(form(arms)[[chosen]], rewards[chosen])
        assert saved(asked) == saved(silent)


@pytest.mark.parametrize("name", EVERY)
def test_copies_are_independent(name: str) -> None:
    """A copy goes its own way."""
    policy = train(EVERY[name](12, size=4, ridge=1.0, beta=0.3), 60, 12)
    before = saved(policy)
    for other in (copy.copy(policy), copy.deepcopy(policy)):
        train(other, 40, 12, seed=1)
        assert saved(policy) == before


@pytest.mark.parametrize("name", EVERY)
def test_a_zero_arm_has_no_width_and_no_mean(name: str) -> None:
    """And learning from it changes nothing but the number of rounds."""
    policy = train(EVERY[name](12, size=4, ridge=1.0, beta=0.3), 60, 12)
    zero = np.zeros(12)
    assert policy.mean(zero) == policy.width(zero) == policy.ucb(zero) == 0.0
    theta, widths = policy.theta, policy.width(np.eye(12))
    policy.update(zero, 5.0)
    assert policy.rounds == 61
    assert np.array_equal(policy.theta, theta)
    assert np.array_equal(policy.width(np.eye(12)), widths)


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("scale", [1e-320, 1e-170, 1e-150, 1e-20, 1e20, 1e150])
def test_extreme_arms_have_finite_scores(name: str, scale: float) -> None:
    """Denormal or huge features never give NaN: scores are finite, or the arms are refused."""
    policy = EVERY[name](6, size=3, ridge=1.0, beta=0.3)
    random = np.random.default_rng(0)
    with np.errstate(under="ignore"):
        for _ in range(40):
            arms = random.standard_normal((4, 6)) * scale
            arms[0] *= 1e-3
            chosen = policy.select(arms)
            scores = policy.ucb(arms)
            assert np.isfinite(scores).all()
            assert scores[chosen] == scores.max()
            assert (policy.width(arms) >= 0.0).all()
            policy.update(arms[chosen], random.standard_normal())
        assert np.isfinite(policy.theta).all()


@pytest.mark.parametrize("name", EVERY)
def test_scores_that_overflow_are_refused(name: str) -> None:
    """theta of 1e200 times an arm of 1e150 is no score."""
    policy = EVERY[name](3, size=3, ridge=1e-60, beta=0.1)
    policy.update(np.array([1e-3, 0.0, 0.0]), 1e200)
    before = saved(policy)
    with pytest.raises(sb.InputError, match="overflow"):
        policy.select(np.array([[1e150, 1e150, 0.0]]))
    with pytest.raises(sb.InputError, match="overflow"):
        policy.update(np.array([1e100, 0.0, 0.0]), 1e208)
    assert saved(policy) == before


BAD_ARMS = [
    (np.array([[1.0, np.nan, 0.0]]), "contains nan"),
    (np.array([[1.0, 0.0, 0.0], [0.0, -np.inf, 0.0]]), "arm 1 contains -inf|row 1 contains -inf"),
    (np.array([[1e200, 0.0, 0.0]]), "too long"),
    (np.zeros((2, 4)), "length 4, but dim is 3"),
    (np.zeros((2, 2, 3)), "3 dimensions"),
    (np.array([["a", "b", "c"]]), "real numbers"),
    (sparse.csr_array([[0.0, np.nan, 1.0]]), "contains nan"),
    (sparse.csr_array([[0.0, 1.0]]), "length 2"),
    (None, "real numbers|dimensions"),
]


@pytest.mark.parametrize("name", EVERY)
def test_bad_input_changes_nothing(name: str) -> None:
    """Each raises a clear error of ours, and the policy is bitwise what it was."""
    policy = train(EVERY[name](3, size=3, ridge=1.0, beta=0.3), 30, 3)
    good = np.eye(3)
    before = saved(policy)
    for bad, message in BAD_ARMS:
        for call in (policy.select, policy.mean, policy.width, policy.ucb, lambda a: policy.top(a, 1)):
            with pytest.raises((ValueError, TypeError), match=message) as caught:
                call(bad)
            assert isinstance(caught.value, sb.SketchBanditError)
        count = 1 if bad is None else bad.shape[0]
        with pytest.raises((ValueError, TypeError)) as caught:
            policy.update(bad, np.zeros(count) if count > 1 else 0.0)
        assert isinstance(caught.value, sb.SketchBanditError)
    nothing: list[Any] = [np.empty((0, 3)), [], sparse.csr_array((0, 3))]
    for empty in nothing:
        with pytest.raises(sb.InputError, match="empty"):
            policy.select(empty)
    for reward in (np.nan, np.inf, -np.inf):
        with pytest.raises(sb.InputError, match="finite"):
            policy.update(good[0], reward)
        with pytest.raises(sb.InputError, match="finite"):
            policy.update(good, [0.0, reward, 0.0])
    no_rewards: list[Any] = ["1", None, 1j, [1.0, 2.0], {}]
    for no_reward in no_rewards:
        with pytest.raises((ValueError, TypeError)) as caught:
            policy.update(good[0], no_reward)
        assert isinstance(caught.value, sb.SketchBanditError)
    for rewards in (
        [1.0],
        [1.0, 2.0, 3.0, 4.0],
        [[1.0, 2.0, 3.0]],
        1.0,
        ["a", "b", "c"],
        [[1.0], [2.0, 3.0]],
    ):
        with pytest.raises((ValueError, TypeError)) as caught:
            policy.update(good, rewards)
        assert isinstance(caught.value, sb.SketchBanditError)
    for k in (0, 4, -1, 1.5, True):
        with pytest.raises((ValueError, TypeError)) as caught:
            policy.top(good, k)
        assert isinstance(caught.value, sb.SketchBanditError)
    assert saved(policy) == before


@pytest.mark.parametrize("name", EVERY)
def test_bad_settings_are_refused(name: str) -> None:
    """ridge <= 0, beta < 0 and what is no number."""
    make = EVERY[name]
    for ridge in (0.0, -1.0, np.nan, np.inf, "1", True):
        with pytest.raises((ValueError, TypeError), match="ridge must be"):
            make(5, size=3, ridge=ridge, beta=0.1)
    for beta in (-0.1, np.nan, np.inf, "1", None):
        with pytest.raises((ValueError, TypeError), match="beta must be"):
            make(5, size=3, ridge=1.0, beta=beta)
    with pytest.raises(sb.InputError, match="dim must be at least 1"):
        make(0, size=3, ridge=1.0, beta=0.1)


@pytest.mark.parametrize("name", EVERY)
def test_unlike_policies_do_not_merge(name: str) -> None:
    """Another ridge, beta, dim, size, kind or seed is refused, and nothing changes."""
    make = EVERY[name]
    policy = train(make(8, size=3, ridge=1.0, beta=0.3), 40, 8)
    before = saved(policy)
    others = [
        make(8, size=3, ridge=2.0, beta=0.3),
        make(8, size=3, ridge=1.0, beta=0.4),
        make(9, size=3, ridge=1.0, beta=0.3),
        sb.LinUCB(sb.IncrementalSVD(8, size=3), ridge=1.0, beta=0.3),
        policy.sketch,
        None,
    ]
    if name != "oful":
        others.append(make(8, size=4, ridge=1.0, beta=0.3))
    if name == "cbrap":
        others.append(sb.cbrap(8, size=3, ridge=1.0, beta=0.3, seed=1))
    for other in others:
        with pytest.raises(sb.MergeError):
            policy.merge(other)
    assert saved(policy) == before


def test_a_file_of_another_kind_loads_as_what_it_is(tmp_path: Path) -> None:
    """load tells sketches from policies; a damaged policy is refused."""
    sketch, policy = sb.FrequentDirections(5, size=3), train(sb.soful(5, size=3), 30, 5)
    sketch.save(tmp_path / "sketch")
    policy.save(tmp_path / "policy")
    assert isinstance(sb.load(tmp_path / "sketch"), sb.FrequentDirections)
    assert isinstance(sb.load(tmp_path / "policy"), sb.LinUCB)
    content = (tmp_path / "policy").read_bytes()
    for at in np.random.default_rng(0).integers(0, len(content), 40).tolist():
        changed = bytearray(content)
        changed[at] ^= 8
        (tmp_path / "policy").write_bytes(bytes(changed))
        with pytest.raises(sb.FileError):
            sb.load(tmp_path / "policy")


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("dim", [700, 1500])
def test_nbytes_is_what_memory_holds(name: str, dim: int) -> None:
    """nbytes is within 10 % of what tracemalloc sees the policy hold."""

    def trained() -> Any:
        policy = EVERY[name](dim, size=20, ridge=1.0, beta=0.1)
        random = np.random.default_rng(0)
        for _ in range(230):
            arms = random.standard_normal((3, dim)) / np.sqrt(dim)
            policy.update(arms[policy.select(arms)], 0.5)
        return policy

    trained()  # imports, compiled loops and caches are not the policy's
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        policy = trained()
        gc.collect()
        held = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert abs(policy.nbytes - held) <= 0.1 * held, f"nbytes {policy.nbytes}, held {held}"


def test_a_row_appended_is_never_a_fresh_factorisation(monkeypatch: pytest.MonkeyPatch) -> None:
    """The system is rebuilt when the sketch is, and at no other round."""
    rebuilds = []
    original = RidgeSystem.rebuild

    def counting(self: RidgeSystem, **kwargs: bool) -> None:
        rebuilds.append(self.sketch.count)
        original(self, **kwargs)

    policy = sb.soful(60, size=8)
    monkeypatch.setattr(RidgeSystem, "rebuild", counting)
    train(policy, 200, 60)
    assert rebuilds == [16 + 9 * i for i in range(len(rebuilds))]  # 16 rows, shrunk to 7, and so on
    assert len(rebuilds) == 21


def test_lists_frames_and_integers_are_arms() -> None:
    """Whatever converts to a matrix of numbers."""
    policy = sb.oful(3, ridge=1.0, beta=0.5)
    policy.update([1, 0, 0], 1)
    policy.update((0, 1, 0), np.int64(0))
    policy.update(np.array([[0, 0, 1]], dtype=np.int8), np.array([False]))
    expected = policy.ucb(np.eye(3))
    for arms in (
        [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
        np.eye(3, dtype=np.float32),
        np.asfortranarray(np.eye(3)),
        sparse.coo_array(np.eye(3)),
        sparse.csc_matrix(np.eye(3)),
        np.eye(6)[::2, ::2],
    ):
        assert np.array_equal(policy.ucb(arms), expected)
        assert policy.select(arms) == 0
    assert policy.ucb([1, 0, 0]) == expected[0]
    assert policy.select([1, 0, 0]) == 0


def test_any_sketch_makes_a_policy() -> None:
    """Incremental SVD, a random projection, and an object that only keeps the contract."""

    class Duck:
        """Keeps every row; no Sketch."""

        dim, alpha, error_bound = 6, 0.0, 0.0

        def __init__(self) -> None:
            self.rows = np.empty((0, 6))

        def update(self, rows: Any) -> None:
            self.rows = np.vstack([self.rows, rows])

    exact = sb.oful(6)
    duck = sb.LinUCB(Duck())
    for policy in (sb.LinUCB(sb.IncrementalSVD(6, size=7)), duck):
        train(policy, 60, 6)
        exact = train(sb.oful(6), 60, 6)
        assert np.allclose(policy.theta, exact.theta, rtol=1e-9)
        assert np.allclose(policy.width(np.eye(6)), exact.width(np.eye(6)), rtol=1e-9)
    with pytest.raises(sb.InputTypeError, match="Duck cannot be saved"):
        duck.save("nowhere")
    with pytest.raises(sb.MergeError, match="Duck cannot merge"):
        duck.merge(sb.LinUCB(Duck()))
    projected = train(sb.LinUCB(sb.RandomProjection(6, size=4)), 60, 6)
    matrix = projected.sketch.covariance() + np.eye(6)
    assert np.allclose(projected.theta, np.linalg.solve(matrix, projected._system.b), rtol=1e-9)
    with pytest.raises(sb.InputError, match="certifies no error"):
        sb.LinUCB(sb.RandomProjection(6, size=4), beta=sb.Confidence())
    with pytest.raises(sb.InputTypeError, match="lacks update"):
        sb.LinUCB("a string")
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
        sb.cbrap(50, beta=sb.Confidence())  # type: ignore[arg-type]


def test_a_million_updates_do_not_drift() -> None:
    """OFUL one by one: within 1e-6 of a fresh solve, and positive definite, all the way."""
    random = np.random.default_rng(0)
    dim, count = 5, 1_000_000
    policy = sb.oful(dim, ridge=1.0, beta=0.1)
    arms = random.standard_normal((count, dim)) * np.array([1.0, 1.0, 1e-1, 1e-2, 1e-3])
    rewards = arms @ np.arange(1.0, dim + 1) + 0.1 * random.standard_normal(count)
    for start in range(0, count, 250_000):
        stop = start + 250_000
        for arm, reward in zip(arms[start:stop], rewards[start:stop].tolist(), strict=True):
            policy.update(arm, reward)
        matrix = np.eye(dim) + arms[:stop].T @ arms[:stop]
        theta = np.linalg.solve(matrix, arms[:stop].T @ rewards[:stop])
        assert np.allclose(policy.theta, theta, rtol=1e-6)
        widths = np.sqrt(np.diag(np.linalg.inv(matrix)))
        assert np.allclose(policy.width(np.eye(dim)), widths, rtol=1e-6)
        inverse = policy._system._inverse
        assert np.linalg.eigvalsh(inverse.inverse - inverse.pending.T @ inverse.pending)[0] > 0.0


@pytest.mark.parametrize("name", ["soful", "cbscfd", "dbs-rfd"])
def test_a_long_stream_does_not_drift(name: str) -> None:
    """A million rows in batches, then single ones: still what a dense solve of the same sketch says."""
    random = np.random.default_rng(1)
    policy = CERTIFIED[name](12, size=4, ridge=1.0, beta=0.1)
    for _ in range(100):
        arms = unit(random.standard_normal((10_000, 12)))
        policy.update(arms, arms[:, 0])
        for arm in arms[:20]:
            policy.update(arm, arm[0])
    matrix = policy.sketch.covariance() + np.eye(12)
    assert np.allclose(policy.theta, np.linalg.solve(matrix, policy._system.b), rtol=1e-6)
    widths = np.sqrt(np.diag(np.linalg.inv(matrix)))
    assert np.allclose(policy.width(np.eye(12)), widths, rtol=1e-6)


def test_pruning_skips_arms_that_cannot_win(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a small radius most widths are never computed, by numpy's search at least."""
    monkeypatch.setattr(RidgeSystem, "search", lambda *_: None)
    looked_at: list[int] = []
    original = RidgeSystem.shadow

    def counting(self: RidgeSystem, scan: Any, index: int) -> Any:
        looked_at.append(index)
        return original(self, scan, index)

    monkeypatch.setattr(RidgeSystem, "shadow", counting)
    policy = train(sb.soful(30, size=5, beta=0.01), 100, 30)
    arms = unit(np.random.default_rng(0).standard_normal((1000, 30)))
    looked_at.clear()
    chosen = policy.select(arms)
    assert 1 <= len(looked_at) <= 50
    assert chosen == np.argmax(policy.ucb(arms))


def test_numpy_and_compiled_choose_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same stream, the same choices, whichever runs."""
    choices: dict[str, list[int]] = {}
    for compiled in ("0", "1"):
        monkeypatch.setenv("SKETCHBANDIT_COMPILED", compiled)
        kernels.cache_clear()
        for name, make in EVERY.items():
            policy = make(40, size=6, ridge=0.5, beta=sb.Confidence() if name != "cbrap" else 0.2)
            for arms, rewards in rounds(200, 40, seed=11, arms=15):
                chosen = policy.select(arms)
                policy.update(arms[chosen], rewards[chosen])
                choices.setdefault(f"{name} {compiled}", []).append(chosen)
    kernels.cache_clear()
    for name in EVERY:
        assert choices[f"{name} 0"] == choices[f"{name} 1"]


def test_no_policy_warns_of_anything_but_its_size() -> None:
    """Playing raises no numpy warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", sb.SketchTooSmallWarning)
        for make in EVERY.values():
            train(make(10, size=3, ridge=1.0, beta=0.1), 80, 10)


def test_repr_says_what_it_is() -> None:
    """Settings, rounds, certificate, bytes."""
    assert "30 rounds" in repr(train(oful(4, size=2, ridge=1.0, beta=0.1), 30, 4))
    assert "size=3" in repr(sb.cbrap(4, size=3))
