"""AdaptiveSketch: the inherited laws, the law of the budget, and the statements of docs/adaptive.md."""

import math
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import DTypeLike, NDArray
from scipy import sparse

import sketchbandit as sb
from sketchbandit.linalg import singular_values_sq
from sketchbandit.sketch.adaptive import Anytime, Budget, Growing, Horizon
from sketchbandit.testing import SketchLaws, Stream, assert_bracketed, make_rows, snapshot, streams
from tests.theorems import assert_scfd_theorems

EPSILON = 3.0
ROUNDING = 1e-9

Matrix = NDArray[np.float64]


def words(count: int, dim: int = 2904, length: int = 30, seed: int = 0) -> sparse.csr_array:
    """Sparse rows of length one: so many words, drawn by Zipf's law."""
    random = np.random.default_rng(seed)
    chances = 1.0 / np.arange(1, dim + 1) ** 1.1
    columns = random.choice(dim, (count, length), p=chances / chances.sum())
    starts = np.arange(0, columns.size + 1, length)
    rows = sparse.csr_array((np.ones(columns.size), columns.ravel(), starts), shape=(count, dim))
    rows.sum_duplicates()
    lengths = np.sqrt(rows.multiply(rows).sum(axis=1))
    return sparse.csr_array(sparse.diags_array(1.0 / lengths) @ rows)


def test_a_short_horizon_saves_rows_and_a_long_one_costs_some_at_first() -> None:
    """Beside no horizon, 3/10,000 of epsilon a row: on sparse rows that is seen in the size."""
    anytime = Anytime(1.0)
    for horizon in (500, 1000, 2000, 3333):
        assert all(Horizon(1.0, horizon)(t) >= anytime(t) for t in range(1, horizon + 1))
    for horizon in (3334, 5000, 10_000):
        assert all(Horizon(1.0, horizon)(t) < anytime(t) for t in range(1, 2001))
        assert Horizon(1.0, horizon)(horizon) > anytime(horizon)
    sizes, stream = [], words(1000)
    for known in (1000, 2000, None, 5000, 10_000):
        sketch = sb.AdaptiveSketch(2904, epsilon=1.25, horizon=known, size=10)
        for rows in np.split(np.arange(1000), 20):
            sketch.update(stream[rows])
        sizes.append(sketch.size)
    assert sizes == sorted(sizes)
    assert sizes[1] < 0.8 * sizes[2]
    assert sizes[-1] > 1.5 * sizes[2]


class TestAnytime(SketchLaws):
    """No horizon, compensated."""

    def make(self, dim: int, size: int, dtype: DTypeLike = np.float64) -> Any:
        """An epsilon that short streams can spend."""
        return sb.AdaptiveSketch(dim, size=size, epsilon=300.0, dtype=dtype)


class TestHorizon(SketchLaws):
    """With a horizon that some streams outlast, uncompensated."""

    def make(self, dim: int, size: int, dtype: DTypeLike = np.float64) -> Any:
        """Spent after 40 rows."""
        return sb.AdaptiveSketch(dim, size=size, epsilon=EPSILON, horizon=40, compensation=0.0, dtype=dtype)


class TestOrder(SketchLaws):
    """A budget that grows like a root of t, half compensated."""

    def make(self, dim: int, size: int, dtype: DTypeLike = np.float64) -> Any:
        """For a regret of t^(3/4)."""
        return sb.AdaptiveSketch(dim, size=size, epsilon=EPSILON, order=0.75, compensation=0.5, dtype=dtype)


def wide_streams() -> st.SearchStrategy[Stream]:
    """Dimensions in which it can lose something before it turns dense."""
    return streams(max_count=120, max_dim=40, max_size=4)


@st.composite
def sketches(draw: Any, stream: Stream) -> sb.AdaptiveSketch:
    """A sketch for the stream whose budget is a good part of what the stream has."""
    longest = float(np.square(stream.rows).sum(axis=1).max(initial=0.0)) or 1.0
    epsilon = longest * draw(st.sampled_from([0.01, 0.3, 2.0, 10.0, 1000.0]))
    how: dict[str, Any] = draw(
        st.sampled_from([{}, {"horizon": 30}, {"horizon": 500}, {"order": 0.5}, {"order": 0.9}])
    )
    compensation = draw(st.sampled_from([0.0, 0.5, 1.0]))
    return sb.AdaptiveSketch(stream.dim, epsilon=epsilon, size=stream.size, compensation=compensation, **how)


@given(data=st.data(), stream=wide_streams())
def test_the_certificate_is_within_the_budget_at_every_step(data: Any, stream: Stream) -> None:
    """E <= budget(t), in floating point without any tolerance; the bracket holds; the budget never falls."""
    sketch = data.draw(sketches(stream))
    covariance, mass, before = np.zeros((stream.dim, stream.dim)), 0.0, 0.0
    for row in stream.rows:
        sketch.update(row)
        covariance += np.outer(row, row)
        mass += float(row @ row)
        assert sketch.error_bound <= sketch.budget <= sketch.error_limit
        assert sketch.budget >= before
        assert_bracketed(covariance, sketch, mass)
        before = sketch.budget


@given(data=st.data(), stream=wide_streams(), cuts=st.lists(st.integers(0, 120), max_size=3))
def test_compressing_and_merging_stay_within_the_budget(data: Any, stream: Stream, cuts: list[int]) -> None:
    """Budgets add, as certificates do; with a horizon the parts' make up that of the whole."""
    whole = data.draw(sketches(stream))
    settings = {name: value for name, value in whole._settings().items() if name != "dim"}
    for part in np.split(stream.rows, sorted(min(cut, len(stream.rows)) for cut in cuts)):
        sketch = sb.AdaptiveSketch(stream.dim, **settings)
        sketch.update(part)
        sketch.compress()
        assert sketch.error_bound <= sketch.budget
        together = whole.budget + sketch.budget
        whole.merge(sketch)
        assert whole.error_bound <= whole.budget <= max(together, whole.error_limit) * (1 + 1e-12)
    nonzero = int(np.count_nonzero(stream.rows.any(axis=1)))
    if whole.horizon is not None and nonzero <= whole.horizon:
        assert whole.budget == pytest.approx(whole.epsilon * nonzero / whole.horizon, rel=1e-12)
    assert_bracketed(stream.rows.T @ stream.rows, whole, whole.mass)


class Shrinks:
    """What the sketch did, seen from outside: t, the rows before, e before and after, the size after.

    Looks that kept every row are among them: the size then grows without a change of the rows.
    """

    def __init__(self, sketch: sb.AdaptiveSketch, rows: Matrix) -> None:
        self.seen: list[tuple[int, Matrix, float, float, int]] = []
        for t, row in enumerate(rows, start=1):
            before, error, size = np.array(sketch.rows), sketch.error_bound, sketch.size
            rebuilt = sketch.update(row).rebuilt
            if sketch.is_dense:
                assert sketch.error_bound == error, "what turns dense loses nothing"
                return
            if rebuilt or sketch.size != size:
                self.seen.append((t, np.vstack([before, row]), error, sketch.error_bound, sketch.size))

    def __iter__(self) -> Iterator[tuple[int, Matrix, float, float, int]]:
        return iter(self.seen)


def decaying(count: int, dim: int, decay: float, seed: int = 0) -> Matrix:
    """Unit rows whose coordinates fade."""
    rows = make_rows("gaussian", count, dim, seed) * decay ** np.arange(dim)
    unit: Matrix = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return unit


@pytest.mark.parametrize("decay", [0.8, 0.93, 1.0])
@pytest.mark.parametrize("how", [{"horizon": 600, "epsilon": 20.0}, {}, {"order": 0.7, "epsilon": 0.3}])
def test_the_size_is_the_smallest_that_the_budget_allows(how: dict[str, Any], decay: float) -> None:
    """At every shrink: sigma_size² was taken and fits, and one size less would not have fitted."""
    sketch = sb.AdaptiveSketch(160, **{"epsilon": 40.0, "size": 4, **how})
    looked = 0
    for t, before, error, after, size in Shrinks(sketch, decaying(600, 160, decay)):
        sigma_sq = singular_values_sq(before)
        budget = sketch._schedule(t)
        taken = sigma_sq[size - 1] if len(sigma_sq) >= size else 0.0
        assert after - error == pytest.approx(taken, abs=ROUNDING)
        assert size == 4 or error + sigma_sq[size - 2] > budget * (1 - ROUNDING)
        looked += size > 4
    assert looked > 2


# -- the statements of docs/adaptive.md -------------------------------------------------------------


@given(data=st.data(), stream=wide_streams())
def test_rank_statement_1_no_more_rows_than_the_rank(data: Any, stream: Stream) -> None:
    """Whenever the rows were shrunk there are at most as many as the stream has rank (a matrix has none)."""
    sketch = data.draw(sketches(stream))
    for t, row in enumerate(stream.rows, start=1):
        if sketch.update(row).rebuilt and not sketch.is_dense:
            spectrum = singular_values_sq(stream.rows[:t])
            assert len(sketch.rows) <= np.count_nonzero(spectrum > 1e-26 * spectrum.max())


@pytest.mark.parametrize("decay", [0.85, 0.93, 0.96])
@pytest.mark.parametrize("how", [{"horizon": 800}, {}, {"order": 0.7, "epsilon": 0.5}])
def test_rank_statement_2_the_mean_size_is_what_the_lemma_needs_in_hindsight(
    how: dict[str, Any], decay: float
) -> None:
    """Weighted by what each shrink took, the size is at most k + tail_k / e for every k, at every time."""
    rows = decaying(800, 160, decay)
    sketch = sb.AdaptiveSketch(160, **{"epsilon": 20.0, "size": 4, **how})
    weighted = 0.0
    compared = 0
    for t, _, error, after, size in Shrinks(sketch, rows):
        weighted += size * (after - error)
        tails = np.append(np.cumsum(singular_values_sq(rows[:t])[::-1])[::-1], 0.0)
        if after > 0.0:
            bounds = np.arange(len(tails)) + tails / after
            assert weighted / after <= bounds.min() * (1 + ROUNDING)
            compared += size > 4
    assert compared > 3


@pytest.mark.parametrize("decay", [0.85, 0.93, 0.97])
def test_rank_statement_3_no_size_exceeds_the_spectral_tail(decay: float) -> None:
    """Every size above the smallest is at most 1 + k + tail_k / room; room >= epsilon b / T."""
    rows = decaying(800, 160, decay)
    sketch = sb.AdaptiveSketch(160, epsilon=20.0, size=4, horizon=800)
    compared = last = 0
    for t, _, error, _, size in Shrinks(sketch, rows):
        room = sketch._schedule(t) - error
        assert room >= 20.0 * (t - last) / 800 * (1 - ROUNDING)
        tails = np.append(np.cumsum(singular_values_sq(rows[:t])[::-1])[::-1], 0.0)
        bound = 1 + (np.arange(len(tails)) + tails / room).min()
        assert size <= max(4, bound * (1 + ROUNDING))
        compared, last = compared + (size > 4), t
    assert compared > 3


def test_a_fixed_size_with_the_same_certificate_is_hardly_smaller() -> None:
    """On a stationary stream the mean size is within 10 % of the smallest that ends within epsilon."""
    rows = decaying(3000, 100, 0.95)
    sketch = sb.AdaptiveSketch(100, epsilon=10.0, size=4, horizon=len(rows))
    sizes = [size for *_, size in Shrinks(sketch, rows)]
    fixed = next(
        size
        for size in range(4, 100)
        if (reference := sb.FrequentDirections(100, size=size)).update(rows) and reference.error_bound <= 10.0
    )
    assert np.mean(sizes) <= 1.1 * fixed


@given(streams(max_dim=30, max_size=3))
def test_the_theorems_of_rfd_hold_with_a_changing_size(stream: Stream) -> None:
    """S'S + e I never falls and dominates X'X, whatever the sizes (what the regret proof stands on)."""
    longest = float(np.square(stream.rows).sum(axis=1).max(initial=0.0)) or 1.0
    sketch = sb.AdaptiveSketch(stream.dim, size=stream.size, epsilon=5 * longest, horizon=50)
    assert_scfd_theorems(sketch, stream.rows)


@pytest.mark.parametrize("compensation", [0.0, 0.5, 1.0])
def test_leverage_scores_are_bounded_with_the_realised_certificate(compensation: float) -> None:
    """Lemma 3: their sum is at most 2 (lambda + e)/(lambda + c e) ln(det((lambda + e)I + S'S) / lambda^d)."""
    rows, ridge = decaying(600, 40, 0.85), 0.5
    sketch = sb.AdaptiveSketch(40, epsilon=6.0, size=4, horizon=600, compensation=compensation)
    total = 0.0
    for row in rows:
        matrix = sketch.covariance() + ridge * np.eye(40)
        total += min(1.0, float(row @ np.linalg.solve(matrix, row)))
        sketch.update(row)
        e = sketch.error_bound
        wide = sketch.rows.T @ sketch.rows + (ridge + e) * np.eye(40)
        information = np.linalg.slogdet(wide)[1] - 40 * math.log(ridge)
        factor = (ridge + e) / (ridge + compensation * e)
        assert total <= 2.0 * factor * information * (1 + ROUNDING)
    assert sketch.error_bound > 1.0


def test_with_full_compensation_leverage_scores_do_not_pay_for_every_dimension() -> None:
    """Lemma 3 for c = 1: what alpha adds outside of the rows is no information about any arm."""
    rows, ridge = decaying(600, 40, 0.85), 0.5
    sketch = sb.AdaptiveSketch(40, epsilon=6.0, size=4, horizon=600)
    total, at_shrinks, most_rows = 0.0, 0.0, 0
    for row in rows:
        total += min(1.0, float(row @ np.linalg.solve(sketch.covariance() + ridge * np.eye(40), row)))
        held, before = len(sketch.rows) + 1, sketch.error_bound
        sketch.update(row)
        e = sketch.error_bound
        if e > before:
            at_shrinks += (40 - held) * math.log((ridge + e) / (ridge + before))
            most_rows = max(most_rows, held)
        wide = sketch.rows.T @ sketch.rows + (ridge + e) * np.eye(40)
        information = np.linalg.slogdet(wide)[1] - 40 * math.log(ridge)
        assert total <= 2.0 * (information - at_shrinks) * (1 + ROUNDING)
        r = len(sketch.rows)
        closed = most_rows * math.log1p(e / ridge) + r * math.log1p(sketch.mass / (r * ridge))
        assert total <= 2.0 * closed * (1 + ROUNDING)
    assert at_shrinks > 10.0


@given(
    e=st.floats(0.0, 1e6),
    ridge=st.floats(1e-4, 1e4),
    compensation=st.sampled_from([0.0, 0.5, 1.0]),
)
def test_inflation_covers_both_terms_of_the_bound(e: float, ridge: float, compensation: float) -> None:
    """Radius times the root of the leverage factor, over OFUL's: for noise alone and for the bias alone."""
    rho, left = ridge + compensation * e, (1.0 - compensation) * e
    leverage = math.sqrt((ridge + e) / rho)
    noise = math.sqrt(1.0 + left / rho) * leverage
    bias = max(rho, left - ridge) / math.sqrt(rho) / math.sqrt(ridge) * leverage
    allowed = sb.theory.inflation_of(e, ridge=ridge, compensation=compensation)
    assert max(noise, bias) <= allowed * (1 + 1e-9)
    if e > 1e-6 * ridge:  # below, rounding of 1 + e/ridge shows
        again = sb.theory.epsilon_within(allowed, ridge=ridge, compensation=compensation)
        assert again == pytest.approx(e, rel=1e-6)


# -- budgets ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "budget", [Horizon(3.0, 100), Anytime(3.0), Growing(3.0, 0.4), Growing(3.0, 0.0)], ids=repr
)
def test_a_budget_never_falls_nor_passes_its_limit(budget: Budget) -> None:
    """From no row at all to a great many."""
    values = [budget(t) for t in [*range(5000), *(10**k for k in range(4, 18))]]
    assert values[0] == 0.0
    assert all(a <= b for a, b in pairwise(values))
    assert values[-1] <= budget.limit
    assert values[-1] <= 3.0 * 1e17**budget.order


def test_an_anytime_budget_is_joined_where_its_pieces_meet() -> None:
    """No jump after the first 2000 rows, and 3/5 spent by then."""
    budget = Anytime(1.0)
    assert budget(2000) == pytest.approx(0.6)
    assert 0.0 < budget(2001) - budget(2000) < budget(2000) - budget(1999)


@pytest.mark.parametrize("compensation", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("order", [0.5, 0.7, 0.9])
def test_an_order_is_the_exponent_of_the_papers_remark(order: float, compensation: float) -> None:
    """The same exponents as theory.epsilon_for, which has the horizon in it."""
    sketch = sb.AdaptiveSketch(10, epsilon=1.0, order=order, compensation=compensation)
    sketch.update(np.ones((500, 10)))
    assert sketch.budget == pytest.approx(sb.theory.epsilon_for(500, order, compensation=compensation))
    assert sketch.error_order == (2 * order - 1) / (1 if compensation else 3)


def test_past_the_horizon_only_what_is_left_can_be_lost() -> None:
    """The budget stands still, and what comes after is kept up to that."""
    rows = decaying(1000, 80, 0.9)
    sketch = sb.AdaptiveSketch(80, epsilon=5.0, horizon=500, size=4)
    sketch.update(rows[:500])
    spent, covariance = sketch.error_bound, sketch.rows.T @ sketch.rows
    sketch.update(rows[500:])
    assert 4.0 < spent <= sketch.error_bound <= sketch.budget == 5.0
    grown = sketch.rows.T @ sketch.rows - covariance - rows[500:].T @ rows[500:]
    assert np.abs(np.linalg.eigvalsh(grown)).max() <= 5.0 - spent + ROUNDING


def test_a_lighter_tail_lets_the_size_fall_and_memory_with_it() -> None:
    """First all directions, then five: the size follows, and so do the bytes."""
    sketch = sb.AdaptiveSketch(200, epsilon=200.0, horizon=4000, size=4)
    sketch.update(decaying(700, 200, 0.99))
    large, bytes_then = sketch.size, sketch.nbytes
    sketch.update(decaying(3300, 200, 0.5, seed=1))
    assert not sketch.is_dense
    assert sketch.size < large / 2
    assert sketch.nbytes < bytes_then / 1.5


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_tiny_epsilon_ends_as_the_exact_sketch(dtype: DTypeLike) -> None:
    """On a flat spectrum: dense, nothing lost, and the covariance is X'X."""
    rows = decaying(500, 60, 1.0).astype(dtype)
    sketch, exact = sb.AdaptiveSketch(60, epsilon=1e-6, dtype=dtype), sb.ExactSketch(60, dtype=dtype)
    for sk in (sketch, exact):
        sk.update(rows)
    assert sketch.is_dense
    assert sketch.size == 60
    assert sketch.error_bound == 0.0
    assert sketch.nbytes == exact.nbytes
    assert np.allclose(sketch.covariance(), exact.covariance(), rtol=1e-12)


def test_rows_that_all_stay_are_not_touched(monkeypatch: pytest.MonkeyPatch) -> None:
    """While nothing may be lost, a full buffer costs one Cholesky factorisation, and rows only append."""
    monkeypatch.setattr(np.linalg, "eigh", None)
    sketch = sb.AdaptiveSketch(400, epsilon=1e-9, size=4)
    for row in decaying(100, 400, 1.0):
        change = sketch.update(row)
        assert (change.appended, change.rebuilt) == (1, False)
    assert sketch.size > 50


@pytest.mark.parametrize("size", [4, 40, 45, 70])
@pytest.mark.parametrize("rank", [3, 80])
def test_turning_dense_costs_nothing(size: int, rank: int) -> None:
    """Where so much must be kept that a matrix is smaller, nothing is lost on the way to it."""
    rows = make_rows("gaussian", 400, rank, 0) @ make_rows("gaussian", rank, 100, 1)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    sketch = sb.AdaptiveSketch(100, epsilon=8.0, horizon=100_000, size=size)
    for row in rows:
        before = sketch.error_bound
        sketch.update(row)
        assert sketch.error_bound == before or not sketch.is_dense
    assert sketch.is_dense == (rank == 80)


@pytest.mark.parametrize("scale", [1.0, 1e101, 1e-101])
def test_rows_that_stay_are_not_taken_for_orthogonal(scale: float) -> None:
    """Also where squares are scaled lest they overflow: the policy's scores are those of a solve."""
    rows = scale * decaying(9, 200, 1.0)
    sketch = sb.AdaptiveSketch(200, epsilon=1e-6 * scale**2, size=4, horizon=1000)
    policy = sb.LinUCB(sketch, ridge=scale**2)
    for row in rows[:8]:
        policy.update(row, 1.0)
    covariance = (rows[:8] / scale).T @ (rows[:8] / scale) + np.eye(200)
    expected = rows[8] / scale @ np.linalg.solve(covariance, rows[8] / scale)
    assert policy.width(rows[8]) == pytest.approx(math.sqrt(expected))
    theta = np.linalg.solve(covariance, (rows[:8] / scale).sum(axis=0))
    assert policy.mean(rows[3]) == pytest.approx(rows[3] / scale @ theta)


def test_zero_rows_do_not_earn_a_budget() -> None:
    """What brings nothing may cost nothing."""
    sketch = sb.AdaptiveSketch(10, epsilon=5.0, horizon=100)
    sketch.update(np.zeros((50, 10)))
    assert sketch.count == 50
    assert sketch.budget == 0.0


def test_a_merged_budget_is_saved(tmp_path: Path) -> None:
    """Load then continue, after a merge of two that had spent nearly all they may for ever."""
    one, other = (sb.AdaptiveSketch(60, epsilon=5.0, size=4) for _ in range(2))
    for sketch, seed in ((one, 0), (other, 1)):
        sketch.update(decaying(3000, 60, 0.9, seed))
    one.merge(other)
    assert 5.0 < one.budget < one.error_limit < 10.0
    one.save(tmp_path / "s")
    loaded = sb.load(tmp_path / "s", sb.AdaptiveSketch)
    assert (loaded.budget, loaded.error_limit) == (one.budget, one.error_limit)
    for sketch in (one, loaded):
        sketch.update(decaying(300, 60, 0.9, seed=2))
    assert snapshot(one) == snapshot(loaded)


@pytest.mark.parametrize(
    ("arguments", "error", "match"),
    [
        ({"epsilon": 0.0}, ValueError, "epsilon must be finite, above 0"),
        ({"epsilon": float("inf")}, ValueError, "epsilon"),
        ({"epsilon": "4"}, TypeError, "epsilon"),
        ({"epsilon": None}, TypeError, "epsilon"),
        ({"horizon": 0}, ValueError, "horizon must be at least 1"),
        ({"horizon": 2000.0}, TypeError, "horizon must be an integer"),
        ({"size": 1}, ValueError, "size must be at least 2"),
        ({"compensation": 0.3}, ValueError, "compensation"),
        ({"order": 0.4}, ValueError, "order"),
        ({"order": 1.0}, ValueError, "order"),
        ({"order": 0.7, "horizon": 10}, ValueError, "give only one of them"),
        ({"dtype": np.int32}, TypeError, "dtype"),
    ],
)
def test_bad_settings(arguments: dict[str, Any], error: type[Exception], match: str) -> None:
    """Each says what is wrong."""
    with pytest.raises(error, match=match):
        sb.AdaptiveSketch(10, **arguments)


# -- the policy -------------------------------------------------------------------------------------


def test_epsilon_follows_from_inflation() -> None:
    """Unless it is given."""
    assert sb.adaptive(300).sketch.epsilon == pytest.approx(1.25)
    assert sb.adaptive(127).sketch.epsilon == pytest.approx(0.625)  # half the columns, half the ridge
    assert sb.adaptive(10, inflation=2.0, ridge=0.5).sketch.epsilon == pytest.approx(1.5)
    without = sb.adaptive(10, inflation=8.0, ridge=2.0, compensation=0.0).sketch
    assert without.epsilon == pytest.approx(6.0)
    assert sb.adaptive(10, epsilon=7.0, inflation=2.0).sketch.epsilon == 7.0
    assert sb.adaptive(10, horizon=50).sketch.horizon == 50


@pytest.mark.parametrize("inflation", [1.0, 0.5, float("nan"), float("inf")])
def test_an_inflation_must_allow_something(inflation: float) -> None:
    """1 would mean no error at all, which is oful."""
    with pytest.raises(sb.InputError, match="inflation must be finite, above 1"):
        sb.adaptive(10, inflation=inflation)


def test_health_tells_when_the_sketch_has_become_exact() -> None:
    """Because it then costs what OFUL costs, and what to turn."""
    policy = sb.adaptive(200)
    for arm in decaying(60, 200, 1.0):
        policy.update(arm, 1.0)
    assert "exact" not in policy.health().sentence
    for arm in decaying(60, 200, 1.0, seed=1):
        policy.update(arm, 1.0)
    assert policy.sketch.is_dense
    held = f"{policy.sketch.nbytes / 1000:.1f} kB"
    assert f"has become exact, a matrix of dim² numbers ({held})" in policy.health().sentence


def test_an_order_is_healthy_however_the_error_grows() -> None:
    """It is promised to grow slower than what makes the bound linear."""
    policy = sb.adaptive(60, epsilon=1.0, order=0.8, size=4)
    for arm in decaying(900, 60, 1.0):
        policy.update(arm, 1.0)
    health = policy.health()
    assert health.certificate > 1.0
    assert not health.heading_for_linear_regret
    assert "grows no faster than t^0.6" in health.sentence
