"""Reading a matrix in bulk: the same laws as for a stream, with the least error that its size allows."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sketchbandit as sb
from sketchbandit.linalg import factor_of_covariance, row_norms_sq
from sketchbandit.testing import Stream, assert_bracketed, make_rows, streams

MAKERS: dict[str, Callable[[int, int], sb.Sketch]] = {
    "fd": lambda dim, size: sb.FrequentDirections(dim, size=size),
    "scfd": lambda dim, size: sb.FrequentDirections(dim, size=size, compensation=1.0),
    "svd": lambda dim, size: sb.IncrementalSVD(dim, size=size),
    "adaptive": lambda dim, size: sb.AdaptiveSketch(dim, size=size, epsilon=5.0),
    "strict": lambda dim, size: sb.AdaptiveSketch(dim, size=size, epsilon=1e-6, horizon=50),
    "exact": lambda dim, _: sb.ExactSketch(dim),
    "dyadic": lambda dim, size: sb.DyadicBlockSketch(dim, size=size, epsilon=5.0),
    "float32": lambda dim, size: sb.FrequentDirections(dim, size=size, dtype=np.float32),
}


def read_in_pieces(make: Callable[[], sb.Sketch], rows: Any, cuts: list[int]) -> sb.BulkReader:
    """A reader for each piece, merged in order."""
    pieces = np.split(rows, sorted(cut % (len(rows) + 1) for cut in cuts))
    readers = []
    for piece in pieces:
        readers.append(sb.BulkReader(make()))
        readers[-1].update(piece)
    first, *others = readers
    for other in others:
        first.merge(other)
    return first


@pytest.mark.parametrize("name", [name for name in MAKERS if name != "float32"])
@given(stream=streams(), cuts=st.lists(st.integers(0, 99), max_size=3))
def test_bracket(name: str, stream: Stream, cuts: list[int]) -> None:
    """S'S ⪯ X'X ⪯ S'S + e I however the rows were cut up, and the sketch goes on as any other."""
    bulk = read_in_pieces(lambda: MAKERS[name](stream.dim, stream.size), stream.rows, cuts)
    sketch = bulk.finish()
    error = sketch.error_bound
    covariance = stream.rows.T @ stream.rows
    mass = float(row_norms_sq(stream.rows).sum())
    assert sketch.count == bulk.count == len(stream.rows)
    assert sketch.mass == pytest.approx(mass, rel=1e-12)
    assert_bracketed(covariance, sketch, mass)
    assert sketch.error_bound <= (sketch.mass / sketch.guarantee if sketch.guarantee else np.inf) * (1 + 1e-9)
    assert sketch.error_bound <= sketch.budget
    sketch.update(stream.rows)
    assert_bracketed(2 * covariance, sketch, 2 * mass)
    again = bulk.finish()
    assert (again.count, again.error_bound) == (len(stream.rows), error)


@given(stream=streams())
def test_no_sketch_of_that_size_certifies_less(stream: Stream) -> None:
    """E is sigma_size² of the data for Frequent Directions."""
    bulk = read_in_pieces(lambda: MAKERS["fd"](stream.dim, stream.size), stream.rows, [7])
    sketch = bulk.finish()
    sigma_sq = np.linalg.svd(stream.rows, compute_uv=False) ** 2
    least = sigma_sq[stream.size - 1] if stream.size <= len(sigma_sq) else 0.0
    assert sketch.error_bound == pytest.approx(least, abs=1e-13 * sketch.mass, rel=1e-9)
    assert len(sketch.rows) < stream.size


@pytest.mark.parametrize(
    "kind", ["gaussian", "power law", "low rank", "axes", "one spike", "ill conditioned"]
)
@pytest.mark.parametrize("spread", [0, 4, 8, 60])
def test_factor_of_covariance(kind: str, spread: float) -> None:
    """S'S = C, every entry to the scale of its row and column: small columns are not lost."""
    scale = 10.0 ** np.linspace(-spread, spread, 8)
    rows = make_rows(kind, 60, 8, seed=3) * scale
    covariance = rows.T @ rows
    factor = factor_of_covariance(covariance)
    lengths = np.sqrt(covariance.diagonal())
    error = np.abs(factor.rows.T @ factor.rows - covariance)
    assert (error <= 1e-13 * np.outer(lengths, lengths) + factor.remainder).all()
    assert (factor.remainder == 0.0) == (len(factor.rows) == 8 or not lengths.all())
    assert factor.remainder <= 1e-13 * float(np.trace(covariance))


@pytest.mark.parametrize("name", ["fd", "svd", "exact", "adaptive"])
def test_small_columns_beside_large_ones(name: str) -> None:
    """Bytes beside fractions: a stream keeps both, and so does a reader in bulk."""
    rows = make_rows("gaussian", 5000, 3, seed=7) * [1e9, 1.0, 1.0]
    bulk = sb.BulkReader(MAKERS[name](3, 10))
    bulk.update(rows)
    sketch = bulk.finish()
    assert bulk.gathers
    found = sketch.rows if not sketch.is_dense else np.linalg.cholesky(sketch.covariance()).T
    np.testing.assert_allclose((found.T @ found)[1:, 1:], (rows.T @ rows)[1:, 1:], rtol=1e-4)


@pytest.mark.parametrize("name", ["fd", "svd", "adaptive"])
@pytest.mark.parametrize("scale", [1e-152, 1.0, 1e150])
def test_low_rank_is_kept_without_loss(name: str, scale: float) -> None:
    """A rank below the size: no certificate, whatever the scale."""
    rows = scale * make_rows("gaussian", 500, 3, 1) @ make_rows("gaussian", 3, 20, 2)
    bulk = sb.BulkReader(MAKERS[name](20, 5))
    bulk.update(rows)
    sketch = bulk.finish()
    assert bulk.gathers
    # What X'X has no digits for is charged; where the budget has no room for that, X'X is kept as it is.
    assert sketch.is_dense or 0.0 < sketch.error_bound <= 1e-13 * sketch.mass
    assert sketch.is_dense == (name == "adaptive" and scale > 1.0)
    np.testing.assert_allclose(sketch.covariance(), rows.T @ rows, atol=1e-12 * sketch.mass)


@pytest.mark.parametrize("name", ["fd", "scfd", "svd", "adaptive", "strict", "exact"])
@pytest.mark.parametrize("before", [3, 100])
def test_a_sketch_that_has_seen_rows_before(name: str, before: int) -> None:
    """Goes on with what it has, and the certificate is of everything; so it does after a file."""
    rows = make_rows("gaussian", 700, 60, seed=4) * 0.9 ** np.arange(60)
    sketch = MAKERS[name](60, 8)
    sketch.update(rows[:before])
    bulk = sb.BulkReader(sketch)
    bulk.update(rows[before:])
    whole = bulk.finish()
    mass = float(row_norms_sq(rows).sum())
    assert bulk.gathers
    assert whole.count == 700
    assert_bracketed(rows.T @ rows, whole, mass)
    assert whole.error_bound <= whole.budget
    whole.update(rows)
    assert_bracketed(2 * rows.T @ rows, whole, 2 * mass)
    assert sketch.count == before, "finish gives a copy"


def test_budgets_count_the_rows() -> None:
    """Half of the horizon, half of the budget, and as few rows as it allows; zero rows do not count."""
    rows = make_rows("gaussian", 500, 60, seed=5) * 0.8 ** np.arange(60)
    sigma_sq = np.linalg.svd(rows, compute_uv=False) ** 2
    sketch = sb.AdaptiveSketch(60, epsilon=2.02 * sigma_sq[20], horizon=1000, size=4, compensation=0.0)
    readers = [
        sb.BulkReader(sketch),
        sb.BulkReader(
            sb.AdaptiveSketch(60, epsilon=2.02 * sigma_sq[20], horizon=1000, size=4, compensation=0.0)
        ),
    ]
    readers[0].update(rows[:200])
    readers[1].update(np.concatenate([rows[200:], np.zeros((50, 60))]))
    readers[0].merge(readers[1])
    made = readers[0].finish()
    assert made.count == 550
    assert made.budget == pytest.approx(1.01 * sigma_sq[20])
    assert made.error_bound == pytest.approx(sigma_sq[20])
    assert len(made.rows) == 20
    made.update(rows[:300])  # its buffer has room for what is kept, and more
    assert made.error_bound <= made.budget


def test_few_rows_are_read_as_well_as_many() -> None:
    """Fewer than there are columns: nothing is lost that need not be."""
    rows = make_rows("gaussian", 30, 50, seed=1)
    bulk = sb.BulkReader(sb.FrequentDirections(50, size=10))
    bulk.update(rows)
    sketch = bulk.finish()
    sigma_sq = np.linalg.svd(rows, compute_uv=False) ** 2
    assert sketch.error_bound == pytest.approx(sigma_sq[9])
    assert len(sketch.rows) == 9


@pytest.mark.parametrize(
    ("sketch", "gathers"),
    [
        (sb.FrequentDirections(160, size=10), True),
        (sb.FrequentDirections(161, size=10), False),
        (sb.FrequentDirections(2049, size=500), False),
        (sb.AdaptiveSketch(160, size=10), True),
        (sb.ExactSketch(2048), True),
        (sb.ExactSketch(2049), False),
        (sb.DyadicBlockSketch(50, size=10), False),
        (sb.RandomProjection(50, size=10), False),
    ],
)
def test_where_it_gathers(sketch: sb.Sketch, gathers: bool) -> None:
    """Up to 16·size, and no more memory than 32 MiB."""
    assert sb.BulkReader(sketch).gathers is gathers


@pytest.mark.parametrize("name", list(MAKERS))
def test_dump_and_undump(name: str) -> None:
    """A reader that was written down goes on as if it had not been."""
    rows = make_rows("gaussian", 300, 12, seed=2)
    bulk = sb.BulkReader(MAKERS[name](12, 4))
    bulk.update(rows[:200])
    copied = sb.BulkReader.undump(*bulk.dump())
    for reader in (bulk, copied):
        reader.update(rows[200:])
    one, other = bulk.finish(), copied.finish()
    np.testing.assert_array_equal(one.covariance(), other.covariance())
    assert (one.count, one.mass, one.error_bound) == (other.count, other.mass, other.error_bound)


@pytest.mark.parametrize(
    "bad",
    [
        np.full((2, 12), np.nan),
        np.ones((2, 11)),
        np.full((1, 12), 1e200),
        [["a"] * 12],
        np.ones((2, 12)) * 1j,
    ],
)
def test_bad_rows_change_nothing(bad: Any) -> None:
    """Refused as a whole."""
    bulk = sb.BulkReader(sb.FrequentDirections(12, size=4))
    bulk.update(make_rows("gaussian", 30, 12, seed=3))
    before = bulk.finish()
    with pytest.raises(sb.SketchBanditError):
        bulk.update(bad)
    after = bulk.finish()
    np.testing.assert_array_equal(before.rows, after.rows)
    assert (before.count, before.mass) == (after.count, after.mass)


def test_unlike_readers_do_not_merge() -> None:
    """As for sketches."""
    with pytest.raises(sb.MergeError, match="size is 10 here and 11 there"):
        sb.BulkReader(sb.FrequentDirections(50, size=10)).merge(
            sb.BulkReader(sb.FrequentDirections(50, size=11))
        )


def test_overflow_over_many_pieces_is_refused() -> None:
    """The mass may not overflow, in one reader or in several together."""
    bulk = sb.BulkReader(sb.FrequentDirections(2, size=2))
    row = np.array([[1e154, 0.0]])
    bulk.update(row)
    other = sb.BulkReader(sb.FrequentDirections(2, size=2))
    other.update(row)
    with pytest.raises(sb.InputError, match="overflow"):
        bulk.merge(other)
    with pytest.raises(sb.InputError, match="overflow"):
        bulk.update(row)
    assert bulk.count == 1


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("in_bulk", [False, True])
@given(stream=streams())
def test_spectrum_contains_the_truth(stream: Stream, dtype: Any, in_bulk: bool) -> None:
    """Every squared singular value of X lies in its interval, in either precision."""
    if dtype == np.float32 and not np.abs(stream.rows).max(initial=0.0) < 1e15:
        return
    sketch: sb.Sketch = sb.FrequentDirections(stream.dim, size=stream.size, dtype=dtype)
    if in_bulk:
        bulk = sb.BulkReader(sketch)
        bulk.update(stream.rows)
        sketch = bulk.finish()
    else:
        sketch.update(stream.rows)
    found = sb.spectrum(sketch)
    true_sq = np.zeros(max(stream.rows.shape) + len(found.lower))
    sigma = np.linalg.svd(stream.rows, compute_uv=False)
    true_sq[: len(sigma)] = sigma**2
    true_sq = true_sq[: len(found.lower)]
    if dtype == np.float32 and 0.0 < sketch.mass < 1e-30:  # squares that float32 does not know
        return
    assert (found.lower <= true_sq).all()
    assert (true_sq <= found.upper).all()


def test_spectrum_of_a_dense_sketch_and_of_one_without_certificate() -> None:
    """The exact one knows everything, the random one nothing."""
    rows = make_rows("gaussian", 200, 20, seed=5)
    exact = sb.ExactSketch(20)
    exact.update(rows)
    found = sb.spectrum(exact, 3)
    true_sq = np.linalg.svd(rows, compute_uv=False)[:3] ** 2
    np.testing.assert_allclose(found.lower, true_sq, rtol=1e-10)
    np.testing.assert_allclose(found.upper, true_sq, rtol=1e-10)
    np.testing.assert_allclose(row_norms_sq(rows @ found.directions.T).sum(), true_sq.sum())
    random = sb.RandomProjection(20, size=5)
    random.update(rows)
    found = sb.spectrum(random, 2)
    assert found.lower.tolist() == [0.0, 0.0]
    assert found.upper.tolist() == [random.mass, random.mass]


@pytest.mark.parametrize("offset", [1, 4, 8])
def test_rows_that_lie_at_any_byte(offset: int) -> None:
    """What came over a network may not be aligned; it is read to the same bits, by BLAS as ever."""
    rows = make_rows("gaussian", 170, 20, seed=6)
    moved = np.empty(rows.nbytes + offset, np.uint8)[offset:].view(np.float64).reshape(rows.shape)
    moved[:] = rows
    for make in (
        lambda: sb.BulkReader(sb.FrequentDirections(20, size=5)),
        lambda: sb.FrequentDirections(20, size=5),
    ):
        here, there = make(), make()
        here.update(rows)
        there.update(moved)
        one, other = (
            found.finish() if isinstance(found, sb.BulkReader) else found for found in (here, there)
        )
        np.testing.assert_array_equal(one.rows, other.rows)
