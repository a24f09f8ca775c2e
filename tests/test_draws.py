"""Draws from N(0, A^-1) against the dense matrix: their mean, their covariance, their distribution."""

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats
from scipy.sparse import csr_array

import sketchbandit as sb
from sketchbandit.precision import DenseInverse, LowRankInverse
from tests.policies import CERTIFIED, design_radius, train, unit

pytestmark = pytest.mark.filterwarnings("ignore::sketchbandit.SketchTooSmallWarning")
DIM, DRAWS = 12, 4000
RARE = 1e-4  # what a test with a fixed seed must not be below


def dense(policy: Any) -> NDArray[np.float64]:
    """A, from what the sketch tells."""
    sketch = policy.sketch
    matrix: NDArray[np.float64] = (policy.ridge + sketch.alpha) * np.eye(sketch.dim) + sketch.gram()
    return matrix


def assert_standard(whitened: NDArray[np.float64]) -> None:
    """Rows from N(0, I): sums of squares, means, covariances, and each direction by itself."""
    count, dim = whitened.shape
    length_sq = float(np.square(whitened).sum())
    assert RARE < stats.chi2.cdf(length_sq, count * dim) < 1.0 - RARE
    assert stats.chi2.sf(count * float(np.square(whitened.mean(axis=0)).sum()), dim) > RARE
    correlations = whitened.T @ whitened / count - np.eye(dim)
    off = correlations[np.triu_indices(dim, 1)]
    assert stats.chi2.sf(count * float(off @ off), len(off)) > RARE
    worst = min(stats.kstest(column, "norm").pvalue for column in whitened.T)
    assert worst > RARE / dim


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("rounds", [0, 7, 60])
@pytest.mark.parametrize("name", CERTIFIED)
def test_draws_have_the_covariance_of_the_estimate(name: str, rounds: int, dtype: type) -> None:
    """Before the first row, with few of them and after many; as rows, as blocks and as a matrix."""
    policy = train(CERTIFIED[name](DIM, size=4, ridge=0.7, beta=0.1, dtype=dtype), rounds, DIM)
    random = np.random.default_rng(5)
    drawn = np.array([policy.precision.sample_direction(random) for _ in range(DRAWS)])
    assert_standard(drawn @ np.linalg.cholesky(dense(policy)))


def test_both_forms_were_drawn_from() -> None:
    """What the test above stands on."""
    kinds = {type(train(sb.oful(DIM), rounds, DIM).precision.inverse) for rounds in (2, 60)}
    assert kinds == {LowRankInverse, DenseInverse}


@pytest.mark.usefixtures("backend")
def test_long_rows_leave_no_more_than_their_share() -> None:
    """A row of length 1e6 beside a ridge of 1e-3: its direction is known to 1e-6, the others not at all."""
    policy = sb.soful(DIM, size=5, ridge=1e-3)
    row = unit(np.random.default_rng(0).standard_normal((1, DIM)))[0]
    policy.update(1e6 * row, 1.0)
    drawn = np.array([policy.precision.sample_direction(np.random.default_rng(i)) for i in range(400)])
    assert np.std(drawn @ row) == pytest.approx(1e-6, rel=0.15)
    assert np.std(drawn) == pytest.approx(np.sqrt(1e3 * (DIM - 1) / DIM), rel=0.05)


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("convert", [np.asarray, np.ndarray.tolist])
def test_thompson_plays_the_best_arm_of_a_theta_that_was_drawn(convert: Callable[..., Any]) -> None:
    """The same generator, the same choice: by hand from N(theta, scale²A^-1), and by the rule."""
    policy = train(sb.cbscfd(DIM, size=4, explore=sb.Thompson(0.8, seed=3)), 40, DIM)
    arms = unit(np.random.default_rng(1).standard_normal((9, DIM)))
    for _ in range(50):
        twin = np.random.default_rng()
        twin.bit_generator.state = policy.random.bit_generator.state
        theta = policy.theta + 0.8 * policy.precision.sample_direction(twin)
        assert policy.select(convert(arms)) == (arms @ theta).argmax()
        assert twin.bit_generator.state == policy.random.bit_generator.state


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("name", ["cbscfd", "dbs-rfd"])
@pytest.mark.parametrize("sparsely", [False, True], ids=["learned-dense", "learned-sparse"])
def test_scores_of_sparse_arms_are_drawn_without_a_theta(name: str, *, sparsely: bool) -> None:
    """Of sparse arms only the scores are drawn: N(means, scale²·X A^-1 X'), as of dense ones."""
    dim = 2500  # so large that five arms are few
    policy = CERTIFIED[name](dim, size=4, ridge=0.7, beta=0.1)
    random = np.random.default_rng(1)
    for x in unit(random.standard_normal((12, dim))):
        policy.update(csr_array(x[np.newaxis]) if sparsely else x, float(random.standard_normal()))
    arms = unit(random.standard_normal((5, dim)))
    arms[:, 20:] = 0.0
    candidates = policy._candidates(policy._read(csr_array(arms)))
    covariance = arms @ np.linalg.solve(dense(policy), arms.T)
    gram = policy.precision.gram(candidates._scan)
    assert gram is not None
    np.testing.assert_allclose(gram, covariance, atol=1e-12)
    drawn = np.array([candidates.drawn(random) for _ in range(DRAWS)])
    off = (drawn - policy.mean(arms)) / policy.radius
    assert_standard(np.linalg.solve(np.linalg.cholesky(covariance), off.T).T)
    twins = policy._candidates(policy._read(csr_array(arms[[0, 1, 1, 0]])))
    for _ in range(50):
        scores = twins.drawn(random)
        assert scores[0] == scores[3]
        assert scores[1] == scores[2]


@pytest.mark.parametrize("name", [name for name in CERTIFIED if name != "oful"])
def test_the_scale_of_a_theorem_is_the_realised_radius(name: str) -> None:
    """beta_t, as UCB has it, after the same rounds."""
    confidence = sb.Confidence(noise=0.3)
    policy = train(CERTIFIED[name](DIM, size=4, ridge=0.7, beta=confidence), 40, DIM)
    twin = sb.LinUCB(
        type(policy.sketch)(**policy.sketch._settings()), ridge=0.7, explore=sb.Thompson(confidence, seed=0)
    )
    random = np.random.default_rng(0)
    for _ in range(40):
        twin.update(unit(random.standard_normal((1, DIM)))[0], 0.5)
    for one in (policy, twin):
        assert one.radius == pytest.approx(design_radius(confidence, one.sketch, 0.7))


# -- a dense inverse that is drawn from between its updates ------------------------------------------------


def interleaved(dim: int, rounds: int, *, ask: bool) -> Any:
    """OFUL as a matrix; a draw before every update, or none."""
    policy = sb.oful(dim, ridge=0.5)
    random = np.random.default_rng(3)
    policy.update(unit(random.standard_normal((dim, dim))), random.standard_normal(dim))
    assert isinstance(policy.precision.inverse, DenseInverse)
    for _ in range(rounds):
        if ask:
            policy.precision.sample_direction(np.random.default_rng(0))
        policy.update(unit(random.standard_normal((1, dim)))[0], 1.0)
    return policy


@pytest.mark.parametrize("rounds", [7, 40, 70])
def test_draws_between_updates_have_the_covariance_of_the_estimate(rounds: int) -> None:
    """Some updates wait until 32 came together; what a draw has kept of them must follow."""
    policy = interleaved(130, rounds, ask=True)
    assert 0 < policy.precision.inverse.pending_count < 32
    random = np.random.default_rng(1)
    drawn = np.array([policy.precision.sample_direction(random) for _ in range(600)])
    assert_standard(drawn @ np.linalg.cholesky(dense(policy)))


@pytest.mark.parametrize("rounds", [7, 40])
def test_draws_do_not_depend_on_earlier_ones(rounds: int, tmp_path: Path) -> None:
    """Asked before, never asked, and loaded from a file: the same generator draws the same, to the bit."""
    asked, silent = (interleaved(130, rounds, ask=ask) for ask in (True, False))
    asked.save(tmp_path / "p")
    loaded = sb.load(tmp_path / "p", sb.LinUCB)
    draws = [
        policy.precision.sample_direction(np.random.default_rng(9)).tobytes()
        for policy in (asked, silent, loaded)
    ]
    assert draws[0] == draws[1] == draws[2]


def test_a_matrix_that_rounding_made_indefinite_is_drawn_from() -> None:
    """Arms of lengths 1e6 beside a ridge of 1e-10: what has no digits is not worth an exception."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sb.TooFewDigitsWarning)
        for seed in range(300):
            random = np.random.default_rng([436964929, seed])
            policy = sb.oful(4, ridge=1e-10, explore=sb.Thompson(0.5, seed=0))
            basis = random.standard_normal((2, 4)) * 1e6
            for _ in range(8):
                policy.select(np.eye(4))
                weights = random.standard_normal(2) * 10.0 ** random.uniform(-3.0, 0.0, 2)
                is_long = random.random() > 0.2
                policy.update(weights @ basis if is_long else random.standard_normal(4), 1.0)
