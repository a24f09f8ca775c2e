"""The stateless functions, each against the dense and obvious way to do the same."""

import copy
import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import DTypeLike, NDArray
from scipy import sparse

from sketchbandit import linalg
from sketchbandit.linalg.products import column_panels, gram, multiply_in_place, residual_norm_sq
from sketchbandit.linalg.shrink import spectrum_of_products
from sketchbandit.testing import Stream, make_rows, streams

Matrix = NDArray[np.floating[Any]]


@given(streams(max_dim=12, max_size=8), st.integers(0, 3))
def test_shrink_against_svd(stream: Stream, head: int) -> None:
    """Kept spectrum, amount and row space are those of the SVD."""
    rows, size = stream.rows.copy(), stream.size
    head = min(head, size - 1)
    kept, amount, *_ = linalg.shrink(rows, size, head=head)
    _, sigma, right = np.linalg.svd(stream.rows, full_matrices=False)
    sigma_sq = np.zeros(max(len(sigma), size))
    sigma_sq[: len(sigma)] = sigma**2
    scale = sigma_sq[0]
    expected_amount = sigma_sq[size - 1]
    assert amount == pytest.approx(expected_amount, rel=1e-4, abs=1e-14 * scale)
    assert kept <= size - 1
    reduced = np.maximum(sigma_sq[: len(sigma)] - expected_amount, 0.0)
    reduced[:head] = sigma_sq[:head][: len(sigma)]
    reduced[size - 1 :] = 0.0
    result: Matrix = rows[:kept].T @ rows[:kept]
    expected: Matrix = (right.T * reduced) @ right
    if head and sigma_sq[head - 1] - sigma_sq[head] <= 1e-6 * scale:  # a tie: which direction is head is open
        result, expected = np.linalg.eigvalsh(result), np.linalg.eigvalsh(expected)
    assert np.allclose(result, expected, rtol=0.0, atol=1e-9 * scale if head else 1e-12 * scale)


@given(streams(max_dim=12, max_size=8))
def test_shrink_takes_enough_mass(stream: Stream) -> None:
    """trace(Q'Q - S'S) >= size · amount: why the certificate is at most mass / size."""
    rows = stream.rows.copy()
    kept, amount, *_ = linalg.shrink(rows, stream.size)
    before, after = np.vdot(stream.rows, stream.rows), np.vdot(rows[:kept], rows[:kept])
    assert before - after >= stream.size * amount - 1e-12 * before


def test_the_head_stays_even_where_the_spectrum_is_flat() -> None:
    """Directions of the head keep their length although it equals the amount that the others lose."""
    rows = np.eye(4)
    assert linalg.shrink(rows, 4, head=2)[:2] == (2, 1.0)
    assert np.allclose(linalg.singular_values_sq(rows[:2]), [1.0, 1.0])


def test_shrink_of_rank_deficient_rows_is_silent_and_free() -> None:
    """Eigenvalues that rounding makes negative are clipped: no NaN, no warning, nothing subtracted."""
    for seed, scale in itertools.product(range(20), (1.0, 1e-150, 1e150)):
        original = scale * make_rows("gaussian", 16, 3, seed) @ make_rows("gaussian", 3, 30, seed + 100)
        rows = original.copy()
        kept, amount, *_ = linalg.shrink(rows, 8)
        assert (kept, amount) == (3, 0.0)
        difference = original.T @ original - rows[:3].T @ rows[:3]
        assert np.linalg.norm(difference, 2) <= 1e-14 * np.linalg.norm(original) ** 2


@pytest.mark.parametrize("exponent", [-7, -6, -5])
def test_small_but_real_directions_are_not_lost_in_the_gram_matrix(exponent: int) -> None:
    """Where sigma_size² is far below rounding of the Gram matrix, QR and SVD find it to many digits."""
    random = np.random.default_rng(0)
    sigma = np.array([1.0, 0.5, 0.1] + [2.0 * 10.0**exponent] * 3 + [10.0**exponent] * 4)
    left, _ = np.linalg.qr(random.standard_normal((10, 10)))
    right, _ = np.linalg.qr(random.standard_normal((40, 10)))
    rows = (left * sigma) @ right.T
    kept, amount, *_ = linalg.shrink(rows, 8)
    assert amount == pytest.approx(10.0 ** (2 * exponent), rel=1e-6)
    spectrum = linalg.singular_values_sq(rows[:kept])
    assert spectrum[3:6] == pytest.approx([3.0 * 10.0 ** (2 * exponent)] * 3, rel=1e-5)


def no_convergence(*_: Any) -> Any:
    """What LAPACK reports on rare matrices."""
    raise np.linalg.LinAlgError("did not converge")


def test_shrink_when_the_eigenvalues_do_not_converge(monkeypatch: pytest.MonkeyPatch) -> None:
    """The SVD takes over, with the same result."""
    original = make_rows("gaussian", 20, 50, 0)
    expected = original.copy()
    answer = linalg.shrink(expected, 10)

    monkeypatch.setattr("numpy.linalg.eigh", no_convergence)
    rows = original.copy()
    fallback = linalg.shrink(rows, 10)
    assert fallback.amount == pytest.approx(answer.amount)
    assert np.allclose(rows[:9].T @ rows[:9], expected[:9].T @ expected[:9])


@given(st.integers(1, 40), st.integers(0, 99), st.sampled_from([1e-250, 1.0, 1e250]))
def test_gram_spectrum(n: int, seed: int, scale: float) -> None:
    """Eigenvalues in falling order, with the orthonormal rows that diagonalise the matrix, at any scale."""
    root = make_rows("gaussian", n, n + 3, seed)
    matrix = root @ root.T * scale
    values, vectors = spectrum_of_products(matrix)
    assert (np.diff(values) <= 0.0).all()
    assert np.allclose(vectors @ vectors.T, np.eye(n), atol=1e-12)
    assert np.allclose(vectors.T * values @ vectors, matrix, rtol=0.0, atol=1e-12 * n * matrix.max())


def test_eigenvalues_are_never_negative() -> None:
    """Rounding makes the zero eigenvalues of a rank-deficient Gram matrix negative; they are clipped."""
    for seed in range(20):
        rows = make_rows("gaussian", 30, 4, seed)
        products = rows @ rows.T
        assert np.linalg.eigvalsh(products)[0] < 0.0, "not the case this test is about"
        values, _ = spectrum_of_products(products)
        assert values.min() == 0.0


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("dim", [1, 63, 7000])
def test_panels_equal_the_whole(dtype: DTypeLike, dim: int) -> None:
    """Products by panels of columns equal the plain products."""
    rows = make_rows("gaussian", 90, dim, 0).astype(dtype)
    whole = rows.astype(np.float64)
    assert sum(panel.shape[1] for _, panel in column_panels(rows)) == dim
    assert np.allclose(gram(rows), whole @ whole.T, rtol=1e-12, atol=1e-9)
    weights = np.linalg.qr(make_rows("gaussian", 90, 40, 1))[0].T
    expected = whole - weights.T @ (weights @ whole)
    assert residual_norm_sq(weights, rows) == pytest.approx(np.vdot(expected, expected))
    multiply_in_place(weights, rows)
    assert np.allclose(rows[:40], weights @ whole, rtol=1e-5, atol=1e-5)
    assert np.array_equal(rows[40:], whole[40:].astype(dtype))


@given(streams(max_count=20))
def test_row_space(stream: Stream) -> None:
    """Orthonormal, of the numerical rank, and containing every row."""
    basis = linalg.row_space(stream.rows)
    assert np.allclose(basis @ basis.T, np.eye(len(basis)), atol=1e-12)
    lengths = np.linalg.norm(stream.rows, axis=1, keepdims=True)
    directions = np.divide(stream.rows, lengths, out=np.zeros_like(stream.rows), where=lengths > 0)
    ranks = [np.linalg.matrix_rank(directions, rtol=r) if directions.any() else 0 for r in (1e-7, 1e-11)]
    assert ranks[0] <= len(basis) <= ranks[1]
    assert np.abs(directions - directions @ basis.T @ basis).max(initial=0.0) <= 1e-8


@given(st.integers(0, 999), st.integers(1, 10), st.integers(1, 10))
def test_extend_span_counts_the_rows_that_fit(seed: int, rank: int, limit: int) -> None:
    """It stops exactly at the first row that brings the rank above the limit."""
    random = np.random.default_rng(seed)
    directions = random.standard_normal((rank, 15))
    labels = random.integers(0, rank, 40)
    rows = directions[labels] * 10.0 ** random.uniform(-100, 100, (40, 1))
    fitting, basis = linalg.extend_span(np.empty((0, 15)), rows, limit)
    distinct = [len(set(labels[: t + 1].tolist())) for t in range(40)]
    assert fitting == sum(count <= limit for count in distinct)
    assert len(basis) == min(limit, distinct[-1])
    assert np.allclose(basis @ basis.T, np.eye(len(basis)), atol=1e-12)


def test_extend_span_rank_is_relative_to_the_row() -> None:
    """A short row in a new direction adds a dimension; noise of rounding size on a long one does not."""
    basis = np.eye(2, 5)
    long_with_noise = np.array([[1e8, 1e8, 1e-8, 0.0, 0.0]])
    short_and_new = np.array([[0.0, 0.0, 0.0, 1e-8, 0.0]])
    assert len(linalg.extend_span(basis, long_with_noise, 4)[1]) == 2
    assert len(linalg.extend_span(basis, short_and_new, 4)[1]) == 3


@given(streams(max_count=12))
def test_are_independent_never_says_yes_wrongly(stream: Stream) -> None:
    """True only where the rank is full."""
    if linalg.are_independent(stream.rows):
        assert len(linalg.row_space(stream.rows)) == len(stream.rows)


def test_are_independent_says_yes_to_random_rows() -> None:
    """Generic rows pass, at any scale; one more than the dimension does not."""
    rows = make_rows("gaussian", 30, 40, 0)
    assert linalg.are_independent(rows)
    assert linalg.are_independent(1e-150 * rows)
    assert not linalg.are_independent(make_rows("gaussian", 41, 40, 0))


@given(st.integers(0, 99), st.floats(0, 5))
def test_spectral_error_dense(seed: int, alpha: float) -> None:
    """The norm of X'X - S'S - alpha I, dense and sparse."""
    data, rows = make_rows("gaussian", 30, 9, seed), make_rows("gaussian", 4, 9, seed + 1)
    expected = np.linalg.norm(data.T @ data - rows.T @ rows - alpha * np.eye(9), 2)
    assert linalg.spectral_error(data, rows, alpha) == pytest.approx(expected)
    assert linalg.spectral_error(sparse.csr_array(data), rows, alpha) == pytest.approx(expected)


@pytest.mark.parametrize("alpha", [0.0, 2.0])
def test_spectral_error_by_lanczos(alpha: float) -> None:
    """Above 600 columns the same number comes without a dense matrix; equal matrices give 0."""
    data = make_rows("power law", 200, 700, 0)
    rows = make_rows("power law", 20, 700, 1)
    expected = linalg.covariance_error(data.T @ data, rows, alpha)
    assert linalg.spectral_error(data, rows, alpha) == pytest.approx(expected, rel=1e-8)
    assert linalg.spectral_error(sparse.csr_array(data), rows, alpha) == pytest.approx(expected, rel=1e-8)
    assert linalg.spectral_error(np.zeros((3, 700)), np.zeros((1, 700))) == 0.0


@given(st.lists(st.floats(0, 1e6), max_size=12), st.integers(2, 15))
def test_fd_bound_is_the_minimum_over_every_k(sigma_sq: list[float], size: int) -> None:
    """Delta of eq. (spectral error), by brute force."""
    descending = sorted(sigma_sq, reverse=True)
    brute = min(sum(descending[k:]) / (size - k) for k in range(size))
    assert linalg.fd_bound(np.array(sigma_sq), size) == pytest.approx(brute, rel=1e-9, abs=1e-9)


@given(streams(extreme=False))
def test_singular_values_sq(stream: Stream) -> None:
    """Of dense and of sparse data alike."""
    dense = linalg.singular_values_sq(stream.rows)
    from_sparse = linalg.singular_values_sq(sparse.csr_array(stream.rows))
    assert np.allclose(dense, from_sparse, atol=1e-9 * dense.max(initial=1.0))


@pytest.mark.cores
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_row_norms_do_not_depend_on_the_neighbours(dtype: DTypeLike) -> None:
    """A row alone and the same row in a matrix have the same squared norm to the bit, in float64."""
    rows = make_rows("gaussian", 50, 999, 0).astype(dtype)
    together = linalg.row_norms_sq(rows)
    alone = np.concatenate([linalg.row_norms_sq(rows[i : i + 1]) for i in range(50)])
    assert together.dtype == np.float64
    assert np.array_equal(together, alone)
    assert np.allclose(together, np.square(rows.astype(np.float64)).sum(axis=1), rtol=1e-12)


def test_svd_that_does_not_converge_is_tried_another_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last resort, QR iteration, gives what the first would have given."""
    original = make_rows("gaussian", 20, 50, 0)
    expected = original.copy()
    answer = linalg.shrink(expected, 10)

    monkeypatch.setattr("numpy.linalg.eigh", no_convergence)
    monkeypatch.setattr("numpy.linalg.svd", no_convergence)
    rows = original.copy()
    assert linalg.shrink(rows, 10).amount == pytest.approx(answer.amount)
    assert np.allclose(rows[:9].T @ rows[:9], expected[:9].T @ expected[:9])


@given(streams(extreme=False))
def test_packed_symmetric_is_the_covariance(stream: Stream) -> None:
    """The triangle adds up to the full covariance, in half the memory, and copies stand on their own."""
    packed = linalg.PackedSymmetric(stream.dim)
    for half in np.array_split(stream.rows, 2):
        packed.add_covariance(half)
    expected = stream.rows.T @ stream.rows
    other = copy.deepcopy(packed)
    other.add(packed)
    other.add_covariance(stream.rows)
    assert np.allclose(packed.full(), expected, rtol=1e-12, atol=1e-12 * np.trace(expected))
    assert np.allclose(other.full(), 3 * expected, rtol=1e-12, atol=1e-12 * np.trace(expected))
    assert linalg.PackedSymmetric(1000).nbytes <= 8 * (1000 * 1000 / 2 + 16 * 1000)


def test_packed_symmetric_over_several_panels() -> None:
    """More columns than one panel."""
    rows = make_rows("gaussian", 50, 75, 0)
    packed = linalg.PackedSymmetric(75)
    packed.add_covariance(rows)
    assert np.allclose(packed.full(), rows.T @ rows, rtol=1e-12, atol=1e-11)
