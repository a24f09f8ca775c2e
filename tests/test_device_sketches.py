"""Laws of sketches whose rows come as arrays of other libraries."""

import copy
import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sketchbandit as sb
from sketchbandit.array_api import Library
from sketchbandit.arrays import Matrix
from sketchbandit.sketch import device_gram
from sketchbandit.sketch.device_gram import Gathering
from sketchbandit.sklearn import SketchedPCA

DIM, SIZE = 48, 12
LIBRARIES = ["array_api_strict", "jax.numpy", "torch"]


@pytest.fixture(params=LIBRARIES)
def xp(request: pytest.FixtureRequest) -> Any:
    """The namespace of a library."""
    return pytest.importorskip(request.param, reason=f"{request.param} is not installed")


def stream(count: int = 900, decay: float = 0.9, seed: int = 0) -> Matrix:
    """Rows whose spectrum falls."""
    return np.random.default_rng(seed).standard_normal((count, DIM)) * decay ** np.arange(DIM)


def arrays_of(xp: Any, rows: Any, dtype: str = "float32") -> tuple[Any, Matrix]:
    """The rows in a library's dtype, and the same numbers as float64."""
    given = xp.asarray(np.asarray(rows, dtype=np.float32 if dtype == "bfloat16" else dtype))
    if dtype == "bfloat16":
        given = given.to(xp.bfloat16) if xp.__name__ == "torch" else given.astype(xp.bfloat16)
        wide = given.float() if xp.__name__ == "torch" else given.astype(xp.float32)
        return given, np.asarray(wide).astype(np.float64)
    return given, np.asarray(given).astype(np.float64)


def no_memory(*args: Any) -> Any:
    """Fail, as a device does that has no memory left."""
    raise MemoryError(f"full, with {len(args)} arrays")


def fd(**settings: Any) -> sb.FrequentDirections:
    """Frequent Directions of the usual size."""
    return sb.FrequentDirections(DIM, size=SIZE, **settings)


def check_certificate(sketch: Any, X: Matrix) -> None:
    """Compare with the float64 spectrum of X'X - S'S."""
    left = np.linalg.eigvalsh(X.T @ X - sketch.rows.astype(float).T @ sketch.rows.astype(float))
    free = sketch.uncounted
    assert -sketch.rounding - free <= left[0]
    assert left[-1] <= sketch.error_bound + free
    assert sketch.error_bound - sketch.rounding <= sketch.mass / sketch.guarantee * (1 + 1e-12)
    assert sketch.count == len(X)
    assert np.isclose(sketch.mass, (X**2).sum(), rtol=1e-5)


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("kind", [sb.FrequentDirections, sb.IncrementalSVD])
def test_the_certificate_holds(xp: Any, dtype: str, kind: Any) -> None:
    """The certificate holds."""
    if dtype == "bfloat16" and not hasattr(xp, "bfloat16"):
        pytest.skip("the library has no bfloat16")
    if dtype == "float64" and xp.__name__ == "jax.numpy":
        pytest.skip("JAX has float64 only where it is switched on")
    for sketch_dtype in ("float64", "float32"):
        sketch = kind(DIM, size=SIZE, dtype=sketch_dtype)
        seen = []
        for start, rows in ((0, 500), (500, 3), (503, 397)):
            given, X = arrays_of(xp, stream()[start : start + rows], dtype)
            assert sketch.update(given).rebuilt
            seen.append(X.astype(sketch_dtype).astype(float))
        check_certificate(sketch, np.concatenate(seen))
        assert len(sketch.rows) < SIZE
        assert sketch.rounding < 1e-3 * sketch.mass
        assert sketch.error_bound > sketch.rounding


@pytest.mark.parametrize("precision", ["highest", "high", "medium"])
def test_float32_products_are_charged(monkeypatch: pytest.MonkeyPatch, precision: str) -> None:
    """Float32 products are charged."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    monkeypatch.setattr(Library, "doubles_are_fast", False)
    monkeypatch.setattr(torch, "get_float32_matmul_precision", lambda: precision)
    given, X = arrays_of(torch, stream(3000, decay=0.5))  # whose tail is below what float32 has digits for
    sketch = fd()
    sketch.update(given)
    check_certificate(sketch, X)
    assert 3e-5 * sketch.mass < sketch.rounding < 2e-2 * sketch.mass


def test_many_small_updates_are_one_large_one(xp: Any) -> None:
    """Many small updates are one large one."""
    given, X = arrays_of(xp, stream())
    many, one = fd(), fd()
    one.update(given)
    for start in range(0, 900, 30):
        many.update(given[start : start + 30, :])
    taken = [sketch.error_bound - sketch.rounding for sketch in (many, one)]
    assert np.isclose(taken[0], taken[1], rtol=1e-4)
    np.testing.assert_allclose(many.gram(), one.gram(), atol=1e-4 * one.mass)
    check_certificate(many, X)


def test_what_a_tensor_becomes_later_changes_nothing() -> None:
    """What a tensor becomes later changes nothing."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    X = stream(20).astype(np.float32)
    for dtype in (torch.float32, torch.float64):
        given, sketch = torch.tensor(X).to(dtype).requires_grad_(), fd()
        sketch.update(given)
        with torch.no_grad():
            given.zero_()
        check_certificate(sketch, X.astype(float))


def test_few_rows_lose_nothing(xp: Any) -> None:
    """Few rows lose nothing."""
    given, X = arrays_of(xp, stream(10))
    sketch = fd()
    sketch.update(given)
    sketch.update(given[0, :])
    assert sketch.error_bound == 0.0
    np.testing.assert_allclose(sketch.gram(), X.T @ X + np.outer(X[0], X[0]))


def test_numpy_rows_in_between(xp: Any) -> None:
    """Rows of numpy come in between."""
    given, X = arrays_of(xp, stream())
    other = stream(seed=1)
    sketch = fd()
    sketch.update(other[:300])
    sketch.update(given)
    sketch.update(other[300:])
    check_certificate(sketch, np.concatenate([X, other]))


def test_two_libraries_in_one_sketch() -> None:
    """Two libraries in one sketch."""
    sketch, seen = fd(), []
    for number, name in enumerate(LIBRARIES):
        library = pytest.importorskip(name, reason=f"{name} is not installed")
        given, X = arrays_of(library, stream(seed=number))
        sketch.update(given)
        seen.append(X)
    check_certificate(sketch, np.concatenate(seen))


def test_copies_files_merges_and_forgetting(xp: Any, tmp_path: Path) -> None:
    """Copies files merges and forgetting."""
    given, X = arrays_of(xp, stream())
    fresh = [fd() for _ in range(5)]
    for sketch in fresh:
        sketch.update(given)
    saved, copied, merged, other, forgets = fresh
    saved.save(tmp_path / "a.sketch")
    check_certificate(sb.load(tmp_path / "a.sketch"), X)
    check_certificate(copy.deepcopy(copied), X)
    merged.merge(other)
    check_certificate(merged, np.concatenate([X, X]))
    forgets.forget(0.25)
    assert np.isclose(forgets.mass, 0.25 * (X**2).sum())
    left = np.linalg.eigvalsh(0.25 * X.T @ X - forgets.gram())
    assert left[0] >= -forgets.rounding - forgets.uncounted
    assert left[-1] <= forgets.error_bound + forgets.uncounted


def test_nothing_is_shrunk_before_somebody_reads(monkeypatch: pytest.MonkeyPatch, xp: Any) -> None:
    """Nothing is shrunk before somebody reads."""
    given, _ = arrays_of(xp, stream())
    shrinking = importlib.import_module("sketchbandit.sketch.shrinking")
    cut, calls = shrinking.cut, []

    def noted(*args: Any) -> Any:
        calls.append(len(args))
        return cut(*args)

    monkeypatch.setattr(shrinking, "cut", noted)
    sketch = fd()
    for _ in range(3):
        sketch.update(given)
    assert not calls
    assert sketch.count == 2700
    assert sketch.error_bound > 0.0
    assert len(calls) == 1


def test_a_shrink_that_fails_is_done_later(monkeypatch: pytest.MonkeyPatch, xp: Any) -> None:
    """A shrink that fails is done later."""
    given, X = arrays_of(xp, stream())
    shrinking = importlib.import_module("sketchbandit.sketch.shrinking")
    sketch = fd()
    sketch.update(given)
    with monkeypatch.context() as patch:
        patch.setattr(shrinking, "cut", no_memory)
        with pytest.raises(MemoryError):
            _ = sketch.rows
    check_certificate(sketch, X)


def test_what_is_refused_changes_nothing(xp: Any) -> None:
    """What is refused changes nothing."""
    given, X = arrays_of(xp, stream())
    sketch = fd()
    sketch.update(given)
    bad = stream(100)
    bad[70, 3] = np.nan
    with pytest.raises(sb.RowError, match="row 70 contains nan"):
        sketch.update(arrays_of(xp, bad)[0])
    with pytest.raises(sb.InputError, match="length 47, but dim is 48"):
        sketch.update(given[:, :47])
    with pytest.raises(sb.InputTypeError, match="dtype"):
        sketch.update(xp.asarray(np.zeros((3, DIM), dtype=np.int32)))
    with pytest.raises(sb.InputError, match="3 dimensions"):
        sketch.update(xp.asarray(np.zeros((3, 2, DIM), dtype=np.float32)))
    assert sketch.update(given[:0, :]) == sb.Change()
    check_certificate(sketch, X)


def test_no_memory_for_a_product_changes_nothing(monkeypatch: pytest.MonkeyPatch, xp: Any) -> None:
    """No memory for a product changes nothing."""
    given, X = arrays_of(xp, stream())
    sketch = fd()
    sketch.update(given)
    with monkeypatch.context() as patch:
        patch.setattr(Library, "product", no_memory)
        with pytest.raises(MemoryError):
            sketch.update(given)
    check_certificate(sketch, X)


@pytest.mark.parametrize("scale", [1e19, 1e-22])
def test_float32_rows_of_any_length(xp: Any, scale: float) -> None:
    """Float32 rows of any length."""
    given, X = arrays_of(xp, stream() * scale)
    sketch = fd()
    sketch.update(given)
    sketch.update(given)
    check_certificate(sketch, np.concatenate([X, X]))


@pytest.mark.parametrize(
    "make", [sb.ExactSketch, sb.AdaptiveSketch, sb.DyadicBlockSketch], ids=lambda kind: kind.kind
)
def test_other_sketches_read_them_as_numpy_rows(xp: Any, make: Any) -> None:
    """Other sketches read them as numpy rows."""
    given, X = arrays_of(xp, stream(200))
    sketch, other = make(DIM), make(DIM)
    sketch.update(given)
    other.update(X)
    assert sketch.error_bound == other.error_bound
    np.testing.assert_array_equal(sketch.gram(), other.gram())


def test_a_policy_follows_tensors_given_to_its_sketch(xp: Any) -> None:
    """A policy follows tensors given to its sketch."""
    given, X = arrays_of(xp, stream())
    policy = sb.LinUCB(fd())
    before = policy.precision.quadratic(X[0])
    policy.sketch.update(given)
    after = policy.precision.quadratic(X[0])
    A = policy.sketch.gram() + policy.ridge * np.eye(DIM)
    assert np.isclose(after, X[0] @ np.linalg.solve(A, X[0]))
    assert after < 0.5 * before


@pytest.mark.parametrize("kind", ["incremental-svd", "frequent-directions", "exact"])
def test_principal_components_of_tensors(xp: Any, kind: str) -> None:
    """Principal components of tensors."""
    rows = stream(1200) + 5.0 * np.arange(DIM)
    given, X = arrays_of(xp, rows)
    ours, oracle = SketchedPCA(4, size=SIZE, sketch=kind), SketchedPCA(4, size=SIZE, sketch=kind)
    for start in range(0, 1200, 300):
        ours.partial_fit(given[start : start + 300, :])
        oracle.partial_fit(X[start : start + 300])
    scatter = np.linalg.eigvalsh(np.cov(X.T))[::-1][:4]
    assert (ours.explained_variance_ <= scatter * (1 + 1e-9)).all()
    assert (scatter <= ours.explained_variance_upper_ * (1 + 1e-9)).all()
    np.testing.assert_allclose(ours.mean_, X.mean(axis=0), atol=1e-9 * np.abs(X).max())
    np.testing.assert_allclose(ours.explained_variance_, oracle.explained_variance_, rtol=1e-6)
    assert ours.n_samples_seen_ == 1200
    assert ours.n_features_in_ == DIM
    bad = np.asarray(X[:5]).copy()
    bad[4, 0] = np.inf
    with pytest.raises(sb.RowError, match="row 4 contains inf"):
        ours.partial_fit(arrays_of(xp, bad)[0])
    with pytest.raises(ValueError, match="47"):
        ours.partial_fit(given[:, :47])
    assert ours.n_samples_seen_ == 1200


def test_principal_components_that_had_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch that failed leaves mean and count as they were; given again, it counts once."""
    xp = importlib.import_module("array_api_strict")
    near, far = stream(3000), stream(3000, seed=1) + 50.0
    pca = SketchedPCA(3)
    pca.partial_fit(xp.asarray(near))
    with monkeypatch.context() as patched:
        patched.setattr(Gathering, "_multiply", no_memory)
        with pytest.raises(MemoryError):
            pca.partial_fit(xp.asarray(far))
    assert pca.n_samples_seen_ == 3000
    np.testing.assert_allclose(pca.mean_, near.mean(axis=0), atol=1e-12)
    pca.partial_fit(xp.asarray(far))
    both = np.concatenate([near, far])
    np.testing.assert_allclose(pca.mean_, both.mean(axis=0), atol=1e-12)
    assert pca.explained_variance_upper_[0] >= np.linalg.eigvalsh(np.cov(both.T))[-1] * (1 - 1e-12)


def test_sums_of_one_large_update_are_charged(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every sum rounds all that was summed before, in the same call too."""
    jnp = importlib.import_module("jax.numpy")
    rows = jnp.asarray(stream(4096).astype(np.float32))
    charged = []
    monkeypatch.setattr(device_gram, "_SHORT", 64)
    for parts in (1, 64):
        sketch = fd()
        for part in np.split(np.asarray(rows), parts):
            sketch.update(jnp.asarray(part))
        charged.append(sketch.rounding)
    assert charged[0] == pytest.approx(charged[1], rel=1e-3)


def test_rows_that_wait_survive_an_interrupt(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is broken off while they are taken in goes on with the next part."""
    xp = importlib.import_module("array_api_strict")
    sketch = sb.FrequentDirections(400, size=5)
    for seed in (0, 1):
        sketch.update(xp.asarray(np.random.default_rng(seed).standard_normal((30, 400))))
    plain, calls = type(sketch).take, []

    def interrupted(self: Any, *given: Any) -> Any:
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return plain(self, *given)

    with monkeypatch.context() as patched:
        patched.setattr(type(sketch), "take", interrupted)
        with pytest.raises(KeyboardInterrupt):
            _ = sketch.count
    assert sketch.count == 60
