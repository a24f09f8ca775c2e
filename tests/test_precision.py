"""Certificates on data that nobody scaled: never below the true error, computed without any rounding."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import DTypeLike, NDArray

import sketchbandit as sb
from tests.soak import long_stream

Matrix = NDArray[np.float64]

DIM = 30
ROWS = long_stream(100_000, every_day=0.1)
DTYPES = [np.float64, np.float32]
DOMINANT = [2**10, 2**17, 2**23, 2**30, 2**40]
"""Lengths of the one long column, 1e3 to 1e12: powers of two, which both dtypes hold."""


class Stream:
    """One constant column beside others of about 1/2, all multiples of 1/64, so that sums are exact."""

    def __init__(self, dominant: int, count: int = ROWS, seed: int = 0) -> None:
        random = np.random.default_rng(seed)
        self.whole = random.normal(0.0, 32.0, (count, DIM)).round().clip(-127, 127)  # in units of 1/64
        self.whole[:, 0] = 0.0
        self.dominant = dominant
        self.rows: Matrix = self.whole / 64.0
        self.rows[:, 0] = float(dominant)

    def covariance(self) -> list[list[Fraction]]:
        """X'X, exactly: every sum of the small columns is an integer far below 2^53."""
        small = (self.whole.T @ self.whole).astype(np.int64).tolist()
        sums = self.whole.sum(axis=0).astype(np.int64).tolist()
        exact = [[Fraction(entry, 64 * 64) for entry in row] for row in small]
        for j in range(1, DIM):
            exact[0][j] = exact[j][0] = Fraction(self.dominant * sums[j], 64)
        exact[0][0] = Fraction(self.dominant**2 * len(self.whole))
        return exact


def exact_gram(matrix: NDArray[Any]) -> list[list[Fraction]]:
    """S'S without rounding."""
    rows = [[Fraction(float(entry)) for entry in row] for row in matrix]
    return [[sum((row[i] * row[j] for row in rows), Fraction(0)) for j in range(DIM)] for i in range(DIM)]


def loss(stream: Stream, sketch: sb.Sketch) -> Matrix:
    """X'X - S'S, rounded only when all is subtracted; of a dense sketch the matrix that it holds."""
    if sketch.is_dense:
        held = (sketch.covariance() - sketch.alpha * np.eye(DIM)).tolist()
        kept = [[Fraction(entry) for entry in row] for row in held]
    else:
        kept = exact_gram(sketch.rows)
    exact = stream.covariance()
    return np.array([[float(exact[i][j] - kept[i][j]) for j in range(DIM)] for i in range(DIM)])


MAKERS: dict[str, Callable[..., Any]] = {
    "fd": lambda dtype: sb.FrequentDirections(DIM, size=10, dtype=dtype),
    "fd-2": lambda dtype: sb.FrequentDirections(DIM, size=2, dtype=dtype),
    "scfd": lambda dtype: sb.FrequentDirections(DIM, size=10, compensation=1.0, dtype=dtype),
    "svd": lambda dtype: sb.IncrementalSVD(DIM, size=10, dtype=dtype),
    "dbs": lambda dtype: sb.DyadicBlockSketch(DIM, size=2, epsilon=1.0, dtype=dtype),
    "dbs-wide": lambda dtype: sb.DyadicBlockSketch(DIM, size=4, epsilon=1e9, dtype=dtype),
    "adaptive": lambda dtype: sb.AdaptiveSketch(DIM, size=4, dtype=dtype),
    "adaptive-wide": lambda dtype: sb.AdaptiveSketch(DIM, size=4, epsilon=1e6, dtype=dtype),
    "exact": lambda dtype: sb.ExactSketch(DIM, dtype=dtype),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("dominant", DOMINANT)
@pytest.mark.parametrize("name", MAKERS)
def test_the_certificate_is_never_below_the_true_error(name: str, dominant: int, dtype: DTypeLike) -> None:
    """X'X ⪯ S'S + e I and S'S ⪯ X'X + rounding I, to 1e-13 of the mass, and promises are kept."""
    stream = Stream(dominant)
    sketch = MAKERS[name](dtype)
    sketch.update(stream.rows)
    spectrum = np.linalg.eigvalsh(loss(stream, sketch))
    free = 1e-13 * sketch.mass if sketch.error_bound < 1e-13 * sketch.mass else 0.0
    assert spectrum[-1] <= sketch.error_bound + free
    assert spectrum[0] >= -sketch.rounding - free
    assert sketch.error_bound <= sketch.error_limit


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("dominant", DOMINANT)
@pytest.mark.parametrize("name", MAKERS)
def test_short_columns_beside_a_long_one_are_kept_or_certified(
    name: str, dominant: int, dtype: DTypeLike
) -> None:
    """What the other columns lose is certified, even where the rounding of the long one hides it."""
    stream = Stream(dominant)
    sketch = MAKERS[name](dtype)
    sketch.update(stream.rows)
    short = np.linalg.eigvalsh(loss(stream, sketch)[1:, 1:])
    assert short[-1] <= sketch.error_bound * (1 + 1e-9) + 1e-6


def test_a_column_of_milliseconds() -> None:
    """Epoch milliseconds beside features of about one: 0.6 said e = 0 and had lost 2,771."""
    stream = Stream(1_700_000_000_000)
    sketch = sb.AdaptiveSketch(DIM)
    sketch.update(stream.rows)
    assert np.linalg.eigvalsh(loss(stream, sketch)[1:, 1:])[-1] <= sketch.error_bound + 1e-6
    assert sketch.error_bound <= sketch.budget


def test_rows_that_float32_cannot_add() -> None:
    """One row of length 1e4, then unit rows in its direction: float32 adds none of them, and says so."""
    count = 50_000
    sketch = sb.FrequentDirections(3, size=2, dtype=np.float32)
    sketch.update([1e4, 0.0, 0.0])
    sketch.update(np.tile([1.0, 0.0, 0.0], (count, 1)))
    lost = 1e8 + count - float(np.square(sketch.rows.astype(np.float64)).sum())
    assert lost > 0.9 * count
    assert sketch.error_bound >= lost


def test_float32_says_that_it_has_too_few_digits() -> None:
    """A constant column of 1e5: 0.6 said e = 56, which the regret bound could bear."""
    stream = Stream(100_000)
    policy = sb.soful(DIM, size=10, dtype=np.float32)
    with pytest.warns(sb.SketchTooSmallWarning, match="float32 has too few digits"):
        policy.update(stream.rows, stream.rows[:, 1])
    health = policy.health()
    assert health.heading_for_linear_regret
    assert health.certificate >= np.linalg.eigvalsh(loss(stream, policy.sketch))[-1]


@pytest.mark.parametrize("make", [sb.adaptive, sb.dbslinucb, sb.soful, sb.cbscfd, sb.oful])
def test_float64_says_that_it_has_too_few_digits(make: Callable[..., sb.LinUCB]) -> None:
    """Where rounding exceeds the ridge there is a warning, once, and health() keeps saying it."""
    stream = Stream(2**40, 400)
    policy = make(DIM, ridge=1.0)
    with pytest.warns(sb.TooFewDigitsWarning, match="scale the columns") as caught:
        policy.update(stream.rows, stream.rows[:, 1])
    assert [warning.filename for warning in caught] == [__file__]
    for row in stream.rows[:50]:
        policy.update(row, 0.0)  # it was said: warnings are errors here
    assert not policy.health().enough_digits
    assert "more than the ridge" in policy.health().sentence
    scaled = make(DIM, ridge=1.0)
    scaled.update(stream.rows[:40, 1:] @ np.eye(DIM - 1, DIM), np.zeros(40))
    assert scaled.health().enough_digits


def test_a_promise_that_float64_cannot_keep_is_named() -> None:
    """A ridge that rounding leaves alone, and an epsilon that it does not."""
    rows = Stream(2**40, 400).rows
    policy = sb.adaptive(DIM, size=4, ridge=1e20, epsilon=0.5)
    with pytest.warns(sb.TooFewDigitsWarning, match="promised, 0.5"):
        policy.update(rows, rows[:, 1])


@pytest.mark.filterwarnings("ignore::sketchbandit.SketchTooSmallWarning")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("dominant", DOMINANT)
@pytest.mark.parametrize("make", [sb.adaptive, sb.dbslinucb, sb.soful, sb.cbscfd, sb.oful])
def test_the_radius_covers(make: Callable[..., sb.LinUCB], dominant: int, dtype: DTypeLike) -> None:
    """theta* is in the ellipsoid, whatever the length of the one long column."""
    noise, count = 0.1, 2000
    stream = Stream(dominant, count)
    random = np.random.default_rng(1)
    theta = random.standard_normal(DIM)
    theta /= np.linalg.norm(theta)
    theta[0] /= dominant
    beta = sb.Confidence(noise=noise, theta_norm=1.0, delta=0.01)
    policy = make(DIM, ridge=1.0, beta=beta, dtype=dtype)
    rewards = stream.rows @ theta + noise * random.standard_normal(count)
    for rows, values in zip(np.split(stream.rows, 20), np.split(rewards, 20), strict=True):
        policy.update(rows, values)
        gap = policy.theta - theta
        matrix = policy.sketch.covariance() + policy.ridge * np.eye(DIM)
        assert gap @ matrix @ gap <= policy.radius**2


def test_a_dense_inverse_of_columns_of_any_length() -> None:
    """OFUL with a column of 1e12 beside short ones: theta is that of the scaled problem, not of a jitter."""
    stream = Stream(2**40, 500)
    weights = np.linspace(-1.0, 1.0, DIM)
    weights[0] = 0.0
    policy = sb.oful(DIM, ridge=1.0)
    with pytest.warns(sb.TooFewDigitsWarning):
        policy.update(stream.rows, stream.rows @ weights)
    small = stream.rows[:, 1:] - stream.rows[:, 1:].mean(axis=0)  # what a constant column takes away
    expected = np.linalg.solve(small.T @ small + np.eye(DIM - 1), small.T @ (stream.rows @ weights))
    assert np.allclose(policy.theta[1:], expected, rtol=0.0, atol=1e-6)
