"""Principal component analysis of a stream."""

from typing import NamedTuple, Self

import numpy as np
from scipy import sparse
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from sketchbandit.array_api import Array, is_foreign
from sketchbandit.arrays import Matrix, Vector
from sketchbandit.errors import InputError
from sketchbandit.sketch import Sketch, spectrum
from sketchbandit.sketch.bulk_reader import CentredReader
from sketchbandit.sketch.checks import check_count
from sketchbandit.sklearn.base import Choice, MatrixLike, StreamingEstimator, make_sketch

_DEFAULT_SIZE = 50


class Principal(NamedTuple):
    """The sketch, and its leading directions."""

    sketch: Sketch
    components: Matrix
    scatter: Vector
    """The scatter along each direction, a lower bound."""


class LearnedScatter:
    """The centred scatter of the stream so far. Principal directions are computed when they are needed."""

    def __init__(self, sketch: Sketch, components: int) -> None:
        self.components = components
        self._reader = CentredReader(sketch)
        self._principal: Principal | None = None

    @property
    def count(self) -> int:
        """The number of rows seen."""
        return self._reader.count

    @property
    def mean(self) -> Vector:
        """The mean of all rows seen."""
        return self._reader.mean

    @property
    def sketch(self) -> Sketch:
        """The sketch of the centred rows."""
        return self.principal.sketch

    def update(self, X: Array) -> None:
        """Learn from further rows, of numpy or of another library."""
        self._reader.update(X)
        self._principal = None

    @property
    def principal(self) -> Principal:
        """The principal directions, computed once after the last ``update``."""
        if self._principal is None:
            sketch = self._reader.finish()
            found = spectrum(sketch, self.components)
            self._principal = Principal(sketch, *_complete(found.directions, found.sigma_sq, self.components))
        return self._principal


class SketchedPCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, StreamingEstimator[LearnedScatter]):
    """Principal component analysis in one pass over data of any length, with a certified error.

    The centred scatter Xc'Xc is sketched, and the mean is updated on the way. At every moment

        S'S ⪯ Xc'Xc ⪯ S'S + e I,        e = ``error_bound_``.

    So every true variance is between ``explained_variance_`` and ``explained_variance_upper_``. Up to about
    16·size features, the scatter matrix itself is summed up and cut once, which is faster and loses least.
    With more features, memory is O(size · n_features).

    Parameters
    ----------
    n_components : int, default=None
        The number of components. None: as many as the sketch keeps, at most the number of features.
    size : int, default=None
        The sketch size. A larger sketch loses less. None: twice n_components, but at least n_components + 10;
        50 if n_components is None.
    sketch : str or callable, default="incremental-svd"
        The kind of sketch. "incremental-svd" leaves the leading directions as they are, so their variances
        are nearly the true ones. Others are "frequent-directions", "dyadic-block", "adaptive" and "exact".
        Or a callable that makes a fresh sketch from the number of features:
        ``partial(sb.AdaptiveSketch, epsilon=100.0)``.
    whiten : bool, default=False
        Whether ``transform`` scales every component to unit variance.

    Attributes
    ----------
    components_ : ndarray of shape (n_components_, n_features_in_)
        The principal directions: orthonormal rows, largest variance first. If the data span fewer dimensions,
        the last ones are arbitrary.
    explained_variance_, explained_variance_upper_ : ndarray of shape (n_components_,)
        The variance of the sketch along each component, and this plus e/(n - 1). The i-th largest variance of
        the data is between the two.
    explained_variance_ratio_ : ndarray of shape (n_components_,)
        ``explained_variance_`` as a fraction of the total variance, which is known exactly.
    singular_values_ : ndarray of shape (n_components_,)
        The singular values of S: the square roots of explained_variance_ · (n - 1).
    error_bound_ : float
        The error bound e, in units of ``singular_values_**2``.
    mean_ : ndarray of shape (n_features_in_,)
        The mean of all rows seen.
    n_components_, n_features_in_, n_samples_seen_ : int
        The number of components, of features, and of rows seen.
    sketch_ : Sketch
        The sketch of the centred rows.

    Examples
    --------
    >>> X = np.random.default_rng(0).standard_normal((1000, 30)) * 0.6 ** np.arange(30)
    >>> pca = SketchedPCA(n_components=3)
    >>> for batch in np.array_split(X, 10):
    ...     pca = pca.partial_fit(batch)
    >>> true = np.linalg.eigvalsh(np.cov(X.T))[::-1][:3]
    >>> bool(np.all(pca.explained_variance_ <= true * (1 + 1e-9)))
    True
    >>> bool(np.all(true <= pca.explained_variance_upper_))
    True

    """

    def __init__(
        self,
        n_components: int | None = None,
        *,
        size: int | None = None,
        sketch: Choice = "incremental-svd",
        whiten: bool = False,
    ) -> None:
        self.n_components = n_components
        self.size = size
        self.sketch = sketch
        self.whiten = whiten

    # -- learning -----------------------------------------------------------------------------------

    def fit(self, X: MatrixLike, y: object = None) -> Self:
        """Learn from X, (n_samples, n_features), dense or sparse. Earlier data are forgotten."""
        del y
        X = self._checked(X, reset=True, ensure_min_samples=2)
        return self._learn(self._start(X.shape[1]), X)

    def partial_fit(self, X: MatrixLike, y: object = None) -> Self:
        """Learn from further rows. Batches may have any size, also a single row.

        Arrays of torch, JAX, CuPy and other libraries that follow the array API standard are centred and
        summed up on their device.
        """
        del y
        first = not self.__sklearn_is_fitted__()
        if is_foreign(X):
            return self._learn_on_device(X, first)
        X = self._checked(X, reset=first)
        return self._learn(self._start(X.shape[1]) if first else self._learned, X)

    def _learn_on_device(self, X: Array, first: bool) -> Self:
        if X.ndim != 2 or not X.shape[0]:
            raise InputError(f"X must have shape (n_samples, n_features), got {tuple(X.shape)}")
        dim = int(X.shape[1])
        self._learn(self._start(dim) if first else self._learned, X)
        self.n_features_in_ = dim  # others were refused
        return self

    def _start(self, dim: int) -> LearnedScatter:
        size = None if self.size is None else check_count("size", self.size, at_least=2)
        if self.n_components is None:
            size = _DEFAULT_SIZE if size is None else size
            wanted = min(size - 1, dim)
        else:
            wanted = check_count("n_components", self.n_components, at_least=1)
            if wanted > dim:
                raise InputError(f"n_components={wanted} must be at most n_features={dim}")
            size = max(2 * wanted, wanted + 10) if size is None else size
            if size <= wanted:
                raise InputError(
                    f"size={size} must be larger than n_components={wanted}: a sketch keeps size - 1 rows"
                )
        return LearnedScatter(make_sketch(self.sketch, dim, size, 0.0), wanted)

    # -- using what was learned ---------------------------------------------------------------------

    def transform(self, X: MatrixLike) -> Matrix:
        """Project X onto the components: (X - mean_) components_', shape (n_samples, n_components_)."""
        X = self._features(X)
        components = self.components_
        projected = np.asarray(X @ components.T) - self.mean_ @ components.T
        return projected / self._scale if self.whiten else projected

    def inverse_transform(self, X: MatrixLike) -> Matrix:
        """Map components back to rows, shape (n_samples, n_features)."""
        check_is_fitted(self)
        X = X.toarray() if sparse.issparse(X) else np.asarray(X, dtype=np.float64)
        if X.ndim != 2 or X.shape[1] != self.n_components_:
            raise InputError(f"X has shape {X.shape}, but there are {self.n_components_} components")
        restored: Matrix = (X * self._scale if self.whiten else X) @ self.components_ + self.mean_
        return restored

    @property
    def _scale(self) -> Vector:
        """The standard deviation along each component; 1 if it is zero."""
        scale = np.sqrt(self.explained_variance_)
        return np.where(scale > 0.0, scale, 1.0)

    # -- what was learned ---------------------------------------------------------------------------

    @property
    def components_(self) -> Matrix:
        """The principal directions as rows."""
        return self._fitted.principal.components

    @property
    def explained_variance_(self) -> Vector:
        """A lower bound on the i-th largest variance of the data."""
        return self._fitted.principal.scatter / self._degrees

    @property
    def explained_variance_upper_(self) -> Vector:
        """An upper bound on the i-th largest variance of the data."""
        return self.explained_variance_ + self.error_bound_ / self._degrees

    @property
    def explained_variance_ratio_(self) -> Vector:
        """The variances as fractions of the total variance."""
        total = self.sketch_.mass
        return self._fitted.principal.scatter / (total if total else 1.0)

    @property
    def singular_values_(self) -> Vector:
        """The singular values of S."""
        return np.sqrt(self._fitted.principal.scatter)

    @property
    def mean_(self) -> Vector:
        """The mean of all rows seen."""
        return self._fitted.mean

    @property
    def n_components_(self) -> int:
        """The number of components."""
        return self._fitted.components

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    @property
    def _degrees(self) -> int:
        return max(1, self.n_samples_seen_ - 1)


def _complete(directions: Matrix, scatter: Vector, count: int) -> tuple[Matrix, Vector]:
    """``count`` orthonormal directions whose largest entries are positive. Missing ones are filled in."""
    there = int(np.count_nonzero(scatter > np.finfo(np.float64).eps ** 2 * scatter[:1].sum()))
    full = np.zeros(count)
    full[:there] = scatter[:there]
    directions = directions[:there]
    if there < count:
        extra = np.random.default_rng(0).standard_normal((count - there, directions.shape[1]))
        basis = np.linalg.qr(np.concatenate([directions, extra]).T)[0].T
        directions = np.concatenate([directions, basis[there:]])
    largest = directions[np.arange(count), np.abs(directions).argmax(axis=1)]
    return directions * np.sign(largest)[:, np.newaxis], full
