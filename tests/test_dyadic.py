"""DyadicBlockSketch over four bases: the inherited laws and the invariants of Algorithm 1."""

import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import DTypeLike, NDArray
from scipy import sparse

import sketchbandit as sb
from sketchbandit.testing import SketchLaws, Stream, assert_bracketed, make_rows, snapshot, streams
from tests.soak import long_stream
from tests.theorems import assert_scfd_theorems

EPSILON = 3.0


def incremental_svd(dim: int, size: int) -> sb.IncrementalSVD:
    """A base of another kind: its guarantee is a fifth of its size."""
    return sb.IncrementalSVD(dim, size=5 * size)


def robust(dim: int, size: int) -> sb.FrequentDirections:
    """The paper's RFD as an explicit base."""
    return sb.FrequentDirections(dim, size=size, compensation=1.0)


def fd(dim: int, size: int) -> sb.FrequentDirections:
    """The default, as an explicit base."""
    return sb.FrequentDirections(dim, size=size)


class TestDyadicFD(SketchLaws):
    """DBS-FD."""

    def make(self, dim: int, size: int, dtype: DTypeLike = np.float64) -> Any:
        """With the default base."""
        return sb.DyadicBlockSketch(dim, size=size, epsilon=EPSILON, dtype=dtype)


class TestDyadicRFD(SketchLaws):
    """DBS-RFD."""

    def make(self, dim: int, size: int, dtype: DTypeLike = np.float64) -> Any:
        """With the default base, compensated."""
        return sb.DyadicBlockSketch(dim, size=size, epsilon=EPSILON, compensation=1.0, dtype=dtype)


class TestDyadicIncrementalSVD(SketchLaws):
    """Any certified sketch can be the base: here incremental SVD."""

    def make(self, dim: int, size: int, dtype: DTypeLike = np.float64) -> Any:
        """With a base of another kind."""

        def base(dim: int, size: int) -> sb.IncrementalSVD:
            return sb.IncrementalSVD(dim, size=5 * size, dtype=dtype)

        return sb.DyadicBlockSketch(dim, size=size, epsilon=EPSILON, base=base, dtype=dtype)

    def load(self, path: Path) -> sb.Sketch:
        """Code is not saved: the base is given again."""
        return sb.load(path, sb.Sketch, base=incremental_svd)


def scaled_streams() -> st.SearchStrategy[tuple[Stream, float]]:
    """Streams in dimensions that allow several blocks, and an epsilon that makes them happen."""
    wide = streams(max_count=80, max_dim=40, max_size=4)
    return st.tuples(wide, st.sampled_from([0.05, 0.3, 1.0, 4.0]))


@pytest.mark.parametrize("base", [None, fd, robust, incremental_svd])
@given(given_stream=scaled_streams())
def test_invariants_at_every_step(base: Any, given_stream: tuple[Stream, float]) -> None:
    """Theorem 1 and both invariants, at every step, for every base."""
    stream, fraction = given_stream
    longest = float(np.square(stream.rows).sum(axis=1).max(initial=0.0)) or 1.0
    epsilon = fraction * longest
    sketch = sb.DyadicBlockSketch(stream.dim, size=stream.size, epsilon=epsilon, base=base)
    most = max(1, int(np.floor(np.log2(stream.dim / stream.size + 1))))
    covariance, mass = np.zeros((stream.dim, stream.dim)), 0.0
    shrunk_at: dict[int, float] = {}
    for row in stream.rows:
        before = {b.size: b.error_bound for b in sketch.blocks}
        sketch.update(row)
        covariance += np.outer(row, row)
        mass += float(row @ row)
        blocks = sketch.blocks
        assert len(blocks) <= most
        assert [b.size for b in blocks] == [stream.size * 2**i for i in range(len(blocks))]
        assert [b.active for b in blocks] == [False] * (len(blocks) - 1) + [True]
        assert [b.exact for b in blocks] == [i + 1 == most for i in range(len(blocks))]
        assert sketch.size == blocks[-1].size
        assert sketch.error_bound <= 2 * epsilon * (1 + 1e-12)
        assert sum(len(b.rows) for b in blocks) == len(sketch.rows)
        for b in blocks:
            # A row within the rank tolerance, eps^0.6, of the block's span may cost its square later on.
            if b.error_bound > before.get(b.size, 0.0) + 1e-18 * mass:
                shrunk_at[b.size] = b.mass
            if b.exact:
                assert b.error_bound == 0.0
            elif not b.active:
                share = epsilon * stream.size
                assert b.mass < share or shrunk_at.get(b.size, 0.0) < share
                assert len(b.rows) < (b.size if base is not incremental_svd else 5 * b.size)
        assert_bracketed(covariance, sketch, mass)
        estimate = sketch.rows.T @ sketch.rows + sketch.alpha * np.eye(stream.dim)
        assert np.allclose(sketch.covariance(), estimate, rtol=0.0, atol=1e-11 * mass)


@given(stream=streams(max_dim=30, max_size=3))
def test_scfd_theorems_hold_across_blocks(stream: Stream) -> None:
    """The decomposition into blocks keeps the properties of RFD (App. Properties for RFD)."""
    epsilon = float(np.square(stream.rows).sum(axis=1).mean()) * 2 if stream.rows.any() else 1.0
    sketch = sb.DyadicBlockSketch(stream.dim, size=stream.size, epsilon=epsilon, compensation=1.0)
    assert_scfd_theorems(sketch, stream.rows)


@given(streams(), st.lists(st.integers(0, 50), max_size=3))
def test_decomposability(stream: Stream, cuts: list[int]) -> None:
    """Lemma Decomposability: stacking the sketches of parts adds their certificates."""
    parts = np.split(stream.rows, sorted(min(cut, len(stream.rows)) for cut in cuts))
    sketches = [sb.FrequentDirections(stream.dim, size=stream.size) for _ in parts]
    for sketch, part in zip(sketches, parts, strict=True):
        sketch.update(part)
    stacked = np.concatenate([sketch.rows for sketch in sketches])
    loss = np.linalg.eigvalsh(stream.rows.T @ stream.rows - stacked.T @ stacked)
    slack = 1e-11 * sum(sketch.mass for sketch in sketches)
    assert loss[0] >= -slack
    assert loss[-1] <= sum(sketch.error_bound for sketch in sketches) + slack


@pytest.mark.parametrize("size", [7, 20])
def test_a_first_block_that_may_be_the_last_is_exact(size: int) -> None:
    """With floor(log2(dim/size + 1)) <= 1 nothing is ever shrunk."""
    sketch = sb.DyadicBlockSketch(20, size=size, epsilon=1e-9)
    rows = make_rows("gaussian", 300, 20, 0)
    sketch.update(rows)
    assert [b.exact for b in sketch.blocks] == [True]
    assert sketch.error_bound == 0.0
    assert np.allclose(sketch.covariance(), rows.T @ rows, rtol=1e-10, atol=1e-8)


def test_tiny_epsilon_is_exact() -> None:
    """When nothing may be lost nothing is lost."""
    rows = make_rows("gaussian", 400, 60, 0)
    sketch = sb.DyadicBlockSketch(60, size=4, epsilon=1e-6)
    sketch.update(rows)
    assert sketch.error_bound == 0.0
    assert np.allclose(sketch.covariance(), rows.T @ rows, rtol=1e-12, atol=1e-9)


def low_rank_stream(count: int, dim: int, rank: int) -> NDArray[np.float64]:
    """Unit rows in a fixed subspace of ``rank`` dimensions."""
    rows = make_rows("gaussian", count, rank, 0) @ make_rows("gaussian", rank, dim, 1)
    normalised: NDArray[np.float64] = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return normalised


def test_many_rows_of_low_rank_stay_in_the_first_block() -> None:
    """Rank k < l0 forever: one block, exact, O(dim · l0) memory, whatever the mass."""
    rows = low_rank_stream(20_000, 24, 6)
    sketch = sb.DyadicBlockSketch(24, size=7, epsilon=8.0)
    times = long_stream(50, every_day=0.2)
    for _ in range(times):
        sketch.update(rows)
    assert sketch.count == times * 20_000
    assert len(sketch.blocks) == 1
    assert sketch.error_bound == 0.0
    assert len(sketch.rows) < 14
    assert np.allclose(sketch.covariance(), times * rows.T @ rows, rtol=0, atol=1e-9 * sketch.mass)


def test_what_float32_rounds_away_counts_against_the_share() -> None:
    """Low rank, but every shrink rounds: the block is frozen before its share is used up.

    The exact one goes on in float64, so that the promise holds for ever.
    """
    rows = low_rank_stream(20_000, 24, 6).astype(np.float32)
    sketch = sb.DyadicBlockSketch(24, size=7, epsilon=2.0, dtype=np.float32)
    for _ in range(3):
        sketch.update(rows)
    assert 0.0 < sketch.rounding <= sketch.error_bound <= 2.0
    assert [block.exact for block in sketch.blocks] == [False, True]
    wide = rows.astype(np.float64)
    true_error = np.linalg.norm(3.0 * wide.T @ wide - sketch.covariance(), 2)
    assert true_error <= sketch.error_bound


def test_rank_one_more_than_fits_leaves_the_first_block() -> None:
    """Rank l0 would shrink, so the block is frozen once its mass is used up."""
    sketch = sb.DyadicBlockSketch(24, size=7, epsilon=8.0)
    sketch.update(low_rank_stream(2000, 24, 7))
    assert len(sketch.blocks) > 1


def test_rank_that_grows_late_freezes_the_block_before_it_shrinks() -> None:
    """A block kept open by its low rank is closed by the first row that would make it shrink."""
    sketch = sb.DyadicBlockSketch(24, size=7, epsilon=8.0)
    sketch.update(low_rank_stream(2000, 24, 5))
    counts = []
    for seed in (5, 6):
        sketch.update(make_rows("gaussian", 1, 24, seed))
        counts.append(len(sketch.blocks))
    assert counts == [1, 2], "rank 6 still fits into size 7, rank 7 does not"
    assert sketch.error_bound == 0.0


def test_low_rank_costs_little_memory_in_the_exact_block() -> None:
    """The exact last block keeps O(dim · k) for a stream of rank k."""
    rows = low_rank_stream(5000, 400, 5)
    sketch = sb.DyadicBlockSketch(400, size=250, epsilon=1e-3)
    sketch.update(rows)
    assert sketch.blocks[-1].exact
    assert sketch.nbytes <= 32 * 400 * 8
    assert np.allclose(sketch.covariance(), rows.T @ rows, rtol=0, atol=1e-10 * sketch.mass)


def test_a_giant_row_does_not_waste_a_block() -> None:
    """A row longer than epsilon·l0 goes into the empty first block."""
    sketch = sb.DyadicBlockSketch(40, size=4, epsilon=1.0)
    sketch.update(100.0 * np.ones(40))
    assert len(sketch.blocks) == 1
    assert sketch.error_bound == 0.0


def test_sparse_rows_are_never_densified_as_a_whole() -> None:
    """A sparse matrix whose dense form would take 800 MB is read within 100."""
    random = np.random.default_rng(0)
    places = random.integers(0, 2000, 1000), random.integers(0, 50_000, 1000)
    rows = sparse.csr_array((random.random(1000), places), shape=(2000, 50_000))
    sketch = sb.DyadicBlockSketch(50_000, size=4, epsilon=1e3)
    tracemalloc.start()
    try:
        sketch.update(rows)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 100e6
    part = sb.DyadicBlockSketch(50_000, size=4, epsilon=1e3)
    for start in range(0, 2000, 500):
        part.update(rows[start : start + 500])
    assert snapshot(sketch) == snapshot(part)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"epsilon": 0}, ValueError),
        ({"epsilon": -1.0}, ValueError),
        ({"epsilon": float("nan")}, ValueError),
        ({"epsilon": float("inf")}, ValueError),
        ({"epsilon": "8"}, TypeError),
        ({"size": 1}, ValueError),
        ({"size": 2.0}, TypeError),
        ({"compensation": 2}, ValueError),
        ({"base": lambda dim, size: sb.RandomProjection(dim, size=size)}, ValueError),
        ({"base": lambda dim, size: sb.IncrementalSVD(dim, size=size)}, ValueError),
        ({"base": lambda dim, size: sb.FrequentDirections(dim + 1, size=size)}, ValueError),
        ({"base": lambda *_: object()}, TypeError),
        ({"base": fd, "compensation": 1.0}, ValueError),
        ({"base": "fd"}, TypeError),
        ({"base": lambda dim, _: sb.FrequentDirections(dim, size=4)}, ValueError),
        ({"base": lambda dim, size: sb.FrequentDirections(dim, size=size, dtype=np.float32)}, ValueError),
    ],
)
def test_bad_settings(arguments: dict[str, Any], error: type[Exception]) -> None:
    """Each is refused at construction."""
    with pytest.raises(error) as caught:
        sb.DyadicBlockSketch(60, **{"size": 4, **arguments})
    assert isinstance(caught.value, sb.SketchBanditError)


@pytest.mark.cores
def test_merging_adds_certificates_and_keeps_the_blocks_legal() -> None:
    """e <= 2·epsilon for each sketch merged, and never more blocks than one sketch may have."""
    rows = make_rows("gaussian", 900, 60, 0)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    parts = [sb.DyadicBlockSketch(60, size=4, epsilon=5.0, compensation=1.0) for _ in range(3)]
    for sketch, part in zip(parts, np.split(rows, 3), strict=True):
        sketch.update(part)
    total = sum(sketch.error_bound for sketch in parts)
    whole = parts[0]
    for sketch in parts[1:]:
        whole.merge(sketch)
    assert total <= whole.error_bound * (1.0 + 1e-14)  # the same terms, added in another order
    assert whole.error_bound <= 3 * 2 * 5.0
    assert whole.alpha == pytest.approx(whole.error_bound)
    assert len(whole.blocks) <= 4
    assert_bracketed(rows.T @ rows, whole, whole.mass)


def test_different_bases_do_not_merge() -> None:
    """What differs is named."""
    one = sb.DyadicBlockSketch(30, size=4, base=fd)
    with pytest.raises(sb.MergeError, match="base"):
        one.merge(sb.DyadicBlockSketch(30, size=4, base=robust))


def test_a_custom_base_must_be_given_again(tmp_path: Path) -> None:
    """Code is not saved: loading asks for the base, and checks that it makes the same sketches."""
    sketch = sb.DyadicBlockSketch(30, size=4, base=robust)
    sketch.update(make_rows("gaussian", 50, 30, 0))
    sketch.save(tmp_path / "s")
    with pytest.raises(sb.FileError, match="base="):
        sb.load(tmp_path / "s")
    with pytest.raises(sb.FileError, match="the base given"):
        sb.load(tmp_path / "s", base=fd)
    assert snapshot(sb.load(tmp_path / "s", sb.Sketch, base=robust)) == snapshot(sketch)


def test_a_sketch_class_is_a_base_too() -> None:
    """base=FrequentDirections means what it says, although its settings are keyword-only."""
    by_class, by_factory = (sb.DyadicBlockSketch(40, size=4, base=b) for b in (sb.FrequentDirections, fd))
    rows = make_rows("gaussian", 100, 40, 0)
    by_class.update(rows)
    by_factory.update(rows)
    assert snapshot(by_class) == snapshot(by_factory)


def test_a_base_must_make_sketches() -> None:
    """An object that only looks like one is refused, with what to do."""

    class Duck:
        """Has the surface of a sketch."""

        def __init__(self, dim: int, size: int) -> None:
            self.dim, self.size, self.rows, self.alpha, self.error_bound = dim, size, np.eye(1), 0.0, 0.0

        def update(self, rows: Any) -> None:
            """Take rows."""

    factory: Any = Duck
    with pytest.raises(sb.InputTypeError, match=r"base made a Duck; it must make .* sketchbandit\.Sketch"):
        sb.DyadicBlockSketch(40, size=4, base=factory)


def test_a_dense_exact_block_takes_the_frozen_rows() -> None:
    """At full rank the whole sketch is one symmetric matrix, and the certificates of the past remain."""
    rows = make_rows("gaussian", 600, 60, 0)
    sketch = sb.DyadicBlockSketch(60, size=4, epsilon=100.0, compensation=1.0)
    most = 0.0
    for row in rows:
        sketch.update(row)
        assert sketch.error_bound >= most
        most = sketch.error_bound
    assert [len(b.rows) for b in sketch.blocks[:-1]] == [0, 0, 0]
    assert sketch.error_bound > 0.0
    assert sketch.alpha == pytest.approx(sketch.error_bound)
    assert sketch.nbytes <= (30 + 16 + 15) * 60 * 8
    assert len(sketch.rows) <= 60 + 15
    assert_bracketed(rows.T @ rows, sketch, sketch.mass)


def test_alpha_and_ridge_enter_once_whatever_the_number_of_blocks() -> None:
    """S'S + (lambda + alpha) I has lambda + alpha, the sum over blocks, as its smallest eigenvalue: once."""
    rows = make_rows("power law", 370, 80, 0)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    sketch = sb.DyadicBlockSketch(80, size=4, epsilon=30.0, compensation=1.0)
    sketch.update(rows)
    assert len(sketch.blocks) == 4
    assert len(sketch.rows) < 80, "a direction outside the sketch is needed to see alpha alone"
    assert sketch.alpha == sum(block.error_bound for block in sketch.blocks) > 0.0
    ridge = 0.5
    smallest = np.linalg.eigvalsh(sketch.covariance() + ridge * np.eye(80))[0]
    assert smallest == pytest.approx(ridge + sketch.alpha, rel=1e-9)


def test_a_block_kept_open_by_its_rank_is_saved_with_its_row_space(tmp_path: Path) -> None:
    """The decision about the next row is the same after loading, because what it rests on is the same."""
    sketch = sb.DyadicBlockSketch(24, size=7, epsilon=8.0)
    sketch.update(low_rank_stream(2000, 24, 5))
    sketch.save(tmp_path / "s")
    loaded = sb.load(tmp_path / "s", sb.Sketch)
    assert snapshot(loaded) == snapshot(sketch)
    assert any(name.endswith("span") for name in snapshot(loaded)[1])


class Scaled(sb.Sketch):
    """A legal base of another kind: S = sqrt(1 - 1/l) X, e = mass / l. It loses something of every row."""

    kind = "test-scaled"

    def __init__(self, dim: int, *, size: int) -> None:
        super().__init__(dim, np.float64)
        self._size = size
        self._rows = np.empty((0, dim))

    size = property(lambda self: self._size)
    rows = property(lambda self: self._rows)
    alpha = property(lambda _: 0.0)
    error_bound = property(lambda self: self.row_stats.mass / self._size)
    guarantee = property(lambda self: float(self._size))
    nbytes = property(lambda self: self._rows.nbytes)

    def _ingest(self, rows: NDArray[np.float64]) -> sb.Change:
        self._rows = np.vstack([self._rows, np.sqrt(1 - 1 / self._size) * rows])
        return sb.Change(rebuilt=True)

    def _forget(self, factor: float) -> sb.Change:
        self._rows = np.sqrt(factor) * self._rows
        return sb.Change(rebuilt=True)

    def _absorb(self, other: Any) -> None:
        self._rows = np.vstack([self._rows, other._rows])

    def _settings(self) -> dict[str, Any]:
        return {"dim": self.dim, "size": self._size}

    def _state(self) -> tuple[dict[str, Any], dict[str, Any]]:
        return {}, {"rows": self._rows}

    def _restore(self, scalars: dict[str, Any], arrays: dict[str, Any]) -> None:
        del scalars
        self._rows = arrays["rows"]


def test_long_rows_do_not_break_the_bound_of_a_base_that_loses_something_of_each() -> None:
    """Such a base is given only what its mass allows; a giant row goes on to the exact block."""
    sketch = sb.DyadicBlockSketch(60, size=4, epsilon=1.0, base=Scaled)
    rows = np.concatenate([np.eye(2, 60), 100.0 * make_rows("gaussian", 3, 60, 0)])
    for row in rows:
        sketch.update(row)
        assert sketch.error_bound <= 2.0
    assert_bracketed(rows.T @ rows, sketch, sketch.mass)


def test_the_rank_rule_decides_alike_in_blocks_and_row_by_row() -> None:
    """Even for rows whose distance from the span is the tolerance up to the last bits, and to the bit."""
    tolerance = float(np.finfo(np.float64).eps ** 0.6)
    for seed in range(20):
        random = np.random.default_rng(seed)
        inside = low_rank_stream(60, 24, 6)
        outside = np.linalg.qr(np.vstack([inside[:6], random.standard_normal(24)]).T)[0][:, 6]
        rows = low_rank_stream(60, 24, 6) + tolerance * outside * (
            1 + 1e-15 * random.integers(-9, 9, (60, 1))
        )
        blocks, single = (sb.DyadicBlockSketch(24, size=7, epsilon=8.0) for _ in range(2))
        blocks.update(inside)
        single.update(inside)
        blocks.update(rows)
        for row in rows:
            single.update(row)
        assert snapshot(blocks) == snapshot(single)


def test_what_folded_and_merged_blocks_left_behind_is_saved(tmp_path: Path) -> None:
    """Certificates and alphas without rows of their own survive a file."""
    one, other = (sb.DyadicBlockSketch(30, size=3, epsilon=60.0, compensation=1.0) for _ in range(2))
    one.update(make_rows("gaussian", 200, 30, 0))
    other.update(make_rows("gaussian", 50, 30, 1))
    one.merge(other)
    assert one.blocks[0].error_bound > 0.0
    assert len(one.blocks[0].rows) == 0
    assert one.error_bound > sum(block.error_bound for block in one.blocks)
    one.save(tmp_path / "s")
    assert snapshot(sb.load(tmp_path / "s", sb.Sketch)) == snapshot(one)
    assert sb.load(tmp_path / "s", sb.Sketch).alpha == one.alpha > 0.0


def test_an_exact_block_counts_the_frozen_rows() -> None:
    """It turns to a matrix when all blocks together have half of dim rows, not when it has so many itself."""
    rows = make_rows("gaussian", 500, 200, 0)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    sketch = sb.DyadicBlockSketch(200, size=10, epsilon=3.0)
    for row in rows:
        sketch.update(row)
        if sketch.blocks[-1].exact and not sketch.is_dense:
            assert sum(len(part) for part in sketch.parts) <= 100
    assert sketch.is_dense
