"""Certificates on data that nobody scaled: never below the true error, computed without any rounding."""

from collections.abc import Callable
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import DTypeLike, NDArray

import sketchbandit as sb
from sketchbandit.linalg import Shrinkage
from sketchbandit.testing import snapshot
from tests.policies import unit
from tests.soak import long_stream

Matrix = NDArray[np.float64]

DIM = 30
ROWS = long_stream(100_000, every_day=0.1)
DTYPES = [np.float64, np.float32]
DOMINANT = [2**10, 2**17, 2**23, 2**30, 2**40]
"""Lengths of the one long column, 1e3 to 1e12: powers of two, which both dtypes hold."""


adaptive = partial(sb.adaptive, scaling=None, intercept=False)


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
        kept = exact_gram(np.concatenate(sketch.views()))  # rows are told as float32, and may be held in more
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
    assert sketch.uncounted <= 1e-11 * sketch.mass


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
    with pytest.warns(sb.TooFewDigitsWarning, match="too long for float32.*or use float64"):
        policy.update(stream.rows, stream.rows[:, 1])
    health = policy.health()
    assert health.heading_for_linear_regret
    assert not health.enough_digits
    assert health.certificate >= np.linalg.eigvalsh(loss(stream, policy.sketch))[-1]


@pytest.mark.parametrize("make", [adaptive, sb.dbslinucb, sb.soful, sb.cbscfd, sb.oful])
def test_float64_says_that_it_has_too_few_digits(make: Callable[..., sb.LinUCB]) -> None:
    """Where rounding exceeds the ridge there is a warning, once, and health() keeps saying it."""
    stream = Stream(2**40, 400)
    policy = make(DIM, ridge=1.0)
    with pytest.warns(sb.TooFewDigitsWarning, match="Scale the columns") as caught:
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
    policy = adaptive(DIM, size=4, ridge=1e20, epsilon=0.5)
    with pytest.warns(sb.TooFewDigitsWarning, match="promised, 0.5"):
        policy.update(rows, rows[:, 1])


@pytest.mark.filterwarnings("ignore::sketchbandit.SketchTooSmallWarning")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("dominant", DOMINANT)
@pytest.mark.parametrize("make", [adaptive, sb.dbslinucb, sb.soful, sb.cbscfd, sb.oful])
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


def long_and_low_rank(count: int) -> tuple[Matrix, list[list[Fraction]]]:
    """One long row in no particular direction, then rows of rank 3, all integers; and X'X exactly."""
    random = np.random.default_rng(0)
    first = np.round(random.uniform(2**20, 2**21, (1, DIM)))
    rows = np.round(random.normal(0, 3, (count, 3))) @ np.round(random.normal(0, 3, (3, DIM)))
    both = np.concatenate([first, rows])
    exact = (both.astype(np.int64).T @ both.astype(np.int64)).tolist()
    return both, [[Fraction(entry) for entry in row] for row in exact]


@pytest.mark.parametrize("told", [False, True])
@pytest.mark.parametrize("decay", [0.3, 0.5, 0.7, 1.0])
def test_rounding_is_known_where_singular_values_decay(decay: float, told: bool) -> None:
    """Rows of rank 3 with so few bits that X'X is exact, shrunk hundreds of times; S x told or computed."""
    random, rank = np.random.default_rng(1), 3
    turned = np.linalg.qr(random.standard_normal((rank, rank)))[0]
    mixed = (random.standard_normal((1500, rank)) * decay ** np.arange(rank)) @ turned
    rows = np.pad(np.rint(mixed * 2.0**18) / 2.0**18, ((0, 0), (0, DIM - rank)))
    sketch = sb.FrequentDirections(DIM, size=rank + 1)
    sketch._store.buffer.share = 0
    for row in rows:
        with sketch._lock:
            products = sketch.views()[0] @ row if told else None
            sketch.take_one(row[np.newaxis], float(row @ row), products)
    assert sketch.error_bound == 0.0
    assert np.abs(np.linalg.eigvalsh(rows.T @ rows - sketch.gram())).max() <= sketch.uncounted


@pytest.mark.parametrize("name", ["fd", "adaptive", "exact"])
def test_what_lossless_shrinks_round_is_known(name: str) -> None:
    """Rotating redundant rows away a thousand times loses nothing but digits; ``uncounted`` says how many."""
    rows, exact = long_and_low_rank(long_stream(100_000, every_day=0.2))
    sketch = MAKERS[name](np.float64)
    sketch.update(rows)
    kept = exact_gram(np.concatenate(sketch.views()))
    drift = np.array([[float(exact[i][j] - kept[i][j]) for j in range(DIM)] for i in range(DIM)])
    known = sketch.error_bound + sketch.uncounted + 8 * np.finfo(np.float64).eps * sketch.mass
    assert np.abs(np.linalg.eigvalsh(drift)).max() <= known
    assert sketch.uncounted <= 1e-11 * sketch.mass
    policy = sb.LinUCB(MAKERS[name](np.float64), ridge=1.0)
    with pytest.warns(sb.TooFewDigitsWarning):
        policy.update(rows, np.zeros(len(rows)))


@pytest.mark.parametrize("column", [1.0, 1e5, 1e6])
@pytest.mark.parametrize(
    "name", ["fd", "fd-2", "scfd", "svd", "adaptive", "adaptive-wide", "dbs-wide", "exact"]
)
def test_rounding_does_not_depend_on_portions(name: str, column: float) -> None:
    """Certificates are the same to the bit, row by row and all at once."""
    rows = np.random.default_rng(0).standard_normal((1500, DIM))
    rows[:, 0] = column
    whole, single = MAKERS[name](np.float64), MAKERS[name](np.float64)
    whole.update(rows)
    for row in rows:
        single.update(row)
    assert snapshot(whole) == snapshot(single)


@pytest.mark.parametrize("column", [1e5, 3e5])
@pytest.mark.parametrize("seed", range(3))
def test_a_merge_keeps_the_budget_beside_a_long_column(column: float, seed: int) -> None:
    """What the other has not charged yet is not charged at once."""
    parts = []
    for turn, long in enumerate((0.0, column)):
        rows = unit(np.random.default_rng([seed, turn]).standard_normal((1500, 200)))
        rows[:, 0] += long
        parts.append(sb.AdaptiveSketch(200, epsilon=40.0, horizon=3000, size=4))
        parts[-1].update(rows)
    parts[0].merge(parts[1])
    assert parts[0].error_bound <= parts[0].budget <= parts[0].error_limit


def test_exact_float32_sketches_merge_exactly() -> None:
    """Rows of rank one, rotated in float64, into a matrix: nothing is rounded to float32 on the way."""
    random = np.random.default_rng(0)
    rows = random.integers(1, 9, (30, 1)) * random.integers(-2000, 2000, (1, 40))
    dense, low = sb.ExactSketch(40, dtype=np.float32), sb.ExactSketch(40, dtype=np.float32)
    dense.update(np.tile(np.eye(40), (2, 1)))
    low.update(rows)
    dense.merge(low)
    expected = 2.0 * np.eye(40) + (rows.T @ rows).astype(float)
    assert np.allclose(dense.covariance(), expected, rtol=0.0, atol=1e-12 * dense.mass)


def test_exact_blocks_of_float32_merge_exactly() -> None:
    """Two that had to become exact: the merged one is exact too, and its certificate that of both."""
    rows = np.random.default_rng(0).standard_normal((2, 400, 20)).astype(np.float32) * 1e3
    one, other = (sb.DyadicBlockSketch(20, size=4, epsilon=1.0, dtype=np.float32) for _ in range(2))
    one.update(rows[0])
    other.update(rows[1])
    expected = one.error_bound + other.error_bound
    one.merge(other)
    assert one.error_bound == expected <= 4.0
    wide = rows.reshape(-1, 20).astype(np.float64)
    assert np.allclose(one.covariance(), wide.T @ wide, rtol=0.0, atol=1e-12 * one.mass + expected)


def test_float32_rows_are_held_in_float64_once_rounding_would_break_the_budget(tmp_path: Path) -> None:
    """Low rank and unit rows, very many: the sketch stays small, within its budget, and its file goes on."""
    rows = unit(np.random.default_rng(0).standard_normal((20_000, 3)) @ np.eye(3, 300)).astype(np.float32)
    sketch = sb.AdaptiveSketch(300, epsilon=0.05, size=10, dtype=np.float32)
    sketch.update(rows)
    assert not sketch.is_dense
    assert sketch.views()[0].dtype == np.float64
    assert sketch.rows.dtype == np.float64
    assert 0.0 < sketch.error_bound <= sketch.budget
    wide = rows.astype(np.float64)
    error = np.linalg.norm(wide.T @ wide - sketch.covariance() + sketch.alpha * np.eye(300), 2)
    assert error <= sketch.error_bound
    sketch.save(tmp_path / "s")
    again = sb.load(tmp_path / "s", sb.Sketch)
    for made in (sketch, again):
        made.update(rows[:500])
    assert snapshot(again) == snapshot(sketch)


def test_intervals_of_the_spectrum_know_rounding() -> None:
    """One row of 1e4 and many short ones in float32: S has grown by rounding, the interval holds."""
    random = np.random.default_rng(0)
    rows = np.concatenate([[[1e4, 0.0, 0.0, 0.0]], random.standard_normal((1200, 4))]).astype(np.float32)
    sketch = sb.FrequentDirections(4, size=2, dtype=np.float32)
    sketch.update(rows)
    true = np.linalg.svd(rows.astype(np.float64), compute_uv=False)[:1] ** 2
    found = sb.spectrum(sketch, 1)
    assert found.lower[0] <= true[0] <= found.upper[0]
    assert found.lower[0] <= found.sigma_sq[0] - sketch.rounding


def test_digits_are_missed_at_once_and_apart_from_the_size() -> None:
    """Arms that become long between two marks; and a policy that has complained of its size before."""
    exact = sb.oful(DIM)
    for row in Stream(1, 520).rows:
        exact.update(row, 0.0)
    with pytest.warns(sb.TooFewDigitsWarning):
        exact.update(np.full(DIM, 1e9), 0.0)
    small = sb.soful(DIM, size=3)
    with pytest.warns(sb.SketchTooSmallWarning, match="too small"):
        small.update(Stream(1, 2000).rows, np.zeros(2000))
    low = sb.soful(DIM, size=40)
    low._watch.health.has_warned = True
    with pytest.warns(sb.TooFewDigitsWarning):
        low.update(np.full(DIM, 1e12), 0.0)


@pytest.mark.parametrize("name", MAKERS)
def test_the_rows_are_what_the_certificate_speaks_of(name: str) -> None:
    """Of a float32 sketch too, whether it holds float32 rows, float64 rows or a matrix."""
    rows = np.random.default_rng(0).standard_normal((150, DIM))
    rows[:, 0] = 1000.0 + 1e-3 * np.arange(150)
    held = rows.astype(np.float32).astype(np.float64)
    sketch = MAKERS[name](np.float32)
    sketch.update(rows)
    told = sketch.rows.astype(np.float64)
    error = np.linalg.eigvalsh(held.T @ held - told.T @ told)
    slack = sketch.uncounted * (DIM if sketch.is_dense else 1)  # of a matrix the rows are a Cholesky factor
    assert error[-1] <= sketch.error_bound + slack
    assert error[0] >= -sketch.rounding - slack


def test_digits_do_not_come_back() -> None:
    """float32 and a long column: what was too few digits in round one is so in every later round."""
    policy = sb.soful(100, size=30, dtype=np.float32)
    rows = np.random.default_rng(0).standard_normal((200, 100))
    rows[:, 0] = 1.7e9
    with pytest.warns(sb.TooFewDigitsWarning, match="too long for float64"):
        policy.update(rows[0], 0.0)
    for row in rows[1:]:
        policy.update(row, 0.0)  # nothing is said twice: warnings are errors here
        assert not policy.health().enough_digits


def test_a_projection_says_so_too() -> None:
    """CBRAP warns of arms that are too long, and health() agrees."""
    policy = sb.cbrap(DIM, size=5)
    with pytest.warns(sb.TooFewDigitsWarning) as caught:
        policy.update(np.full(DIM, 1e10), 1.0)
    assert [warning.filename for warning in caught] == [__file__]
    assert not policy.health().enough_digits


def test_rounding_of_lossless_shrinks_is_charged_as_far_as_the_budget_allows() -> None:
    """After very many of them; the rest stays uncounted, and nothing is forgotten."""
    done = Shrinkage(kept=3, amount=0.0, scale=1e12)
    free, tight = sb.FrequentDirections(8, size=4), sb.AdaptiveSketch(8, size=4)
    assert free._account.charge(done)
    for sketch in (free, tight):
        sketch._account.largest, sketch._account.drift = 1e12, 12.0  # of which 10 are free
    assert not free._account.charge(done)
    assert free.rounding == free.error_bound == pytest.approx(2.0, rel=1e-3)
    assert not tight._account.charge(done, 0.5)
    assert tight.error_bound == 0.5
    assert tight.uncounted == pytest.approx(11.5, rel=1e-3)
