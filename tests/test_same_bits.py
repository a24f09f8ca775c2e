"""The same to the bit wherever in memory numbers lie: loading, restarting and replaying move them.

Some BLAS kernels depend on it, such as those of OPENBLAS_CORETYPE=Prescott: see ``make test-cores``.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import sparse

import sketchbandit as sb
from sketchbandit import linalg
from sketchbandit.arms import DenseArms, norm_sq_of, norms_sq_of, project_arms
from sketchbandit.array_api import HOST
from sketchbandit.linalg.products import gram, multiply_in_place, residual_norm_sq
from sketchbandit.testing import oracles
from tests.policies import EVERY, rounds, saved

pytestmark = [
    pytest.mark.cores,
    pytest.mark.filterwarnings("ignore::sketchbandit.SketchTooSmallWarning"),
]

AnyArray = NDArray[Any]
DIMS = [1, 8, 57]


def placed(array: AnyArray, at: int) -> AnyArray:
    """A copy that starts ``at`` items after a multiple of 64 bytes."""
    room = np.empty(array.nbytes + 128, np.uint8)
    start = -room.ctypes.data % 64 + at * array.itemsize
    made: AnyArray = room[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    made[...] = array
    return made


def placed_csr(array: AnyArray, at: int) -> Any:
    """The same as a sparse matrix whose entries start there."""
    made = sparse.csr_array(array)
    made.data = placed(made.data, at)
    return made


class Case(NamedTuple):
    """Rows, a vector as long as a row, and a number for each row."""

    rows: AnyArray
    x: AnyArray
    weights: AnyArray


def overwritten(case: Case) -> AnyArray:
    """The first row after a product in place."""
    multiply_in_place(case.weights[np.newaxis], case.rows)
    first: AnyArray = case.rows[0]
    return first


FUNCTIONS: dict[str, Callable[[Case], Any]] = {
    "inner": lambda c: linalg.inner(c.rows[-1], c.x),
    "inner_rows": lambda c: linalg.inner_rows(c.rows, c.x),
    "row_norms_sq": lambda c: linalg.row_norms_sq(c.rows),
    "length_of": lambda c: linalg.length_of(c.x),
    "normalised": lambda c: linalg.normalised(c.rows),
    "rows_times": lambda c: linalg.rows_times(c.rows, c.x),
    "times_rows": lambda c: linalg.times_rows(c.weights, c.rows),
    "gram": lambda c: gram(c.rows),
    "covariance_of": lambda c: linalg.covariance_of(c.rows),
    "residual_norm_sq": lambda c: residual_norm_sq(c.weights[np.newaxis], c.rows),
    "multiply_in_place": overwritten,
    "of one arm on the host": lambda c: HOST.product(c.rows[:1], c.x.astype(c.rows.dtype)),
    "are_independent": lambda c: linalg.are_independent(c.rows),
    "row_space": lambda c: linalg.row_space(c.rows),
    "extend_span": lambda c: linalg.extend_span(np.zeros((0, c.rows.shape[1])), c.rows, 3)[1],
    "shrink": lambda c: c.rows[: linalg.shrink(c.rows, max(2, len(c.rows) // 2)).kept],
}
COMPILED: dict[str, Callable[[Case], Any]] = {
    "norm_sq_of": lambda c: norm_sq_of(c.rows[-1]),
    "norms_sq_of": lambda c: norms_sq_of(c.rows),
    "project_arms": lambda c: project_arms(c.rows, c.x[:, np.newaxis]),
    "scan": lambda c: DenseArms(c.rows).scan(c.x),
}
cases = given(
    st.integers(1, 9), st.integers(1, 131), st.sampled_from([np.float64, np.float32]), st.integers(0, 99)
)


@pytest.mark.parametrize("name", FUNCTIONS)
@cases
def test_algebra(name: str, count: int, dim: int, dtype: type, seed: int) -> None:
    """Every function, for rows and vectors that lie anywhere."""
    assert len(answers(FUNCTIONS[name], count, dim, dtype, seed)) == 1


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("name", COMPILED)
@cases
def test_loops(name: str, count: int, dim: int, dtype: type, seed: int) -> None:
    """The same of what is compiled."""
    assert len(answers(COMPILED[name], count, dim, dtype, seed)) == 1


def answers(function: Callable[[Case], Any], count: int, dim: int, dtype: type, seed: int) -> set[bytes]:
    """The different answers for the same numbers in six places."""
    random = np.random.default_rng(seed)
    rows, x, weights = (random.standard_normal(shape) for shape in ((count, dim), dim, count))
    places = [(0, 0, 0), *random.integers(0, 8, (5, 3)).tolist()]
    made = [Case(placed(rows.astype(dtype), a), placed(x, b), placed(weights, c)) for a, b, c in places]
    return {np.asarray(function(case)).tobytes() for case in made}


@given(st.integers(1, 9), st.integers(1, 131), st.integers(0, 99))
def test_a_product_is_that_of_numpy(count: int, dim: int, seed: int) -> None:
    """To rounding, and in its shape, also where it is a single number."""
    random = np.random.default_rng(seed)
    rows, others, x = (random.standard_normal(shape) for shape in ((count, dim), (count, dim), dim))
    for one, other in ((rows, x), (rows, others.T), (x, rows.T), (rows[:1], others[:1].T), (rows[:0], x)):
        assert np.allclose(linalg.product(one, other), one @ other, rtol=1e-12, atol=1e-12)
        assert linalg.product(one, other).shape == (one @ other).shape
    assert np.allclose(linalg.inner_rows(rows, others), (rows * others).sum(axis=1), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("dim", [4095, 4097, 20_001])
def test_long_rows_do_not_depend_on_the_neighbours(dim: int, dtype: type) -> None:
    """numpy cuts long runs in pieces: where, must not depend on the row's place."""
    random = np.random.default_rng(dim)
    rows: AnyArray = random.standard_normal((5, dim)).astype(dtype)
    x = random.standard_normal(dim)
    assert linalg.row_norms_sq(rows).tolist() == [linalg.inner(row, row) for row in rows]
    assert linalg.inner_rows(rows, x).tolist() == [linalg.inner(row, x) for row in rows]
    assert np.allclose(linalg.inner_rows(rows, x), rows.astype(np.float64) @ x, rtol=1e-10, atol=1e-10)


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("dim", [*DIMS, 7, 33, 64, 100, 131])
def test_a_block_has_the_norms_of_single_arms(dim: int) -> None:
    """For every length of a loop's remainder; sketches of single arms and of blocks differ by rounding."""
    arms = np.random.default_rng(dim).standard_normal((20, dim))
    assert norms_sq_of(arms).tolist() == [norm_sq_of(arm) for arm in arms]
    one_by_one, in_blocks = (sb.soful(dim, size=4, ridge=1.0, beta=0.1) for _ in range(2))
    for arm in arms:
        one_by_one.update(arm, 1.0)
    in_blocks.update(arms, np.ones(20))
    one, other = one_by_one.sketch, in_blocks.sketch
    assert (one.count, one.mass, one.row_count) == (other.count, other.mass, other.row_count)
    assert one.error_bound == pytest.approx(other.error_bound, rel=1e-10)
    assert np.allclose(one.gram(), other.gram(), rtol=0.0, atol=1e-10 * one.mass)


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("dim", DIMS)
@pytest.mark.parametrize("form", [placed, placed_csr], ids=["dense", "sparse"])
def test_policies(name: str, dim: int, form: Any, tmp_path: Path) -> None:
    """One chooses and learns, one learns from arms elsewhere in memory, one is loaded on the way."""
    asked, silent = (EVERY[name](dim, size=4, ridge=1.0, beta=0.3) for _ in range(2))
    loaded: Any = None
    for t, (arms, rewards) in enumerate(rounds(30, dim, seed=dim)):
        chosen = asked.select(form(arms, t % 8))
        asked.update(form(arms, t % 8)[[chosen]], rewards[chosen])
        for place, policy in ((3 * t + 1) % 8, silent), ((5 * t + 3) % 8, loaded):
            if policy is not None:
                policy.update(form(arms[[chosen]], place), rewards[chosen])
        if t % 13 == 7:
            silent.save(tmp_path / "policy.safetensors")
            loaded = sb.load(tmp_path / "policy.safetensors")
    assert saved(asked) == saved(silent) == saved(loaded)


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("rewards", [sb.Logistic, sb.Poisson, sb.Robust], ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("rule", [sb.Thompson(0.5, seed=1), sb.InverseGap(9.0, seed=1)], ids=["draws", "gap"])
def test_models_and_rules(rewards: Any, rule: Any) -> None:
    """Choices and their probabilities too, with scaling, intercept, baseline and forgetting."""
    one, other = (
        sb.adaptive(9, rewards=rewards(), forget=0.99, intercept=True, scaling="columns", explore=rule)
        for _ in range(2)
    )
    random = np.random.default_rng(5)
    for t in range(40):
        arms = random.standard_normal((5, 9))
        here, there = one.choose(placed(arms, t % 8)), other.choose(placed(arms, (3 * t + 1) % 8))
        assert here == there
        reward = float(random.integers(0, 2))
        one.update(placed(arms[here.index], t % 8), reward)
        other.update(placed(arms, (5 * t + 2) % 8)[here.index], reward)
    assert saved(one) == saved(other)


@pytest.mark.usefixtures("backend")
def test_models_of_actions() -> None:
    """One context and many models."""
    one, other = (sb.PerAction(["a", "b", "c"], lambda: sb.adaptive(7, scaling=None)) for _ in range(2))
    one.explore = other.explore = sb.Thompson(0.5, seed=1)
    random = np.random.default_rng(5)
    for t in range(60):
        context = random.standard_normal(7)
        here, there = one.choose(placed(context, t % 8)), other.choose(placed(context, (3 * t + 1) % 8))
        assert here == there
        one.update(placed(context, t % 8), here.action, 0.1 * t)
        other.update(placed(context, (5 * t + 2) % 8), here.action, 0.1 * t)
    assert saved(one) == saved(other)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("dim", DIMS)
def test_sketches(dim: int, dtype: type) -> None:
    """Of rows in blocks and one by one."""
    rows: AnyArray = np.random.default_rng(dim).standard_normal((60, dim)).astype(dtype)
    kinds: list[Callable[[], Any]] = [
        lambda: sb.FrequentDirections(dim, size=5, dtype=dtype),
        lambda: sb.DyadicBlockSketch(dim, size=3, epsilon=20.0, dtype=dtype),
        lambda: sb.AdaptiveSketch(dim, size=3, epsilon=20.0, dtype=dtype),
        lambda: sb.ExactSketch(dim, dtype=dtype),
        lambda: sb.RandomProjection(dim, size=4, seed=0, dtype=dtype),
        lambda: sb.BulkReader(sb.FrequentDirections(dim, size=5, dtype=dtype)),
    ]
    for make in kinds:
        made = []
        for start in (0, 1, 3):
            made.append(make())
            for t in range(0, 60, 4):
                made[-1].update(placed(rows[t : t + 4], (start * t + start) % 8))
        ends = [one.finish() if isinstance(one, sb.BulkReader) else one for one in made]
        for one in ends[1:]:
            oracles.assert_identical(ends[0], one)


# -- other machines --------------------------------------------------------------------------------------


@given(st.integers(1, 8), st.integers(1, 8), st.integers(0, 99))
def test_the_sign_of_a_direction_does_not_matter(count: int, dim: int, seed: int) -> None:
    """Machines know eigenvectors up to their sign, and rounding."""
    random = np.random.default_rng(seed)
    directions = random.integers(-2, 3, (count, dim)) + 0.5  # entries of opposite sign that are equally large
    flipped = (
        directions * random.choice([-1.0, 1.0], (count, 1)) * (1.0 + 1e-15 * random.random((count, dim)))
    )
    oriented = linalg.oriented(directions)
    assert np.allclose(linalg.oriented(flipped), oriented, rtol=1e-14)
    assert (np.abs(oriented) == np.abs(directions)).all()


def test_choices_do_not_depend_on_signs_of_eigenvectors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another machine's LAPACK may return others: what is drawn stays the same, and its probability."""

    def play(*, flips: bool) -> list[Any]:
        eigh, random = np.linalg.eigh, np.random.default_rng(1)
        if flips:

            def flipped(matrix: Any) -> Any:
                found = eigh(matrix)
                return found._replace(
                    eigenvectors=found.eigenvectors * random.choice([-1.0, 1.0], len(matrix))
                )

            monkeypatch.setattr("numpy.linalg.eigh", flipped)
        policy = sb.soful(30, size=6, ridge=1.0, explore=sb.Thompson(0.5, seed=0, samples=200))
        found = []
        for t, (arms, rewards) in enumerate(rounds(60, 30, seed=3, decay=0.8)):
            given = arms if t % 3 else sparse.csr_array(arms)
            choice = policy.choose(given)
            found.append((choice.index, round(choice.probability, 9)))
            policy.update(given[[choice.index]], rewards[choice.index])
        monkeypatch.undo()
        return found

    assert play(flips=False) == play(flips=True)
