"""FrequentDirections for every compensation: the inherited laws, the paper's lemma, the RFD theorems."""

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from numpy.typing import DTypeLike

import sketchbandit as sb
from sketchbandit.linalg import fd_bound, normalised, row_norms_sq, rows_times, singular_values_sq
from sketchbandit.testing import (
    SketchLaws,
    Stream,
    UnbufferedFrequentDirections,
    make_rows,
    snapshot,
    streams,
)
from tests.policies import adaptive, saved
from tests.soak import long_stream
from tests.theorems import assert_scfd_theorems


class TestFD(SketchLaws):
    """Compensation 0."""

    def make(self, dim: int, size: int, dtype: DTypeLike = np.float64) -> Any:
        """Frequent Directions."""
        return sb.FrequentDirections(dim, size=size, dtype=dtype)


class TestRFD(SketchLaws):
    """Compensation 0.5, the RFD of Luo et al."""

    def make(self, dim: int, size: int, dtype: DTypeLike = np.float64) -> Any:
        """Robust Frequent Directions."""
        return sb.FrequentDirections(dim, size=size, compensation=0.5, dtype=dtype)


class TestSCFD(SketchLaws):
    """Compensation 1, the RFD of the paper."""

    def make(self, dim: int, size: int, dtype: DTypeLike = np.float64) -> Any:
        """Spectral-compensation Frequent Directions."""
        return sb.FrequentDirections(dim, size=size, compensation=1.0, dtype=dtype)


class Told(sb.FrequentDirections):
    """Is told S x with every row, whatever its dim, as a policy tells that has it."""

    kind = "test-told"

    def __init__(self, dim: int, *, size: int = 50, dtype: DTypeLike = np.float64) -> None:
        super().__init__(dim, size=size, dtype=dtype)
        self._store.buffer.share = 0

    def take(self, rows: Any, norms_sq: Any) -> sb.Change:
        """Take them one by one."""
        return tell(self, rows, norms_sq)

    def _settings(self) -> dict[str, Any]:
        return {"dim": self.dim, "size": self.size, "dtype": self.dtype.name}


class ToldAdaptive(sb.AdaptiveSketch):
    """The same for the adaptive sketch."""

    kind = "test-told-adaptive"

    def __init__(self, dim: int, *, size: int = 10, dtype: DTypeLike = np.float64) -> None:
        super().__init__(dim, size=size, epsilon=300.0, dtype=dtype)
        self._store.buffer.share = 0

    def take(self, rows: Any, norms_sq: Any) -> sb.Change:
        """Take them one by one."""
        return tell(self, rows, norms_sq)

    def _settings(self) -> dict[str, Any]:
        return {"dim": self.dim, "size": self._least_size, "dtype": self.dtype.name}


def tell(sketch: sb.Sketch, rows: Any, norms_sq: Any) -> sb.Change:
    """Give rows to a sketch one by one, each with its products unless it holds a matrix."""
    change = sb.Change()
    for row, norm_sq in zip(rows, norms_sq.tolist(), strict=True):
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            products = None if sketch.is_dense else rows_times(sketch.views()[0], row)
        change = change.then(sketch.take_one(row[np.newaxis], norm_sq, products))
    return change


class TestTold(SketchLaws):
    """Products that are known beforehand are as good as those that a shrink computes."""

    def make(self, dim: int, size: int, dtype: DTypeLike = np.float64) -> Any:
        """Frequent Directions that is told them."""
        return Told(dim, size=size, dtype=dtype)


class TestToldAdaptive(SketchLaws):
    """The same for the adaptive sketch, whose buffer changes its length."""

    def make(self, dim: int, size: int, dtype: DTypeLike = np.float64) -> Any:
        """An adaptive sketch that is told them."""
        return ToldAdaptive(dim, size=size, dtype=dtype)


@given(streams(extreme=False))
def test_products_that_are_known_change_rounding_only(stream: Stream) -> None:
    """Rows and certificate agree with those of a sketch that computes the products itself."""
    told, plain = Told(stream.dim, size=stream.size), sb.FrequentDirections(stream.dim, size=stream.size)
    for row in stream.rows:
        told.update(row)
        plain.update(row)
        np.testing.assert_allclose(told.gram(), plain.gram(), rtol=0, atol=1e-10 * plain.mass)
        assert told.error_bound == pytest.approx(plain.error_bound, rel=1e-10, abs=1e-12 * plain.mass)


def test_products_that_are_known_are_not_computed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows in float64 that a shrink has left are orthogonal; in float32 only nearly."""
    multiplied: list[int] = []

    def noted(rows: Any) -> Any:
        multiplied.append(len(rows))
        return rows @ rows.T

    for module in ("sketchbandit.sketch.row_store", "sketchbandit.linalg.shrink"):
        monkeypatch.setattr(importlib.import_module(module), "gram", noted)
    rows = make_rows("gaussian", 40, 320, 0)
    for kind, dtype, counts in (
        (sb.FrequentDirections, np.float64, [20, 20]),
        (Told, np.float64, [1]),
        (Told, np.float32, [1, 9]),
    ):
        multiplied.clear()
        kind(320, size=10, dtype=dtype).update(rows)
        assert multiplied == counts


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_other_sketches_take_no_notice_of_products(dtype: DTypeLike) -> None:
    """Nor do short rows: they are as without them."""
    rows = make_rows("gaussian", 200, 64, 0).astype(dtype)
    for kind in (sb.FrequentDirections, sb.AdaptiveSketch, sb.ExactSketch, sb.DyadicBlockSketch):
        told, plain = kind(64, dtype=dtype), kind(64, dtype=dtype)
        for row in rows:
            norm_sq = float(np.square(row, dtype=np.float64).sum())
            with told._lock, plain._lock:
                change = told.take_one(row[np.newaxis], norm_sq, np.zeros(told.row_count))
                assert change == plain.take_one(row[np.newaxis], norm_sq)
        assert snapshot(told) == snapshot(plain)


def test_products_take_little_memory() -> None:
    """They are kept only where a row is much longer than the sketch."""
    for dim, dtype, kept in (
        (300, np.float64, False),
        (310, np.float64, True),
        (600, np.float32, False),
        (620, np.float32, True),
    ):
        sketch = sb.FrequentDirections(dim, size=20, dtype=dtype)
        rows = make_rows("gaussian", 39, dim, 0).astype(dtype)
        with sketch._lock:
            tell(sketch, rows, row_norms_sq(rows))
        rows_alone = 40 * rows.itemsize * dim
        assert (sketch.nbytes > rows_alone) is kept
        assert sketch.nbytes <= 16 / 15 * rows_alone


@pytest.mark.usefixtures("backend")
@pytest.mark.filterwarnings("ignore::sketchbandit.SketchTooSmallWarning")
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(
    ("rewards", "forget"),
    [(sb.Linear(), None), (sb.Linear(), 0.99), (sb.Logistic(), None)],
    ids=["linear", "forgetting", "weights"],
)
@pytest.mark.parametrize("recipe", [sb.cbscfd, sb.adaptive])
def test_a_policy_tells_its_sketch_the_products(
    monkeypatch: pytest.MonkeyPatch, recipe: Any, rewards: Any, forget: float | None, dtype: DTypeLike
) -> None:
    """A shrink multiplies no rows of the rounds again, and what is learned is the same up to rounding."""
    dim, count = 900, 60
    more: dict[str, Any] = (
        {"epsilon": 8.0, "horizon": count, "scaling": None} if recipe is sb.adaptive else {}
    )
    told, many = (
        recipe(dim, size=8, ridge=1.0, rewards=rewards, forget=forget, dtype=dtype, baseline=False, **more)
        for _ in range(2)
    )
    arms = normalised(make_rows("gaussian", count, dim, 0))
    gained = np.random.default_rng(1).integers(0, 2, count).astype(float)
    module, multiplied = importlib.import_module("sketchbandit.linalg.shrink"), 0

    def noted(rows: Any) -> Any:
        nonlocal multiplied
        multiplied += 1
        return rows.astype(float) @ rows.T.astype(float)

    with monkeypatch.context() as patch:
        patch.setattr(module, "gram", noted)
        for arm, reward in zip(arms, gained.tolist(), strict=True):
            told.update(arm, reward)
    assert multiplied == 0
    assert told.sketch.error_bound > 0.0
    many.update(arms, gained)
    tolerance = 1e-10 if dtype is np.float64 else 1e-5
    mass = many.sketch.mass
    assert np.allclose(told.sketch.gram(), many.sketch.gram(), rtol=0.0, atol=tolerance * mass)
    assert told.sketch.error_bound == pytest.approx(many.sketch.error_bound, rel=tolerance)
    assert np.allclose(told.theta, many.theta, rtol=tolerance, atol=tolerance * np.abs(many.theta).max())


@pytest.mark.cores
@pytest.mark.usefixtures("backend")
@pytest.mark.filterwarnings("ignore::sketchbandit.SketchTooSmallWarning")
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("forget", [None, 0.99])
@pytest.mark.parametrize("recipe", [sb.soful, adaptive])
def test_products_do_not_depend_on_questions_and_loads(
    tmp_path: Path, recipe: Any, forget: float | None, dtype: DTypeLike
) -> None:
    """One policy chooses, one only learns, one is loaded between two shrinks: the same to the bit."""
    dim, path, saved_products = 700, tmp_path / "policy.safetensors", 0
    asked, silent = (recipe(dim, size=6, ridge=1.0, beta=0.1, forget=forget, dtype=dtype) for _ in range(2))
    loaded = asked
    for t in range(120):
        arms = normalised(make_rows("gaussian", 4, dim, t)).astype(dtype)
        chosen = asked.select(arms)
        for policy in {id(one): one for one in (asked, silent, loaded)}.values():
            policy.update(arms[chosen], 0.1 * chosen)
        if t % 13 == 5:
            saved_products += "products" in asked.sketch.dump()[1]
            asked.save(path)
            loaded = sb.load(path)
    assert asked.sketch.error_bound > 0.0
    assert saved_products > 1
    assert saved(asked) == saved(silent) == saved(loaded)


@given(streams())
def test_lemma_fd_at_every_step(stream: Stream) -> None:
    """The certificate is at most Delta of eq. (spectral error), whose minimum covers every k."""
    sketch = sb.FrequentDirections(stream.dim, size=stream.size)
    for t, row in enumerate(stream.rows, start=1):
        sketch.update(row)
        bound = fd_bound(singular_values_sq(stream.rows[:t]), stream.size)
        assert sketch.error_bound <= bound * (1 + 1e-9) + 1e-11 * sketch.mass


@given(streams())
def test_unbuffered_oracle_obeys_the_same_lemma(stream: Stream) -> None:
    """Algorithm FD to the letter satisfies the bound, as the buffered one does."""
    oracle = UnbufferedFrequentDirections(stream.dim, size=stream.size)
    for row in stream.rows:
        oracle.update(row)
    covariance = stream.rows.T @ stream.rows
    mass = float(np.trace(covariance))
    loss = np.linalg.eigvalsh(covariance - oracle.rows.T @ oracle.rows)
    assert loss[0] >= -1e-11 * mass
    assert loss[-1] <= oracle.error_bound + 1e-11 * mass
    bound = fd_bound(singular_values_sq(stream.rows), stream.size)
    assert oracle.error_bound <= bound * (1 + 1e-9) + 1e-11 * mass


@given(streams(extreme=False))
def test_a_full_buffer_is_one_oracle_shrink(stream: Stream) -> None:
    """The first shrink takes sigma_size² of the 2·size rows read, not of another index."""
    size = stream.size
    rows = stream.rows[stream.rows.any(axis=1)][: 2 * size]  # zero rows take no place in the buffer
    if len(rows) < 2 * size or size > stream.dim:
        return
    sketch = sb.FrequentDirections(stream.dim, size=size)
    sketch.update(rows)
    sigma_sq = singular_values_sq(rows)
    expected = sigma_sq[size - 1] if len(sigma_sq) >= size else 0.0
    assert sketch.error_bound == pytest.approx(expected, rel=1e-6, abs=1e-11 * sketch.mass)
    kept = singular_values_sq(sketch.rows) if len(sketch.rows) else np.zeros(1)
    wanted = np.maximum(sigma_sq[: len(kept)] - expected, 0.0)
    assert np.allclose(kept, wanted, rtol=1e-6, atol=1e-11 * sketch.mass)


@given(streams())
def test_scfd_is_monotone_dominates_and_is_well_conditioned(stream: Stream) -> None:
    """The paper's theorems on RFD, the second as corrected, at every step."""
    assert_scfd_theorems(sb.FrequentDirections(stream.dim, size=stream.size, compensation=1.0), stream.rows)


@pytest.mark.parametrize("compensation", [0.0, 0.5, 1.0])
@given(stream=streams())
def test_alpha_is_the_compensated_certificate(compensation: float, stream: Stream) -> None:
    """Alpha = compensation · e, neither once too few nor once too many; e is the same for all three."""
    sketch = sb.FrequentDirections(stream.dim, size=stream.size, compensation=compensation)
    plain = sb.FrequentDirections(stream.dim, size=stream.size)
    sketch.update(stream.rows)
    plain.update(stream.rows)
    assert sketch.error_bound == plain.error_bound
    assert sketch.alpha == compensation * plain.error_bound
    assert np.array_equal(sketch.rows, plain.rows)


def test_size_above_dim_equals_exact() -> None:
    """With size > dim nothing is ever shrunk, over many more rows than the buffer holds."""
    rows = make_rows("gaussian", 500, 7, 0)
    sketch = sb.FrequentDirections(7, size=8)
    sketch.update(rows)
    assert sketch.error_bound == 0.0
    assert np.allclose(sketch.covariance(), rows.T @ rows, rtol=1e-12)


def test_buffered_rows_count() -> None:
    """The last row is part of the sketch at once, however full the buffer."""
    rows = make_rows("gaussian", 40, 30, 0)
    sketch = sb.FrequentDirections(30, size=10)
    for row in rows:
        sketch.update(row)
        share = row @ (sketch.rows.T @ (sketch.rows @ row)) + sketch.error_bound * (row @ row)
        assert share >= (row @ row) ** 2 * (1 - 1e-12)


def test_one_row_a_million_times() -> None:
    """One direction, exact, without a warning or a NaN."""
    row, count = np.arange(1.0, 6.0), long_stream(1_000_000, every_day=0.05)
    sketch = sb.FrequentDirections(5, size=2, compensation=1.0)
    sketch.update(np.broadcast_to(row, (count, 5)))
    assert sketch.error_bound == 0.0
    assert np.allclose(sketch.covariance(), count * np.outer(row, row), rtol=1e-15 * count)


def test_float32_halves_memory() -> None:
    """The same stream in half the bytes."""
    rows = make_rows("gaussian", 300, 100, 0)
    single, double = (sb.FrequentDirections(100, size=20, dtype=d) for d in (np.float32, np.float64))
    single.update(rows)
    double.update(rows)
    assert single.nbytes * 2 == double.nbytes


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"dim": 0}, ValueError),
        ({"dim": -3}, ValueError),
        ({"dim": 5.0}, TypeError),
        ({"dim": True}, TypeError),
        ({"dim": "5"}, TypeError),
        ({"dim": 5, "size": 1}, ValueError),
        ({"dim": 5, "size": 2.5}, TypeError),
        ({"dim": 5, "compensation": 0.3}, ValueError),
        ({"dim": 5, "compensation": "1"}, TypeError),
        ({"dim": 5, "dtype": np.int64}, TypeError),
        ({"dim": 5, "dtype": np.float16}, TypeError),
        ({"dim": 5, "dtype": "nonsense"}, TypeError),
    ],
)
def test_bad_settings(arguments: dict[str, Any], error: type[Exception]) -> None:
    """Each is refused at construction with the value seen in the message."""
    bad = list(arguments.values())[-1]
    with pytest.raises(error) as caught:
        sb.FrequentDirections(**arguments)
    assert isinstance(caught.value, sb.SketchBanditError)
    seen = np.dtype(bad).name if isinstance(bad, type) else str(bad)
    assert seen in str(caught.value)


def test_settings_are_keyword_only() -> None:
    """Only dim may be positional."""
    with pytest.raises(TypeError):
        sb.FrequentDirections(5, 3)  # type: ignore[call-arg]


def test_products_of_rows_take_little_memory_and_no_rubbish() -> None:
    """Forgetting touches what is known alone; a sketch that grows gives the products up."""
    policy = sb.LinUCB(sb.AdaptiveSketch(600, size=10, epsilon=1e-9), forget=0.9)
    for x in np.random.default_rng(0).standard_normal((250, 600)):
        policy.update(x, 1.0)
    grown = policy.sketch._store.buffer
    assert grown._products.nbytes <= grown._array.nbytes / 10
    policy = sb.soful(200, size=5)
    for x in np.random.default_rng(0).standard_normal((8, 200)):
        policy.update(x, 1.0)
    buffer = policy.sketch._store.buffer
    assert len(buffer._products) > buffer._filled > 0
    buffer._products[buffer._filled :] = 1.7e308
    with np.errstate(all="raise"):
        buffer.scale(2.0)
