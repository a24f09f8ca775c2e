"""Online Newton: a dense oracle, the certificate's share of the regret, and scikit-learn's own checks."""

import os
import pickle
import subprocess
import sys
import tracemalloc
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge

import sketchbandit as sb
from sketchbandit.linalg import SparseVector
from sketchbandit.precision import Precision
from sketchbandit.sklearn import SketchedNewtonClassifier, SketchedNewtonRegressor
from sketchbandit.sklearn.online_newton import LogisticLoss, OnlineNewton, SquaredLoss
from sketchbandit.testing import make_rows

Array = NDArray[np.float64]

CHECKS = """
import sys, warnings
from sklearn.utils.estimator_checks import check_estimator
from sketchbandit.sklearn import SketchedNewtonClassifier, SketchedNewtonRegressor
warnings.simplefilter("error", RuntimeWarning)
for estimator in sys.argv[1:]:
    results = check_estimator(eval(estimator), on_fail="raise")
    assert len(results) > 40
    assert {result["status"] for result in results} == {"passed"}, results
"""


def test_check_estimator() -> None:
    """Every check of scikit-learn passes: none is excluded, expected to fail or skipped."""
    everything = {**os.environ, "SCIPY_ARRAY_API": "1"}  # without it one check is skipped
    estimators = [
        "SketchedNewtonClassifier()",
        "SketchedNewtonClassifier(sketch='fd', size=3, curvature='uniform', bound=1.0)",
        "SketchedNewtonRegressor()",
    ]
    subprocess.run([sys.executable, "-c", CHECKS, *estimators], check=True, env=everything, timeout=240)


# -- curvature ----------------------------------------------------------------------------------------------


def logistic(z: Any, y: float) -> Any:
    """ln(1 + exp(-y z))."""
    return np.logaddexp(0.0, -y * np.asarray(z))


def squared(z: Any, y: float) -> Any:
    """(z - y)²/2."""
    return (np.asarray(z) - y) ** 2 / 2.0


def slope_of(loss: Any, z: float, y: float) -> float:
    """l'(z)."""
    return z - y if loss is squared else -y / (1.0 + np.exp(y * z))


def least_ratio(loss: Any, z: float, y: float, bound: float) -> float:
    """The local curvature by looking at every b of a grid."""
    b = np.linspace(-bound, bound, 4001)
    b = b[np.abs(b - z) > 1e-2 * bound]
    gap = loss(b, y) - loss(z, y) - slope_of(loss, z, y) * (b - z)
    return float((2.0 * gap / (b - z) ** 2).min())


@pytest.mark.parametrize("bound", [0.1, 1.0, 5.0, 12.0])
def test_curvature_of_the_logistic_loss(bound: float) -> None:
    """The local one is the least ratio of all, and the uniform one below it everywhere."""
    for z in np.linspace(-bound, bound, 41).tolist():
        found = LogisticLoss().local(z, bound)
        near_ends = abs(abs(z) - bound) <= 1e-2 * bound  # the grid leaves out where it cancels
        oracle = np.exp(-abs(z)) / (1 + np.exp(-abs(z))) ** 2 if near_ends else np.inf
        for y in (-1.0, 1.0):
            oracle = min(oracle, least_ratio(logistic, z, y, bound))
        assert found == pytest.approx(oracle, rel=1e-6, abs=1e-13)
        for y in (-1.0, 1.0):
            assert LogisticLoss().uniform(bound) * slope_of(logistic, z, y) ** 2 <= found * (1 + 1e-12)
            assert LogisticLoss().slope(z, y) == pytest.approx(slope_of(logistic, z, y))
        assert 0.0 < found <= LogisticLoss.most_weight


def test_curvature_has_no_jumps() -> None:
    """Where the series takes over, and at bounds so large that hardly anything is left."""
    loss = LogisticLoss()
    for z in (-3.0, 0.0, 4.0):
        before, after = loss.local(z, abs(z) + 0.99e-4), loss.local(z, abs(z) + 1.01e-4)
        assert after == pytest.approx(before, rel=1e-4)
    assert loss.uniform(11.9) == pytest.approx(loss.uniform(11.9001), rel=2e-4)
    assert 0.0 < loss.uniform(100.0) <= loss.local(100.0, 100.0)


def test_curvature_of_the_squared_loss() -> None:
    """1 for x x'; 1/(2C)² is the least of 1/(z - y)²."""
    assert SquaredLoss().local(0.3, 2.0) == pytest.approx(least_ratio(squared, 0.3, -1.0, 2.0))
    worst = max(slope_of(squared, z, y) ** 2 for z in (-2.0, 2.0) for y in (-2.0, 2.0))
    assert SquaredLoss().uniform(2.0) == pytest.approx(1.0 / worst)


# -- the oracle ---------------------------------------------------------------------------------------------


def dense_newton(
    X: Array, y: Array, weights: Array, *, loss: Any, alpha: float, bound: float, sigma: float | None
) -> tuple[Array, float]:
    """Online Newton as the paper writes it, with d x d matrices: w, and the sum of g'A^-1 g."""
    A, w, spent = alpha * np.eye(X.shape[1]), np.zeros(X.shape[1]), 0.0
    for x, target, weight in zip(X, y, weights, strict=True):
        if not weight:
            continue
        z = float(x @ w)
        if abs(z) > bound:
            direction = np.linalg.solve(A, x)
            w = w - (z - np.sign(z) * bound) / (x @ direction) * direction
            z = float(x @ w)
        slope = slope_of(loss, z, target)
        local = 1.0 if loss is squared else LogisticLoss().local(z, bound)
        gradient = weight * slope * x
        A = A + weight * (local if sigma is None else sigma * slope**2) * np.outer(x, x)
        step = np.linalg.solve(A, gradient)
        w, spent = w - step, spent + gradient @ step
    return w, spent


def stream(kind: Any, count: int, dim: int, seed: int = 0, noise: float = 0.3) -> tuple[Array, Array]:
    """Rows whose spectrum falls, and targets that are nearly linear: -1 and 1 for the classifier."""
    random = np.random.default_rng(seed)
    X = make_rows("gaussian", count, dim, seed) * 0.9 ** np.arange(dim)
    margins = X @ random.standard_normal(dim) + noise * random.standard_normal(count)
    return X, np.sign(margins) if kind is SketchedNewtonClassifier else margins


def with_constant(X: Array) -> Array:
    """A column of ones behind."""
    return np.column_stack([X, np.ones(len(X))])


KINDS = [(SketchedNewtonClassifier, logistic), (SketchedNewtonRegressor, squared)]


@pytest.mark.parametrize(
    "sketch", [{"sketch": "exact"}, {"sketch": "fd", "size": 14}, {"sketch": "adaptive"}]
)
@pytest.mark.parametrize("curvature", ["local", "uniform", 0.05])
@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize(("kind", "loss"), KINDS)
def test_equals_the_dense_method_where_nothing_is_lost(
    kind: Any, loss: Any, convert: Any, curvature: Any, sketch: dict[str, Any]
) -> None:
    """Weights, intercept and what was spent, with weights of the rows, projections, in batches."""
    X, y = stream(kind, 120, 12)
    X[X < 0.1] = 0.0  # so that sparse rows are sparse
    X[7] = 0.0
    y = np.clip(y, -1.5, 1.5)
    bound, alpha = 1.5, 0.05
    weights = np.random.default_rng(3).choice([0.0, 0.5, 1.0, 3.0], size=120)
    model = kind(alpha, bound=bound, curvature=curvature, **sketch)
    more = {"classes": [-1.0, 1.0]} if kind is SketchedNewtonClassifier else {}
    rows = convert(X)
    for some in (slice(0, 1), slice(1, 50), slice(50, 120)):
        model.partial_fit(rows[some], y[some], sample_weight=weights[some], **more)
    uniform = {
        "local": None,
        "uniform": (LogisticLoss() if loss is logistic else SquaredLoss()).uniform(bound),
    }
    sigma = uniform.get(curvature, curvature)
    w, spent = dense_newton(with_constant(X), y, weights, loss=loss, alpha=alpha, bound=bound, sigma=sigma)
    assert model.error_bound_ < 1e-10
    np.testing.assert_allclose(np.ravel(model.coef_), w[:-1], rtol=1e-7, atol=1e-9)
    assert float(np.ravel(model.intercept_)[0]) == pytest.approx(w[-1], rel=1e-7, abs=1e-9)
    assert model.regret_bound(0.0) == pytest.approx(spent / 2.0, rel=1e-7)
    assert model.n_samples_seen_ == 120


@pytest.mark.parametrize(("kind", "loss"), KINDS)
@pytest.mark.parametrize("compensation", [0.0, 0.5, 1.0])
@pytest.mark.parametrize(
    "sketch",
    [
        {"sketch": "fd", "size": 4},
        {"sketch": "adaptive", "size": 3, "epsilon": 600.0},
        {"sketch": "dbs", "size": 3, "epsilon": 20.0},
    ],
)
def test_every_step_is_that_of_the_sketched_matrix(
    kind: Any, loss: Any, compensation: float, sketch: dict[str, Any], backend: str
) -> None:
    """Steps are those with A = (alpha + c e) I + S'S, S the sketch's own; dense and sparse rows in turn."""
    del backend
    X, y = stream(kind, 60, 40)
    alpha, bound, w = 0.3, 2.0, np.zeros(40)
    model = kind(alpha, bound=bound, compensation=compensation, fit_intercept=False, **sketch)
    more = {"classes": [-1.0, 1.0]} if kind is SketchedNewtonClassifier else {}
    model.partial_fit(X[:1] * 0.0, y[:1], **more)
    for i, x in enumerate(X):
        S, e = model.sketch_.rows, model.error_bound_
        A = (alpha + compensation * e) * np.eye(40) + S.T @ S
        direction = np.linalg.solve(A, x)
        z = float(x @ w)
        if abs(z) > bound:
            w = w - (z - np.sign(z) * bound) / (x @ direction) * direction
            z = float(np.sign(z) * bound)
        omega = 1.0 if loss is squared else LogisticLoss().local(z, bound)
        w = w - slope_of(loss, z, y[i]) * np.linalg.solve(A + omega * np.outer(x, x), x)
        model.partial_fit((np.asarray, sparse.csr_array)[i % 2](x[np.newaxis]), y[i : i + 1])
        np.testing.assert_allclose(np.ravel(model.coef_), w, rtol=1e-7, atol=1e-9)
    assert model.error_bound_ > 0.01
    assert model.error_bound_ <= sketch.get("epsilon", np.inf)
    assert model.sketch_rows_ == model.sketch_.row_count
    assert model.nbytes_ > model.sketch_.nbytes


def test_recursive_least_squares_is_ridge_regression() -> None:
    """After every row, of any stream, unbounded; weights count as rows that come so often."""
    X, y = stream(SketchedNewtonRegressor, 60, 9, noise=2.0)
    model = SketchedNewtonRegressor(0.7, sketch="exact")
    weights = np.random.default_rng(1).integers(0, 4, 60)
    for stop in range(1, 61):
        model.partial_fit(X[stop - 1 : stop], y[stop - 1 : stop], sample_weight=weights[stop - 1])
        oracle = Ridge(0.7, fit_intercept=False)
        oracle.fit(with_constant(X[:stop]), y[:stop], sample_weight=weights[:stop])
        np.testing.assert_allclose(model.coef_, oracle.coef_[:-1], rtol=1e-8, atol=1e-9)
    repeated = SketchedNewtonRegressor(0.7, sketch="exact").fit(X.repeat(weights, axis=0), y.repeat(weights))
    np.testing.assert_allclose(repeated.coef_, model.coef_, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(repeated.predict(X), X @ model.coef_ + model.intercept_, rtol=1e-8)


def test_several_classes_are_one_against_the_rest() -> None:
    """In one pass, as by binary models of their own; probabilities sum to one."""
    X, _ = stream(SketchedNewtonRegressor, 200, 30)
    y = np.array(["a", "b", "c"])[X[:, :3].argmax(axis=1)]
    model = SketchedNewtonClassifier(sketch="fd", size=4).fit(X, y)
    assert model.classes_.tolist() == ["a", "b", "c"]
    assert (model.coef_.shape, model.intercept_.shape, len(model.sketches_)) == ((3, 30), (3,), 3)
    margins = model.decision_function(X)
    bounds = errors = 0.0
    for k, label in enumerate(model.classes_):
        alone = SketchedNewtonClassifier(sketch="fd", size=4).fit(X, y == label)
        np.testing.assert_allclose(margins[:, k], alone.decision_function(X), rtol=1e-9)
        bounds, errors = bounds + alone.regret_bound(2.0), max(errors, alone.error_bound_)
    assert model.regret_bound(2.0) == pytest.approx(bounds)
    assert model.error_bound_ == pytest.approx(errors)
    assert model.sketch_rows_ == sum(len(sketch.rows) for sketch in model.sketches_)
    chances = model.predict_proba(X)
    np.testing.assert_allclose(chances.sum(axis=1), 1.0)
    np.testing.assert_array_equal(model.predict(X), model.classes_[margins.argmax(axis=1)])
    assert model.score(X, y) > 0.85


# -- regret -------------------------------------------------------------------------------------------------


def played(newton: OnlineNewton, X: Array, y: Array, loss: Any) -> dict[str, Any]:
    """Losses before each step, and everything that the bounds speak of."""
    losses, sigmas, after, errors = [], [], [], [0.0]
    for x, target in zip(X, y, strict=True):
        z = float(np.clip(x @ newton.theta, -newton.bound, newton.bound))
        losses.append(float(loss(z, target)))
        slope = slope_of(loss, z, target)
        local = newton.loss.local(z, newton.bound) / slope**2 if slope else np.inf
        sigmas.append(local if newton.sigma is None else newton.sigma)
        newton.learn(x, float(target))
        after.append(newton.theta.copy())
        errors.append(newton.sketch.error_bound)
    return {"losses": losses, "sigmas": sigmas, "after": after, "shrinks": np.diff(errors)}


def comparators(X: Array, y: Array, bound: float, random: np.random.Generator) -> list[Array]:
    """Zero, random ones, and least squares with several ridges, each with margins within the bound."""
    pairs = [(X.T @ X + ridge * np.eye(X.shape[1]), X.T @ y) for ridge in (1e-3, 1.0, 100.0)]
    ridges: list[Array] = [np.asarray(np.linalg.solve(A, b), dtype=np.float64) for A, b in pairs]
    found: list[Array] = [np.zeros(X.shape[1]), random.standard_normal((X.shape[1],)), *ridges]
    found += [np.asarray(5.0 * v, dtype=np.float64) for v in ridges]
    return [v * min(1.0, bound / max(1e-9, float(np.abs(X @ v).max()))) for v in found]


@pytest.mark.parametrize("compensation", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("loss", [logistic, squared])
@given(
    seed=st.integers(0, 99),
    dim=st.integers(2, 15),
    alpha=st.sampled_from([0.01, 0.3, 5.0]),
    size=st.sampled_from([2, 4, 8]),
    local=st.booleans(),
    rotten=st.booleans(),
)
def test_regret_is_within_its_bounds(
    *, loss: Any, compensation: float, seed: int, dim: int, alpha: float, size: int, local: bool, rotten: bool
) -> None:
    """N1 as realised, N2 and N3 from mass, certificate and rows: streams that a sketch loses much of."""
    random = np.random.default_rng(seed)
    X = random.standard_normal((150, dim)) * random.choice([0.3, 1.0, 2.0], size=(150, 1))
    y = np.clip(X @ random.standard_normal(dim) + random.standard_normal(150), -2.0, 2.0)
    if rotten:  # targets without any sense, the same row again and again
        y, X[50:100] = random.choice([-2.0, 2.0], size=150), X[50]
    y = np.where(y > 0.0, 1.0, -1.0) if loss is logistic else y
    bound = 2.0
    model = LogisticLoss() if loss is logistic else SquaredLoss()
    sketch = sb.FrequentDirections(dim, size=size, compensation=compensation)
    newton = OnlineNewton(sketch, alpha, model, bound=bound, sigma=None if local else model.uniform(bound))
    told = played(newton, X, y, loss)
    e, sigma, mass = sketch.error_bound, min(told["sigmas"]), sketch.mass
    # N3: the elliptical sum through the sketch's own rows; no shrink has more than 2·size of them.
    most, r = min(2 * size, dim), max(1, min(sketch.row_count, dim))
    lost = np.log1p(compensation * e / alpha) / compensation if compensation else e / alpha
    own = r * np.log1p(mass / (r * alpha)) + most * lost
    assert newton.spent <= own / sigma * (1 + 1e-9)
    for v in comparators(X, y, bound, random):
        regret = sum(told["losses"]) - float(sum(loss(x @ v, t) for x, t in zip(X, y, strict=True)))
        norm = float(np.linalg.norm(v))
        distances = [float(np.linalg.norm(w - v)) for w in told["after"]]
        paid = compensation * float(told["shrinks"] @ np.square(distances))  # N1
        realised = 0.5 * (alpha * norm**2 + newton.spent + paid)
        assert regret <= realised + 1e-8 * (1 + realised)
        assert realised <= newton.regret_bound(norm) * (1 + 1e-9)
        bound_n2 = sb.theory.newton_regret(
            norm=norm,
            ridge=alpha,
            curvature=sigma,
            dim=dim,
            mass=mass,
            error=e,
            compensation=compensation,
            diameter=max(distances),
        )
        assert realised <= bound_n2 * (1 + 1e-9)


@pytest.mark.parametrize(("kind", "loss"), KINDS)
def test_a_curvature_above_that_of_the_loss_has_no_bound(kind: Any, loss: Any) -> None:
    """It was given a bound, which the regret exceeded. The smaller numbers keep theirs."""
    X, _ = stream(kind, 150, 5)
    y = np.where(np.arange(150) % 5, 1.0, -1.0)
    voided = []
    for curvature in (0.01, 0.1, 5.0, 500.0):
        convex = LogisticLoss() if loss is logistic else SquaredLoss()
        newton = OnlineNewton(sb.ExactSketch(5), 0.1, convex, bound=2.0, sigma=curvature)
        regret = sum(played(newton, X, y, loss)["losses"]) - 150.0 * float(loss(0.0, 1.0))
        model = kind(0.1, sketch="exact", bound=2.0, curvature=curvature, fit_intercept=False).fit(X, y)
        if curvature < 1.0:
            assert regret <= model.regret_bound(0.0) == pytest.approx(newton.spent / 2.0)
            continue
        voided.append(regret > newton.spent / 2.0)
        with pytest.raises(sb.InputError, match="times that of the loss"):
            model.regret_bound(0.0)
    assert any(voided)
    assert model.set_params(curvature="local").fit(X, y).regret_bound(0.0) > 0.0  # a new start


def test_the_bound_means_something() -> None:
    """On a stream that can be learned it is well below the loss of doing nothing."""
    X, y = stream(SketchedNewtonRegressor, 3000, 10)
    model = SketchedNewtonRegressor().fit(X, y)
    w = np.append(model.coef_, model.intercept_)
    assert model.regret_bound(float(np.linalg.norm(w))) < 0.1 * float((y**2).sum() / 2)


# -- as an estimator ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "loss"), KINDS)
@pytest.mark.parametrize("sketch", ["adaptive", "dbs", "fd", "exact"])
def test_a_pickled_model_goes_on_as_if_nothing_had_been(kind: Any, loss: Any, sketch: str) -> None:
    """To the bit; a clone has learned nothing."""
    del loss
    X, y = stream(kind, 100, 30)
    more = {"classes": [-1.0, 1.0]} if kind is SketchedNewtonClassifier else {}
    model = kind(sketch=sketch, size=5).partial_fit(X[:60], y[:60], **more)
    copied = pickle.loads(pickle.dumps(model))  # noqa: S301  (our own)
    for one in (model, copied):
        one.partial_fit(X[60:], y[60:])
    np.testing.assert_array_equal(model.coef_, copied.coef_)
    assert model.regret_bound(1.0) == copied.regret_bound(1.0)
    with pytest.raises(NotFittedError):
        clone(model).predict(X)
    with pytest.raises(NotFittedError, match="has learned nothing yet"):
        _ = clone(model).coef_


def test_sparse_rows_are_never_dense_together() -> None:
    """Memory for the sketch and a few rows, not for all of them."""
    dim, count = 20_000, 300
    X = sparse.random_array((count, dim), density=1e-3, rng=np.random.default_rng(0), format="csr")
    y = np.where(np.asarray(X.sum(axis=1)).ravel() > 10.0, 1, 0)
    model = SketchedNewtonClassifier(sketch="fd", size=4)
    tracemalloc.start()
    try:
        model.fit(X, y)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 40 * dim * 8 < count * dim * 8 / 5
    dense = SketchedNewtonClassifier(sketch="fd", size=4).fit(X.toarray(), y)
    np.testing.assert_allclose(model.coef_, dense.coef_, rtol=1e-8, atol=1e-12)


def test_a_sketch_of_ones_own_in_float32() -> None:
    """Rows are those that it stores; what it says is nearly the same."""
    X, y = stream(SketchedNewtonClassifier, 300, 30)
    narrow = SketchedNewtonClassifier(sketch=partial(sb.FrequentDirections, size=6, dtype=np.float32)).fit(
        X, y
    )
    wide = SketchedNewtonClassifier(sketch="frequent-directions", size=6, compensation=0.0).fit(X, y)
    np.testing.assert_allclose(narrow.coef_, wide.coef_, atol=0.01)
    assert narrow.sketch_.dtype == np.float32


def test_margins_stay_within_the_bound() -> None:
    """Rows a thousand times as long: no overflow, and probabilities of log-odds up to the bound."""
    X, y = stream(SketchedNewtonClassifier, 200, 6)
    model = SketchedNewtonClassifier(bound=3.0).fit(1e3 * X, y)
    margins, chances = model.decision_function(1e6 * X), model.predict_proba(1e6 * X)
    assert np.abs(margins).max() > 1e3
    assert chances.min() == pytest.approx(1.0 / (1.0 + np.exp(3.0)))
    assert SketchedNewtonRegressor(bound=0.5).fit(X, 9.0 * y).predict(X).max() == 0.5


@pytest.mark.parametrize(("kind", "loss"), KINDS)
@given(
    seed=st.integers(0, 99),
    scale=st.sampled_from([1e-150, 1e-8, 1.0, 1e8, 1e60, 1e150]),
    mixed=st.booleans(),
    curvature=st.sampled_from(["local", "uniform"]),
    compensation=st.sampled_from([0.0, 1.0]),
)
def test_rows_of_any_length(
    *, kind: Any, loss: Any, seed: int, scale: float, mixed: bool, curvature: str, compensation: float
) -> None:
    """They are learned from, and all is finite; or they are refused, and nothing has changed."""
    del loss
    X, y = stream(kind, 40, 6, seed)
    model = kind(sketch="fd", size=3, bound=3.0, curvature=curvature, compensation=compensation)
    y = np.clip(y, -3.0, 3.0)
    model.fit(X, y)
    before = model.coef_, model.n_samples_seen_
    longer = X * (np.where(np.arange(40) % 3, 1.0, scale)[:, np.newaxis] if mixed else scale)
    try:
        model.partial_fit(longer, y)
    except sb.InputError as refused:
        message = str(refused)
    else:
        message = ""
    if message:
        assert scale > 1e8
        assert "overflow" in message
        np.testing.assert_array_equal(model.coef_, before[0])
        assert model.n_samples_seen_ == before[1]
    assert np.isfinite(model.coef_).all()
    assert np.isfinite(model.regret_bound(1.0))


def bad_batches() -> list[Any]:
    """(kind, keywords of partial_fit, error, message)."""
    X, y = np.ones((2, 12)), np.array([-1.0, 1.0])
    both = [
        ({"X": X * np.nan, "y": y}, ValueError, "NaN"),
        ({"X": X[:, 1:], "y": y}, ValueError, "features"),
        ({"X": X * 1e154, "y": y}, sb.InputError, "overflow"),
        ({"X": X, "y": y, "sample_weight": [1.0, -1.0]}, sb.InputError, "contains -1.0; weights must be"),
        ({"X": X, "y": y, "sample_weight": [1.0, np.inf]}, sb.InputError, "contains inf"),
        ({"X": X, "y": y, "sample_weight": [1.0]}, sb.InputError, "2 rows need as many weights"),
        ({"X": X, "y": y, "sample_weight": ["a", "b"]}, sb.InputTypeError, "must be numbers"),
        ({"X": X, "y": y, "sample_weight": [1e308, 1.0]}, sb.InputError, "overflow"),
    ]
    classifier = [
        ({"X": X, "y": [1.0, 2.0]}, sb.InputError, "label .*2.0.* is none of the classes"),
        ({"X": X, "y": y, "classes": [1.0, 2.0]}, sb.InputError, r"classes are \[-1.0, 1.0\] so far"),
        ({"X": X, "y": [0.5, 0.25]}, ValueError, "Unknown label type"),
    ]
    regressor = [({"X": X, "y": y * 1e200}, sb.InputError, "rescale them")]
    return [
        *((kind, *case) for kind, _ in KINDS for case in both),
        *((SketchedNewtonClassifier, *case) for case in classifier),
        *((SketchedNewtonRegressor, *case) for case in regressor),
    ]


@pytest.mark.parametrize(("kind", "batch", "error", "message"), bad_batches())
def test_bad_batches_change_nothing(kind: Any, batch: dict[str, Any], error: Any, message: str) -> None:
    """Refused before anything is learned."""
    X, y = stream(kind, 30, 12)
    model = kind(sketch="fd", size=3).fit(X, y)
    before = pickle.dumps(model)
    with pytest.raises(error, match=message):
        model.partial_fit(**batch)
    assert pickle.dumps(model) == before


@pytest.mark.parametrize(
    ("kind", "settings", "message"),
    [
        (SketchedNewtonClassifier, {"alpha": 0.0}, "alpha must be finite, above 0"),
        (SketchedNewtonClassifier, {"bound": None}, "bound must be a real number"),
        (SketchedNewtonClassifier, {"bound": 101.0}, "bound must be finite, above 0 and at most 100"),
        (
            SketchedNewtonClassifier,
            {"curvature": "global"},
            "curvature must be 'local', 'uniform' or a number",
        ),
        (SketchedNewtonClassifier, {"curvature": -1.0}, "curvature must be finite, above 0"),
        (SketchedNewtonClassifier, {"sketch": "magic"}, "unknown kind of sketch 'magic'"),
        (SketchedNewtonClassifier, {"size": 1}, "size must be at least 2"),
        (SketchedNewtonClassifier, {"epsilon": 0.0}, "epsilon must be finite, above 0"),
        (SketchedNewtonClassifier, {"compensation": 0.3}, "compensation must be 0"),
        (SketchedNewtonRegressor, {"bound": -1.0}, "bound must be finite, above 0"),
        (SketchedNewtonRegressor, {"curvature": "uniform"}, "give bound="),
        (SketchedNewtonRegressor, {"curvature": 0.1}, "give bound="),
        (SketchedNewtonRegressor, {"curvature": 0.1, "bound": 1e-3}, "raise the bound, rescale y"),
    ],
)
def test_settings_that_cannot_be(kind: Any, settings: dict[str, Any], message: str) -> None:
    """Said when it is fitted, as scikit-learn does."""
    with pytest.raises(sb.SketchBanditError, match=message):
        kind(**settings).fit(*stream(kind, 30, 12))


def test_classes_come_with_the_first_rows() -> None:
    """All of them, two or more."""
    X, y = stream(SketchedNewtonClassifier, 30, 12)
    with pytest.raises(sb.InputError, match="classes must be given with the first partial_fit"):
        SketchedNewtonClassifier().partial_fit(X, y)
    with pytest.raises(sb.InputError, match=r"got 1 class: \[1.0\]"):
        SketchedNewtonClassifier().partial_fit(X, y, classes=[1.0])
    with pytest.raises(sb.InputError, match="classes is empty"):
        SketchedNewtonClassifier().partial_fit(X, y, classes=[])
    assert SketchedNewtonClassifier().partial_fit(X, y, classes=[1.0, -1.0]).classes_.tolist() == [-1.0, 1.0]
    with pytest.raises(sb.InputError, match="norm must be finite, at least 0"):
        SketchedNewtonClassifier().fit(X, y).regret_bound(-1.0)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"ridge": 0.0}, "ridge must be finite, above 0"),
        ({"curvature": 0.0}, "curvature must be finite, above 0"),
        ({"mass": -1.0}, "mass must be finite, at least 0"),
        ({"error": np.nan}, "error must be finite"),
        ({"dim": 0}, "dim must be at least 1"),
        ({"compensation": 2.0}, "compensation must be 0"),
    ],
)
def test_a_bound_of_nonsense(settings: dict[str, Any], message: str) -> None:
    """Refused; the sound one grows with what was lost."""
    sound: dict[str, Any] = {"norm": 1.0, "ridge": 1.0, "curvature": 0.5, "dim": 5, "mass": 10.0}
    bounds = [sb.theory.newton_regret(**sound, error=error) for error in (0.0, 0.5, 2.0)]
    assert bounds == sorted(set(bounds))
    with pytest.raises(sb.InputError, match=message):
        sb.theory.newton_regret(**{**sound, **settings})


@pytest.mark.parametrize("scale", [1.0, 1e3])  # well conditioned, and not
@pytest.mark.parametrize("dim", [8, 60])  # through a matrix, and through rows
def test_image_of_a_vector(dim: int, scale: float, backend: str) -> None:
    """A^-1 x by its leverage, dense and sparse, while rows are appended."""
    del backend
    rows = make_rows("gaussian", 12, dim, seed=5)
    sketch = sb.FrequentDirections(dim, size=10)
    precision = Precision(sketch, 0.5)
    for row in scale * rows:
        sketch.update(row)
        A = 0.5 * np.eye(dim) + sketch.rows.T @ sketch.rows
        x = row + np.eye(dim)[0]
        norm_sq = float(x @ x)
        for vector in (x, SparseVector(np.arange(dim), x)):
            image = precision.image(vector, precision.leverage(vector, norm_sq))
            np.testing.assert_allclose(image, np.linalg.solve(A, x), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("scale", [1.0, 1e4])  # well conditioned, and so badly that it is refined
@pytest.mark.parametrize("dim", [8, 60])  # through a matrix, and through rows
def test_a_step_along_the_image(dim: int, scale: float, backend: str) -> None:
    """Vectors plus along·A^-1 x in one loop are as one after the other; nothing where one overflows."""
    del backend
    rows = make_rows("gaussian", 12, dim, seed=6)
    sketch = sb.FrequentDirections(dim, size=10)
    precision = Precision(sketch, 0.5)
    thetas = np.linspace([-1.0, 2.0], [1.0, 3.0], dim).T.copy()
    for row in scale * rows:
        x = row + np.eye(dim)[0]
        norm_sq = float(x @ x)
        for vector in (x, SparseVector(np.arange(dim), x)):
            leverage = precision.leverage(vector, norm_sq)
            moved = precision.moved(thetas, np.array([0.3, 0.0]), vector, leverage)
            A = 0.5 * np.eye(dim) + sketch.rows.T @ sketch.rows
            assert moved is not None
            expected = thetas + np.outer([0.3, 0.0], np.linalg.solve(A, x))
            np.testing.assert_allclose(moved, expected, rtol=1e-5, atol=1e-6 * np.abs(expected).max())
            far = np.array([0.0, 1e308])
            assert precision.moved(thetas, far, 1e10 * x, leverage.times(1e10)) is None
        sketch.update(row)
    np.testing.assert_array_equal(thetas, np.linspace([-1.0, 2.0], [1.0, 3.0], dim).T)


def test_what_is_handed_out_is_a_copy() -> None:
    """Whoever writes to coef_ changes no prediction."""
    for kind, _ in KINDS:
        X, y = stream(kind, 30, 12)
        model = kind(fit_intercept=False).fit(X, y)
        before = model.predict(X)
        model.coef_[:] = 0.0
        assert np.array_equal(model.predict(X), before)
        assert np.ravel(model.intercept_).tolist() == [0.0]
