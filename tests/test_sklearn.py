"""The estimators: scikit-learn's own checks, its PCA and Ridge as oracles, and certificates that hold."""

import os
import pickle
import subprocess
import sys
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA, IncrementalPCA
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

import sketchbandit as sb
from sketchbandit.sklearn import SketchedPCA, SketchedRidge
from sketchbandit.testing import make_rows

Matrix = NDArray[np.float64]

CHECKS = """
import sys, warnings
from sklearn.utils.estimator_checks import check_estimator
from sketchbandit.sklearn import SketchedPCA, SketchedRidge
warnings.simplefilter("error", RuntimeWarning)
results = check_estimator(eval(sys.argv[1]), on_fail="raise")
assert len(results) > 40
assert {result["status"] for result in results} == {"passed"}, results
"""


@pytest.mark.parametrize(
    "estimator",
    [
        "SketchedPCA()",
        "SketchedPCA(n_components=2, whiten=True, sketch='frequent-directions')",
        "SketchedPCA(sketch='exact')",
        "SketchedRidge()",
        "SketchedRidge(size=2, fit_intercept=False)",
    ],
)
def test_check_estimator(estimator: str) -> None:
    """Every check of scikit-learn passes: none is excluded, expected to fail or skipped."""
    everything = {**os.environ, "SCIPY_ARRAY_API": "1"}  # without it one check is skipped
    subprocess.run([sys.executable, "-c", CHECKS, estimator], check=True, env=everything, timeout=120)


def data(count: int = 400, dim: int = 30, seed: int = 0, offset: float = 5.0) -> Matrix:
    """A spectrum that falls, far from the origin."""
    return make_rows("gaussian", count, dim, seed) * 0.8 ** np.arange(dim) + offset


def in_batches(estimator: Any, *arrays: Any, cuts: list[int]) -> Any:
    """Learn from the rows in pieces; empty ones are left out."""
    edges = sorted({0, arrays[0].shape[0], *(cut % arrays[0].shape[0] for cut in cuts)})
    for start, stop in pairwise(edges):
        estimator.partial_fit(*(array[start:stop] for array in arrays))
    return estimator


# -- SketchedPCA --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [3, 8, 40])  # a stream, X'X, nothing lost
@pytest.mark.parametrize("sketch", ["frequent-directions", "incremental-svd", "dyadic-block", "adaptive"])
@given(
    seed=st.integers(0, 99),
    cuts=st.lists(st.integers(0, 399), max_size=4),
    offset=st.sampled_from([0.0, 5.0, 1e4]),
)
def test_certificate_of_the_centred_scatter(
    sketch: str, size: int, seed: int, cuts: list[int], offset: float
) -> None:
    """S'S ⪯ Xc'Xc ⪯ S'S + e I, however the rows come; every variance is in its interval."""
    X = data(seed=seed, dim=60, offset=offset)
    pca = in_batches(SketchedPCA(n_components=2, size=size, sketch=sketch), X, cuts=cuts)
    centred = X - X.mean(axis=0)
    scatter = centred.T @ centred
    slack = 1e-10 * np.trace(scatter) + 1e-13 * float((X**2).sum())
    loss = np.linalg.eigvalsh(scatter - pca.sketch_.rows.T @ pca.sketch_.rows)
    assert loss[0] >= -slack
    assert loss[-1] <= pca.error_bound_ + slack
    variances = np.linalg.eigvalsh(scatter)[::-1][:2] / (len(X) - 1)
    assert (pca.explained_variance_ <= variances + slack).all()
    assert (variances <= pca.explained_variance_upper_ + slack).all()
    np.testing.assert_allclose(pca.mean_, X.mean(axis=0), atol=1e-12 * (1 + offset))
    assert (pca.n_samples_seen_, pca.n_features_in_, pca.n_components_) == (400, 60, 2)


@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_matrix, sparse.csc_array])
@pytest.mark.parametrize("way", ["fit", "batches", "rows"])
@pytest.mark.parametrize("whiten", [False, True])
def test_equals_pca_where_nothing_is_lost(convert: Any, way: str, whiten: bool) -> None:
    """Components, variances, transform and back, dense and sparse, at once, in batches and row by row."""
    X = data(count=80)
    pca = SketchedPCA(n_components=5, size=40, whiten=whiten)
    given_rows = convert(X)
    if way == "fit":
        pca.fit(given_rows)
    else:
        given_rows = given_rows.tocsr() if sparse.issparse(given_rows) else given_rows
        in_batches(pca, given_rows, cuts=[7, 30] if way == "batches" else list(range(80)))
    oracle = PCA(n_components=5, whiten=whiten).fit(X)
    signs = np.sign((pca.components_ * oracle.components_).sum(axis=1))
    assert pca.error_bound_ == 0.0
    np.testing.assert_allclose(pca.components_ * signs[:, np.newaxis], oracle.components_, atol=1e-8)
    for name in ("explained_variance_", "explained_variance_ratio_", "singular_values_", "mean_"):
        np.testing.assert_allclose(getattr(pca, name), getattr(oracle, name), rtol=1e-9, err_msg=name)
    scores = pca.transform(given_rows)
    np.testing.assert_allclose(scores * signs, oracle.transform(X), atol=1e-7)
    np.testing.assert_allclose(
        pca.inverse_transform(scores), oracle.inverse_transform(oracle.transform(X)), atol=1e-7
    )
    np.testing.assert_allclose(
        pca.inverse_transform(sparse.csr_matrix(scores)), pca.inverse_transform(scores)
    )


@pytest.mark.parametrize("k", [5, 20])
def test_reconstruction_no_worse_than_incremental_pca(k: int) -> None:
    """On the digits, at equal size, in the same batches."""
    X = load_digits().data
    rival, ours = IncrementalPCA(n_components=k), SketchedPCA(n_components=k)
    for batch in np.array_split(X, 12):
        rival.partial_fit(batch)
        ours.partial_fit(batch)
    errors = [float(((X - m.inverse_transform(m.transform(X))) ** 2).sum()) for m in (ours, rival)]
    assert errors[0] <= errors[1] * (1 + 1e-9)


def test_variances_are_nearly_the_true_ones() -> None:
    """Also of a stream that the sketch is far too small for: the leading directions are not reduced."""
    X = make_rows("gaussian", 3000, 400, seed=8) / np.sqrt(np.arange(1, 401))
    pca = in_batches(SketchedPCA(n_components=5, size=20), X, cuts=list(range(0, 3000, 100)))
    oracle = PCA(n_components=5).fit(X)
    np.testing.assert_allclose(pca.explained_variance_, oracle.explained_variance_, rtol=0.03)
    assert pca.error_bound_ / 2999 > 0.03 * oracle.explained_variance_[0]


def test_in_a_pipeline_with_pandas() -> None:
    """Names of features in and out, clone, pickle, a grid over its parameters."""
    digits = load_digits()
    frame = pd.DataFrame(digits.data).add_prefix("pixel")
    pipeline = make_pipeline(SketchedPCA(n_components=10), LogisticRegression(max_iter=2000))
    assert pipeline.fit(frame, digits.target).score(frame, digits.target) > 0.85
    pca = SketchedPCA(n_components=3).set_output(transform="pandas")
    out = pca.fit_transform(frame)
    assert (
        list(out.columns)
        == list(pca.get_feature_names_out())
        == ["sketchedpca0", "sketchedpca1", "sketchedpca2"]
    )
    assert list(pca.feature_names_in_[:2]) == ["pixel0", "pixel1"]
    copied = pickle.loads(pickle.dumps(pca))  # noqa: S301  (our own)
    pd.testing.assert_frame_equal(copied.transform(frame), out)
    with pytest.raises(NotFittedError):
        clone(pca).transform(frame)
    search = GridSearchCV(pipeline, {"sketchedpca__size": [12, 30]}, cv=2).fit(frame, digits.target)
    assert search.best_score_ > 0.8


def test_data_that_span_less_than_was_asked_for() -> None:
    """Three rows, ten components: orthonormal all the same, and more rows are welcome."""
    X = data(count=50)
    pca = SketchedPCA(n_components=10).partial_fit(X[:3])
    np.testing.assert_allclose(pca.components_ @ pca.components_.T, np.eye(10), atol=1e-12)
    assert np.count_nonzero(pca.explained_variance_) == 2
    np.testing.assert_allclose(pca.inverse_transform(pca.transform(X[:3])), X[:3])
    pca.partial_fit(X[3:])
    assert np.count_nonzero(pca.explained_variance_) == 10


def test_one_row_and_equal_rows() -> None:
    """No variance, no division by zero."""
    pca = SketchedPCA(n_components=2, whiten=True).partial_fit(np.ones((1, 4)))
    assert pca.explained_variance_.tolist() == [0.0, 0.0]
    assert pca.explained_variance_ratio_.tolist() == [0.0, 0.0]
    assert np.isfinite(pca.partial_fit(np.ones((5, 4))).transform(np.zeros((2, 4)))).all()


def test_sketches_of_ones_own() -> None:
    """A callable that makes one, with settings or without a certificate."""
    X = data(dim=40)
    adaptive = SketchedPCA(n_components=2, sketch=partial(sb.AdaptiveSketch, epsilon=3.0, horizon=400)).fit(X)
    assert adaptive.error_bound_ <= 3.0
    random = SketchedPCA(n_components=2, sketch=partial(sb.RandomProjection, size=30)).fit(X)
    assert random.explained_variance_[0] > 0.0
    assert random.explained_variance_upper_[0] == np.inf


def _used(sketch: sb.Sketch) -> sb.Sketch:
    sketch.update(np.ones(sketch.dim))
    return sketch


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_components": 31}, "n_components=31 must be at most n_features=30"),
        ({"n_components": 0}, "n_components must be at least 1, got 0"),
        ({"n_components": 1.5}, "n_components must be an integer"),
        ({"n_components": 5, "size": 5}, "size=5 must be larger than n_components=5"),
        ({"n_components": 30, "size": 3}, "size=3 must be larger than n_components=30"),
        ({"size": 1}, "size must be at least 2"),
        ({"sketch": "magic"}, "unknown kind of sketch 'magic' .*incremental-svd"),
        ({"sketch": lambda dim: dim}, "must make a fresh sketchbandit.Sketch of dim 30, but made 30"),
        ({"sketch": lambda dim: sb.ExactSketch(dim + 1)}, "of dim 30"),
        ({"sketch": lambda dim: _used(sb.ExactSketch(dim))}, "must make a fresh"),
    ],
)
def test_settings_that_cannot_be(settings: dict[str, Any], message: str) -> None:
    """Said when it is fitted, as scikit-learn does."""
    with pytest.raises(sb.SketchBanditError, match=message):
        SketchedPCA(**settings).fit(data())


@pytest.mark.parametrize("bad", [np.full((2, 30), np.nan), np.ones((2, 29)), np.full((2, 30), 1e154)])
@pytest.mark.parametrize("kind", [SketchedPCA, SketchedRidge])
def test_bad_batches_change_nothing(kind: Any, bad: Matrix) -> None:
    """Refused before anything is learned, by partial_fit and by fit."""
    X = data()
    y = () if kind is SketchedPCA else (X[:, 0],)
    ys = tuple(target[:2] for target in y)
    model = kind(size=5).partial_fit(X, *y)
    before = model.sketch_.rows.copy(), model.n_samples_seen_
    ways = [model.partial_fit, model.fit] if bad.shape[1] == 30 else [model.partial_fit]
    for learn in ways:
        with pytest.raises(ValueError, match=r"NaN|features|overflow"):
            learn(bad, *ys)
        np.testing.assert_array_equal(model.sketch_.rows, before[0])
        assert model.n_samples_seen_ == before[1]
    if y:
        with pytest.raises(sb.InputError, match="y has entries up to 1e"):
            model.partial_fit(X[:2], [1e154, 1e154])
        assert model.n_samples_seen_ == before[1]


def test_a_sketch_of_float32_overflows_earlier() -> None:
    """And says so before the mean has moved."""
    X = data()
    model = SketchedPCA(2, sketch=partial(sb.FrequentDirections, size=5, dtype=np.float32)).partial_fit(X)
    mean = model.mean_.copy()
    with pytest.raises(sb.InputError, match="overflow float32"):
        model.partial_fit(X * 1e25)
    np.testing.assert_array_equal(model.mean_, mean)
    assert model.n_samples_seen_ == 400
    fresh = SketchedPCA(2, sketch=partial(sb.FrequentDirections, size=5, dtype=np.float32))
    with pytest.raises(sb.InputError, match="overflow float32"):
        fresh.partial_fit(X * 1e25)
    fresh.partial_fit(np.ones((3, 7)))  # as if nothing had been


def test_one_feature_in_another_unit() -> None:
    """Bytes beside fractions: variances and coefficients of the small features are found all the same."""
    X = make_rows("gaussian", 5000, 20, seed=9)
    X[:, 0] *= 1e8
    y = X[:, 1:].sum(axis=1)
    pca = SketchedPCA(3).fit(X)
    true = PCA(3).fit(X).explained_variance_
    assert (pca.explained_variance_ <= true * (1 + 1e-6)).all()
    assert (true <= pca.explained_variance_upper_ * (1 + 1e-6)).all()
    assert pca.explained_variance_[1] > 0.9
    X[:, 0] /= 100.0
    for alpha in (1e-3, 1.0):
        assert SketchedRidge(alpha=alpha).fit(X, y).score(X, y) > 0.999


# -- SketchedRidge ------------------------------------------------------------------------------------------


def targets(X: Matrix, noise: float = 0.1, seed: int = 1) -> Matrix:
    """Linear, and noise."""
    random = np.random.default_rng(seed)
    return X @ random.standard_normal(X.shape[1]) + 3.0 + noise * random.standard_normal(len(X))


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("cuts", [None, [5, 6, 200]])
def test_equals_ridge_where_nothing_is_lost(
    fit_intercept: bool, convert: Any, cuts: list[int] | None
) -> None:
    """Coefficients, intercept and predictions."""
    X = data()
    y = targets(X)
    model = SketchedRidge(alpha=0.7, size=40, fit_intercept=fit_intercept)
    model = model.fit(convert(X), y) if cuts is None else in_batches(model, convert(X), y, cuts=cuts)
    oracle = Ridge(alpha=0.7, fit_intercept=fit_intercept).fit(X, y)
    np.testing.assert_allclose(model.coef_, oracle.coef_, atol=1e-6)
    assert model.intercept_ == pytest.approx(oracle.intercept_, abs=1e-5)
    np.testing.assert_allclose(model.predict(convert(X)), oracle.predict(X), atol=1e-6)
    assert model.n_samples_seen_ == 400


@pytest.mark.parametrize("size", [3, 8])
def test_what_is_lost_counts_as_ridge(size: int) -> None:
    """coef = ((alpha + e) I + S'S)^-1 Xc'yc; the standard deviation is that of the formula."""
    X = data(dim=60)
    y = targets(X)
    model = SketchedRidge(alpha=0.7, size=size).fit(X, y)
    centre = X.mean(axis=0)
    S, e = model.sketch_.rows, model.error_bound_
    A = S.T @ S + (0.7 + e) * np.eye(60)
    theta = np.linalg.solve(A, (X - centre).T @ (y - y.mean()))
    np.testing.assert_allclose(model.coef_, theta, rtol=1e-8, atol=1e-10)
    residual_sq = ((y - y.mean() - (X - centre) @ theta) ** 2).sum()
    assert model.noise_**2 >= residual_sq / len(X)
    Z = X[:7] + 1.0
    mean, std = model.predict(Z, return_std=True)
    np.testing.assert_allclose(mean, y.mean() + (Z - centre) @ theta, rtol=1e-9)
    width_sq = np.einsum("ij,ji->i", Z - centre, np.linalg.solve(A, (Z - centre).T))
    np.testing.assert_allclose(std, model.noise_ * np.sqrt(1 + 1 / len(X) + width_sq), rtol=1e-8)


def test_standard_deviations_cover() -> None:
    """About 95 % of new targets lie within two of them, sparse rows or dense."""
    X = data(count=2000, seed=3)
    y = targets(X, noise=0.5)
    model = SketchedRidge(alpha=0.1, size=40).fit(X[:1000], y[:1000])
    assert model.noise_ == pytest.approx(0.5, rel=0.1)
    mean, std = model.predict(X[1000:], return_std=True)
    assert 0.93 < (np.abs(y[1000:] - mean) < 2 * std).mean() < 0.97
    np.testing.assert_allclose(model.predict(sparse.csr_matrix(X[1000:]), return_std=True)[1], std)


def test_a_sketch_without_a_certificate_knows_no_noise() -> None:
    """Whatever the targets."""
    model = SketchedRidge(sketch=partial(sb.RandomProjection, size=30)).fit(data(), np.zeros(400))
    assert model.noise_ == np.inf
    assert model.predict(data()[:2], return_std=True)[1].tolist() == [np.inf, np.inf]


def test_settings_of_the_ridge_that_cannot_be() -> None:
    """alpha must be positive; nothing can be predicted before anything was learned."""
    with pytest.raises(sb.InputError, match="alpha must be finite, above 0"):
        SketchedRidge(alpha=0.0).fit(data(), data()[:, 0])
    with pytest.raises(NotFittedError):
        SketchedRidge().predict(data())
    with pytest.raises(NotFittedError, match="has learned nothing yet"):
        _ = SketchedRidge().coef_


def test_what_is_handed_out_is_a_copy() -> None:
    """Whoever writes to coef_ changes no prediction."""
    X = np.random.default_rng(0).standard_normal((50, 3))
    model = SketchedRidge().fit(X, X[:, 0])
    before = model.predict(X)
    model.coef_[:] = 0.0
    assert np.array_equal(model.predict(X), before)
