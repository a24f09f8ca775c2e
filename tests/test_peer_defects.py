"""Each defect seen in a public library of this field, as a test that would catch it here."""

import gc
import tracemalloc

import numpy as np
import pytest
from scipy import sparse

import sketchbandit as sb
from tests.policies import EVERY, unit

pytestmark = [
    pytest.mark.usefixtures("backend"),
    pytest.mark.filterwarnings("ignore::sketchbandit.SketchTooSmallWarning"),
]


@pytest.mark.parametrize("name", [n for n in EVERY if n != "cbrap"])
@pytest.mark.parametrize("ridge", [0.25, 4.0])
def test_an_unpulled_arm_has_the_width_of_the_ridge(name: str, ridge: float) -> None:
    """The inverse starts as I/lambda, not as lambda·I (MABWiser): width |x| / sqrt(lambda)."""
    policy = EVERY[name](6, size=3, ridge=ridge, beta=0.1)
    arms = np.random.default_rng(0).standard_normal((5, 6))
    assert np.allclose(policy.width(arms), np.linalg.norm(arms, axis=1) / np.sqrt(ridge), rtol=1e-14)


@pytest.mark.parametrize("name", [n for n in EVERY if n != "cbrap"])
@pytest.mark.parametrize("ridge", [0.25, 4.0])
def test_precision_and_covariance_agree_from_the_start(name: str, ridge: float) -> None:
    """Not both seeded with the same number (river); one pull of x has theta = r x / (lambda + |x|²)."""
    policy = EVERY[name](6, size=3, ridge=ridge, beta=0.1)
    x = np.arange(1.0, 7.0)
    policy.update(x, 2.0)
    assert np.allclose(policy.theta, 2.0 * x / (ridge + x @ x), rtol=1e-13)  # and the reward counts once
    assert policy.width(x) == pytest.approx(np.sqrt(x @ x / (ridge + x @ x)), rel=1e-13)


@pytest.mark.parametrize("name", EVERY)
def test_no_width_is_ever_nan(name: str) -> None:
    """On rank-deficient, repeated and zero arms; a NaN turned into 0 would look certain (Pearl)."""
    policy = EVERY[name](5, size=3, ridge=1e-6, beta=0.1)
    arms = np.array([[1.0, 1.0, 0, 0, 0], [1.0, 1.0, 0, 0, 0], [0, 0, 0, 0, 0], [2.0, 2.0, 0, 0, 1e-9]])
    for t in range(200):
        policy.update(arms[t % 4], 1.0)
        widths = policy.width(np.vstack([arms, np.eye(5)]))
        assert np.isfinite(widths).all()
        assert (widths[[0, 1, 3, 4, 5, 6, 7, 8]] > 0.0).all()


def test_buffered_rows_count() -> None:
    """A sketch read without its buffer (Liberty's get) would leave the first widths as they were."""
    policy = sb.soful(20, size=10, ridge=1.0)
    x = unit(np.ones((1, 20)))[0]
    policy.update(x, 1.0)
    assert policy.width(x) == pytest.approx(np.sqrt(0.5), rel=1e-13)
    assert policy.mean(x) == pytest.approx(0.5, rel=1e-13)


def test_lambda_alpha_and_rewards_enter_once() -> None:
    """Compensation twice, lambda per block, reward twice (a public DBS): an inverse off by 17 to 62 %."""
    policy = sb.dbslinucb(60, size=4, epsilon=12.0, compensation=1.0, ridge=0.5)
    random = np.random.default_rng(0)
    b = np.zeros(60)
    for _ in range(160):
        x = unit(random.standard_normal((1, 60)))[0]
        policy.update(x, 0.7)
        b += 0.7 * x
    blocks = policy.sketch.blocks
    assert len(blocks) >= 3
    alpha = sum(block.error_bound for block in blocks)
    assert alpha > 0.0
    matrix = (0.5 + alpha) * np.eye(60) + sum(block.rows.T @ block.rows for block in blocks)
    arms = random.standard_normal((20, 60))
    widths = np.sqrt(np.vecdot(arms, np.linalg.solve(matrix, arms.T).T))
    assert np.allclose(policy.width(arms), widths, rtol=1e-10)
    assert np.allclose(policy.theta, np.linalg.solve(matrix, b), rtol=1e-9, atol=1e-13)


@pytest.mark.parametrize("name", EVERY)
def test_a_short_last_batch_brings_no_stale_row(name: str) -> None:
    """Batches of any length give what single rows give: nothing uninitialised enters."""
    random = np.random.default_rng(0)
    arms = unit(random.standard_normal((101, 9)))
    whole, pieces = (EVERY[name](9, size=4, ridge=1.0, beta=0.1) for _ in range(2))
    whole.update(arms, np.ones(101))
    for start in range(0, 101, 17):
        pieces.update(arms[start : start + 17], np.ones(len(arms[start : start + 17])))
    assert np.allclose(whole.sketch.covariance(), pieces.sketch.covariance(), rtol=1e-10, atol=1e-12)
    assert np.allclose(whole.theta, pieces.theta, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", ["oful", "dbs-rfd"])
def test_an_exact_update_makes_no_second_matrix(name: str) -> None:
    """A @ x @ x.T @ A from left to right (OBP) costs d³ and d² of scratch; a rank-one update neither."""
    dim = 400
    policy = EVERY[name](dim, size=4, ridge=1.0, beta=0.1)
    arms = unit(np.random.default_rng(0).standard_normal((dim, dim)))
    policy.update(arms, np.zeros(dim))
    assert policy.sketch.is_dense
    policy.update(arms[0], 1.0)
    tracemalloc.start()
    try:
        for arm in arms[:20]:
            policy.update(arm, 1.0)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 0.8 * 8 * dim * dim


def test_oful_does_not_grow_with_the_rounds() -> None:
    """A baseline that restacks all rows flatters every sketch beside it."""
    policy = sb.oful(20)
    random = np.random.default_rng(0)
    policy.update(random.standard_normal((500, 20)), np.ones(500))
    before = policy.nbytes
    policy.update(random.standard_normal((20_000, 20)), np.ones(20_000))
    assert policy.nbytes <= before + 20 * 20 * 8


@pytest.mark.parametrize("name", EVERY)
def test_asking_again_and_again_takes_no_memory(name: str) -> None:
    """Memory that grows on repeated predictions (Vowpal Wabbit #2150)."""
    policy = EVERY[name](30, size=5, ridge=1.0, beta=0.1)
    arms = unit(np.random.default_rng(0).standard_normal((50, 30)))
    rows = sparse.csr_array(arms)
    policy.update(arms, np.ones(50))

    def ask() -> None:
        policy.select(arms)
        policy.top(arms, 3)
        policy.ucb(rows)

    ask()
    gc.collect()
    tracemalloc.start()
    try:
        ask()
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(30):
            ask()
        gc.collect()
        assert tracemalloc.get_traced_memory()[0] <= before + 6_000
    finally:
        tracemalloc.stop()


def test_a_model_without_data_does_not_stick_to_arm_0() -> None:
    """With nothing learned the widest arm is chosen, whatever its index (tensorflow/agents #698)."""
    policy = sb.dbslinucb(4)
    assert policy.select([[1, 0, 0, 0], [0, 3, 0, 0], [0, 0, 2, 0]]) == 1


def test_the_arms_of_today() -> None:
    """Any number of arms, other ones every round, new ones at any time (mabwiser #74, agents #670)."""
    policy = sb.dbslinucb(6, size=3)
    random = np.random.default_rng(0)
    for count in (1, 7, 2, 300, 1):
        arms = random.standard_normal((count, 6))
        chosen = policy.select(arms)
        assert 0 <= chosen < count
        policy.update(arms[chosen], 1.0)
