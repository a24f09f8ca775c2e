"""Ridge regression on a stream."""

from typing import Self

import numpy as np
from sklearn.base import RegressorMixin

from sketchbandit.arrays import Rows, Vector
from sketchbandit.errors import InputError
from sketchbandit.linalg import inner, product, row_norms_sq
from sketchbandit.precision import Precision
from sketchbandit.sketch import BulkReader, Sketch, Spectrum, spectrum
from sketchbandit.sketch.bulk_reader import Centring, dense_chunks, most_scatter
from sketchbandit.sketch.checks import check_count, check_real
from sketchbandit.sklearn.base import Choice, MatrixLike, StreamingEstimator, VectorLike, make_sketch


class _Learned:
    """The stream so far: rows and targets, centred together. A^-1 is computed when it is needed."""

    def __init__(self, sketch: Sketch, alpha: float, *, fit_intercept: bool) -> None:
        dim = sketch.dim
        self.centring = Centring(dim + 1)  # the target is the last column
        self._fit_intercept = fit_intercept
        self._alpha = alpha
        self._bulk = BulkReader(sketch)
        self._b: Vector = np.zeros(dim)
        self._targets_sq = 0.0
        self.count = 0
        self._precision: Precision | None = None
        self._theta: Vector | None = None
        self._spectrum: Spectrum | None = None

    def update(self, X: Rows, y: Vector) -> None:
        self._bulk.check_room(most_scatter(X, self.mean))
        if not self._targets_sq + most_scatter(y[:, np.newaxis], self.centring.mean[-1:]) < np.inf:
            raise InputError(f"y has entries up to {np.abs(y).max():g}, whose squares overflow; rescale y")
        self._precision = self._theta = self._spectrum = None
        for rows, targets in dense_chunks(X, y):
            joined = np.column_stack([rows, targets])
            self.count += len(joined)
            if self._fit_intercept:
                joined = self.centring.centred(joined)
            self._bulk.update(np.ascontiguousarray(joined[:, :-1]))
            self._b += product(joined[:, -1], joined[:, :-1])
            self._targets_sq += inner(joined[:, -1], joined[:, -1])

    @property
    def mean(self) -> Vector:
        """The mean of the features; zero without an intercept."""
        return self.centring.mean[:-1]

    @property
    def target(self) -> float:
        """The mean of the targets."""
        return float(self.centring.mean[-1])

    @property
    def precision(self) -> Precision:
        if self._precision is None:
            self._precision = Precision(self._bulk.finish(), self._alpha)
        return self._precision

    @property
    def theta(self) -> Vector:
        if self._theta is None:
            self._theta = self.precision.apply(self._b)
        return self._theta

    @property
    def sketch(self) -> Sketch:
        return self.precision.sketch

    @property
    def spectrum(self) -> Spectrum:
        if self._spectrum is None:
            self._spectrum = spectrum(self.sketch)
        return self._spectrum

    def widths_sq(self, X: Rows) -> Vector:
        """x'A^-1 x for every centred row: the part outside the rows of S, plus the part inside."""
        sigma_sq, directions, shift = self.spectrum.sigma_sq, self.spectrum.directions, self.precision.shift
        found = []
        for (rows,) in dense_chunks(X):
            centred = rows - self.mean
            inside = product(centred, directions.T)
            outside = centred - product(inside, directions)
            found.append(row_norms_sq(outside) / shift + (inside**2 / (sigma_sq + shift)).sum(axis=1))
        return np.concatenate(found)

    def noise_sq(self) -> float:
        """An upper bound on the variance of the residuals, because X'X is known only up to e.

        |y - X theta|² = |y|² - 2 theta'b + theta'X'X theta <= |y|² - 2 theta'b + |S theta|² + e |theta|².
        """
        sketch, theta = self.sketch, self.theta
        if not np.isfinite(sketch.error_bound):
            return float("inf")
        fitted = product(sketch.rows.astype(np.float64), theta)
        loss = sketch.error_bound * inner(theta, theta)
        residual_sq = max(0.0, self._targets_sq - 2.0 * inner(theta, self._b) + inner(fitted, fitted) + loss)
        sigma_sq = self.spectrum.sigma_sq
        used = float((sigma_sq / (sigma_sq + self.precision.shift)).sum()) + self._fit_intercept
        return float(residual_sq / max(1.0, self.count - used))


class SketchedRidge(RegressorMixin, StreamingEstimator[_Learned]):
    """Ridge regression in one pass over data of any length, on a sketch.

    coef = ((alpha + c·e) I + S'S)^-1 Xc'yc, with the sketch S of the centred rows and its error bound e. The
    means are updated on the way. If ``size`` is above the rank of the data, this is exact ridge regression.
    Memory is O(size · n_features), or n_features² if that is not much more (at most 16·size features).
    Features should have similar units: if one is 10^7 times another, few digits are left for the other.

    Parameters
    ----------
    alpha : float, default=1.0
        The ridge parameter.
    size : int, default=100
        The sketch size.
    sketch : str or callable, default="frequent-directions"
        The kind of sketch, as for ``SketchedPCA``. A sketch given by name has compensation 1 (c = 1): what it
        has lost counts as ridge. So directions that it does not know get small coefficients, not large ones.
    fit_intercept : bool, default=True
        Whether rows and targets are centred.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features_in_,)
        The coefficients.
    intercept_ : float
        The prediction if all features are zero.
    noise_ : float
        An upper bound on the standard deviation of the residuals.
    error_bound_ : float
        The error bound e of the sketch.
    n_features_in_, n_samples_seen_ : int
        The number of features, and of rows seen.
    sketch_ : Sketch
        The sketch of the centred rows.

    Examples
    --------
    >>> random = np.random.default_rng(0)
    >>> X = random.standard_normal((500, 8))
    >>> y = X @ np.arange(1.0, 9.0) + 2.0 + 0.1 * random.standard_normal(500)
    >>> model = SketchedRidge(alpha=1e-3)
    >>> for rows, targets in zip(np.array_split(X, 5), np.array_split(y, 5)):
    ...     model = model.partial_fit(rows, targets)
    >>> model.coef_.round(1).tolist(), round(model.intercept_, 1)
    ([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0], 2.0)
    >>> mean, std = model.predict(X[:3], return_std=True)
    >>> bool((np.abs(mean - y[:3]) < 4 * std).all()), round(model.noise_, 1)
    (True, 0.1)

    """

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        size: int = 100,
        sketch: Choice = "frequent-directions",
        fit_intercept: bool = True,
    ) -> None:
        self.alpha = alpha
        self.size = size
        self.sketch = sketch
        self.fit_intercept = fit_intercept

    def fit(self, X: MatrixLike, y: VectorLike) -> Self:
        """Learn from X, (n_samples, n_features), dense or sparse, and y. Earlier data are forgotten."""
        X, y = self._checked(X, y, reset=True, y_numeric=True)
        return self._learn(self._start(X.shape[1]), X, np.asarray(y, dtype=np.float64))

    def partial_fit(self, X: MatrixLike, y: VectorLike) -> Self:
        """Learn from further rows."""
        first = not self.__sklearn_is_fitted__()
        X, y = self._checked(X, y, reset=first, y_numeric=True)
        learned = self._start(X.shape[1]) if first else self._learned
        return self._learn(learned, X, np.asarray(y, dtype=np.float64))

    def _start(self, dim: int) -> _Learned:
        alpha = check_real("alpha", self.alpha, above=0.0)
        size = check_count("size", self.size, at_least=2)
        sketch = make_sketch(self.sketch, dim, size, 1.0)
        return _Learned(sketch, alpha, fit_intercept=bool(self.fit_intercept))

    def predict(self, X: MatrixLike, return_std: bool = False) -> Vector | tuple[Vector, Vector]:
        """Predict the targets of X, (n_samples,). With ``return_std`` also return their standard deviations.

        The standard deviation is sqrt(noise_² (1 + 1/n + w²)), with w² = x'A^-1 x of the centred row. It
        covers the noise of a target and the uncertainty of its mean.
        """
        X = self._features(X)
        predicted = np.asarray(X @ self.coef_) + self.intercept_
        if not return_std:
            return predicted
        learned = self._fitted
        unknown_mean = 1.0 / learned.count if self.fit_intercept else 0.0
        return predicted, np.sqrt(learned.noise_sq() * (1.0 + unknown_mean + learned.widths_sq(X)))

    # -- what was learned ---------------------------------------------------------------------------

    @property
    def coef_(self) -> Vector:
        """The coefficients, a copy."""
        return self._fitted.theta.copy()

    @property
    def intercept_(self) -> float:
        """The prediction if all features are zero."""
        learned = self._fitted
        return learned.target - inner(learned.mean, learned.theta)

    @property
    def noise_(self) -> float:
        """An upper bound on the standard deviation of the residuals."""
        return float(np.sqrt(self._fitted.noise_sq()))
