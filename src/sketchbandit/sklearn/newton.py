"""Online Newton on a stream: classification by logistic loss, regression by squared loss."""

import math
from typing import Literal, Self

import numpy as np
from scipy.special import expit
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets

from sketchbandit.arrays import AnyArray, Matrix, Rows, Vector
from sketchbandit.errors import InputError, InputTypeError
from sketchbandit.sketch import Sketch
from sketchbandit.sketch.checks import check_compensation, check_count, check_real
from sketchbandit.sklearn.base import Choice, MatrixLike, StreamingEstimator, VectorLike, make_sketch
from sketchbandit.sklearn.online_newton import LearnedNewton, LogisticLoss, Loss, OnlineNewton, SquaredLoss

Curvature = Literal["local", "uniform"] | float

_SHORT_NAMES = {"dbs": "dyadic-block", "fd": "frequent-directions"}
_EPSILON = 1.25  # of alpha: sqrt(1 + e/alpha) <= 1.5, as for sb.adaptive
_MOST_BOUND = 100.0  # for log-odds: exp(-100) is no curvature at all
_NO_CLASSES = np.empty(0)  # of a regressor


class SketchedNewton(StreamingEstimator[LearnedNewton]):
    """The settings of both estimators, and what both tell of their sketches."""

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        sketch: Choice = "adaptive",
        size: int | None = None,
        epsilon: float | None = None,
        compensation: float = 1.0,
        bound: float | None = None,
        curvature: Curvature = "local",
        fit_intercept: bool = True,
    ) -> None:
        self.alpha = alpha
        self.sketch = sketch
        self.size = size
        self.epsilon = epsilon
        self.compensation = compensation
        self.bound = bound
        self.curvature = curvature
        self.fit_intercept = fit_intercept

    def _start(self, dim: int, loss: Loss, count: int = 1, classes: AnyArray = _NO_CLASSES) -> LearnedNewton:
        """Nothing learned yet; settings are looked at here, as scikit-learn wants it."""
        alpha = check_real("alpha", self.alpha, above=0.0)
        bound = math.inf if self.bound is None else check_real("bound", self.bound, above=0.0)
        sigma = self._sigma(loss, bound)
        fit_intercept = bool(self.fit_intercept)
        made = [
            OnlineNewton(self._sketch(dim + fit_intercept, alpha), alpha, loss, bound=bound, sigma=sigma)
            for _ in range(count)
        ]
        return LearnedNewton(made, classes, fit_intercept=fit_intercept)

    def _sigma(self, loss: Loss, bound: float) -> float | None:
        if isinstance(self.curvature, str):
            if self.curvature not in ("local", "uniform"):
                raise InputError(f"curvature must be 'local', 'uniform' or a number, got {self.curvature!r}")
            if self.curvature == "local":
                return None
        if not math.isfinite(bound):
            raise InputError(
                f"curvature={self.curvature!r} holds for margins within a bound: give bound=, or 'local'"
            )
        if self.curvature == "uniform":
            return loss.uniform(bound)
        return check_real("curvature", self.curvature, above=0.0)

    def _sketch(self, dim: int, alpha: float) -> Sketch:
        size = None if self.size is None else check_count("size", self.size, at_least=2)
        epsilon = _EPSILON * alpha if self.epsilon is None else check_real("epsilon", self.epsilon, above=0.0)
        choice = _SHORT_NAMES.get(self.sketch, self.sketch) if isinstance(self.sketch, str) else self.sketch
        if choice == "dyadic-block":
            epsilon /= 2.0  # the certificate of its blocks is at most twice that
        return make_sketch(choice, dim, size, check_compensation(self.compensation), epsilon)

    def _margins(self, X: MatrixLike) -> Matrix:
        return self._fitted.margins(self._features(X))

    def _bounded_margins(self, X: MatrixLike) -> Matrix:
        """As online Newton predicts them: within the bound that it has learned with."""
        margins = self._margins(X)
        bound = self._fitted.outputs[0].bound
        return np.clip(margins, -bound, bound)

    # -- what was learned ---------------------------------------------------------------------------

    @property
    def sketch_(self) -> Sketch:
        """The sketch of the rows sqrt(omega) x; of several classes, that of the first."""
        return super().sketch_

    @property
    def sketches_(self) -> tuple[Sketch, ...]:
        """One for every row of ``coef_``."""
        return tuple(output.sketch for output in self._fitted.outputs)

    @property
    def error_bound_(self) -> float:
        """The certificate e, of several classes the largest: no direction lost more."""
        return max(sketch.error_bound for sketch in self.sketches_)

    @property
    def sketch_rows_(self) -> int:
        """How many rows the sketches hold, all together."""
        return sum(sketch.row_count for sketch in self.sketches_)

    @property
    def nbytes_(self) -> int:
        """Bytes of every array held."""
        return sum(output.nbytes for output in self._fitted.outputs)

    def regret_bound(self, norm: float) -> float:
        """What the losses so far exceed, at most, those of any fixed weights of that norm or less.

        Losses are those of the margins before each row was learned, within the bound; of several classes,
        their sum. The fixed weights (for each class) have margins within the bound too. It is what the rows
        seen made of the theorem in docs/beyond-linear.md, with the sketch's error in it. Raises
        ``InputError`` if ``curvature`` is a number that was above the curvature of the loss in some round.
        """
        norm = check_real("norm", norm, at_least=0.0)
        return math.fsum(output.regret_bound(norm) for output in self._fitted.outputs)


class SketchedNewtonClassifier(ClassifierMixin, SketchedNewton):
    """Logistic regression in one pass by sketched online Newton steps. There is no learning rate to tune.

    After every row, w moves by -(A + g g' sigma)^-1 g. A is the matrix of all gradients so far, weighted by
    the curvature of the loss, and is kept as a sketch: O(r · n_features) per row with r sketch rows. Several
    classes are learned one against the rest, in one pass, each with its own sketch. Rows are learned from
    once, in their order, so shuffle them if they are sorted.

    Parameters
    ----------
    alpha : float, default=0.1
        The ridge with which A starts, for rows of length about 1. The first steps are 1/alpha long.
    sketch : str or callable, default="adaptive"
        The kind of sketch: "adaptive", "dbs" (dyadic blocks), "fd" (Frequent Directions), "exact"
        (O(n_features²)), or another kind by its name. Or a callable that makes one from its dim.
    size : int, default=None
        The sketch size: the smallest one for "adaptive", that of the first block for "dbs". None: the default
        of the sketch.
    epsilon : float, default=None
        The largest ``error_bound_`` allowed, for "adaptive" and "dbs". None: 1.25·alpha.
    compensation : float, default=1.0
        The share of the error that counts as alpha. 1: A never decreases, so steps in lost directions stay
        short. 0: Luo et al. 2016. 0.5: RFD (Luo et al. 2019).
    bound : float, default=5.0
        C: margins (log-odds) are clipped to [-C, C] before each step, and for probabilities. With a smaller
        bound the loss curves more, and learning is faster at first.
    curvature : str or float, default="local"
        "local": the largest curvature that the loss allows at each margin. "uniform": one constant for all
        margins within the bound, about exp(-C), as in the paper. Or a number, the constant itself. A number
        above the curvature of the loss makes steps shorter, but voids the theorem: ``regret_bound`` raises.
    fit_intercept : bool, default=True
        Whether to add a constant feature 1. alpha applies to it as to the others.

    Attributes
    ----------
    coef_ : ndarray of shape (1 or n_classes, n_features_in_)
        The weights.
    intercept_ : ndarray of shape (1 or n_classes,)
        The margins if all features are zero.
    classes_ : ndarray of shape (n_classes,)
        The labels.
    error_bound_ : float
        The error bound e of the sketch; the largest one if there are several.
    sketch_rows_, nbytes_ : int
        The number of rows in the sketches, and the bytes of all arrays.
    n_features_in_, n_samples_seen_ : int
        The number of features, and of rows seen.

    Notes
    -----
    ``partial_fit`` takes ``sample_weight``: the loss of a row is multiplied by it, in one longer step. This
    is not the same as repeating the row, which scikit-learn expects of ``fit``. So ``fit`` has no weights.

    Examples
    --------
    >>> random = np.random.default_rng(0)
    >>> X = random.standard_normal((500, 8))
    >>> y = np.where(X @ np.arange(8.0) > 3.0, "yes", "no")
    >>> model = SketchedNewtonClassifier()
    >>> for rows, labels in zip(np.array_split(X, 5), np.array_split(y, 5)):
    ...     model = model.partial_fit(rows, labels, classes=["no", "yes"])
    >>> bool(model.score(X, y) > 0.95), model.predict(X[:2]).tolist() == y[:2].tolist()
    (True, True)

    """

    def __init__(
        self,
        alpha: float = 0.1,
        *,
        sketch: Choice = "adaptive",
        size: int | None = None,
        epsilon: float | None = None,
        compensation: float = 1.0,
        bound: float = 5.0,
        curvature: Curvature = "local",
        fit_intercept: bool = True,
    ) -> None:
        super().__init__(
            alpha,
            sketch=sketch,
            size=size,
            epsilon=epsilon,
            compensation=compensation,
            bound=bound,
            curvature=curvature,
            fit_intercept=fit_intercept,
        )

    def fit(self, X: MatrixLike, y: VectorLike) -> Self:
        """Learn from X, (n_samples, n_features), dense or sparse, and y. Earlier data are forgotten."""
        X, y = self._checked(X, y, reset=True)
        check_classification_targets(y)
        learned = self._begin(X.shape[1], np.unique(y))
        return self._learn(learned, X, _one_against_rest(y, learned.classes), np.ones(len(y)))

    def partial_fit(
        self, X: MatrixLike, y: VectorLike, classes: VectorLike = None, sample_weight: VectorLike = None
    ) -> Self:
        """Learn from further rows. The first call needs ``classes``, all labels that will occur."""
        first = not self.__sklearn_is_fitted__()
        X, y = self._checked(X, y, reset=first)
        check_classification_targets(y)
        weights = _read_weights(sample_weight, len(y))
        learned = self._learned_so_far(X.shape[1], classes)
        return self._learn(learned, X, _one_against_rest(y, learned.classes), weights)

    def _learned_so_far(self, dim: int, classes: VectorLike) -> LearnedNewton:
        given = None if classes is None else np.unique(np.asarray(classes))
        if not self.__sklearn_is_fitted__():
            if given is None:
                raise InputError("classes must be given with the first partial_fit: all possible labels")
            return self._begin(dim, given)
        learned = self._learned
        if given is not None and not np.array_equal(given, learned.classes):
            raise InputError(f"classes are {learned.classes.tolist()} so far, got {given.tolist()}")
        return learned

    def _begin(self, dim: int, classes: AnyArray) -> LearnedNewton:
        if len(classes) == 0:
            raise InputError("classes is empty; give all possible labels")
        if len(classes) == 1:
            raise InputError(f"a classifier needs two classes or more, got 1 class: {classes.tolist()}")
        check_real("bound", self.bound, above=0.0, at_most=_MOST_BOUND)
        return self._start(dim, LogisticLoss(), 1 if len(classes) == 2 else len(classes), classes)

    def decision_function(self, X: MatrixLike) -> Vector | Matrix:
        """The margins x'w: (n_samples,) for the second class, or (n_samples, n_classes)."""
        margins = self._margins(X)
        return margins[:, 0] if margins.shape[1] == 1 else margins

    def predict(self, X: MatrixLike) -> AnyArray:
        """Predict the most likely labels."""
        margins = self._margins(X)
        chosen = margins[:, 0] > 0.0 if margins.shape[1] == 1 else margins.argmax(axis=1)
        return self.classes_[np.asarray(chosen, dtype=np.intp)]

    def predict_proba(self, X: MatrixLike) -> Matrix:
        """Probabilities of the classes, (n_samples, n_classes), from margins clipped to the bound."""
        chances: Matrix = expit(self._bounded_margins(X))
        if chances.shape[1] == 1:
            return np.hstack([1.0 - chances, chances])
        return chances / chances.sum(axis=1, keepdims=True)

    @property
    def classes_(self) -> AnyArray:
        """The labels."""
        return self._fitted.classes

    @property
    def coef_(self) -> Matrix:
        """The weights, a copy."""
        return self._fitted.coef.copy()

    @property
    def intercept_(self) -> Vector:
        """The margins if all features are zero."""
        return self._fitted.intercept


class SketchedNewtonRegressor(RegressorMixin, SketchedNewton):
    """Linear regression in one pass by sketched online Newton steps.

    With curvature "local", no bound and a sketch that loses nothing, this is recursive least squares: after
    every row, ridge regression on all rows so far. ``SketchedRidge`` gives the same result, faster for
    batches. This estimator predicts each row before learning from it, with a bound on its regret.

    Parameters
    ----------
    alpha : float, default=1.0
        The ridge parameter, also for the intercept.
    sketch, size, epsilon, compensation, fit_intercept
        As for ``SketchedNewtonClassifier``.
    bound : float, default=None
        C: predictions are clipped to [-C, C]. None: no clipping.
    curvature : str or float, default="local"
        "local": that of the squared loss. "uniform": 1/(2C)², as in the paper; then targets must be within
        the bound. Or a number; ``regret_bound`` raises if it was above the curvature of the loss.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features_in_,)
        The weights.
    intercept_ : float
        The prediction if all features are zero.
    error_bound_, sketch_rows_, nbytes_, n_features_in_, n_samples_seen_
        As for ``SketchedNewtonClassifier``.

    Examples
    --------
    >>> random = np.random.default_rng(0)
    >>> X = random.standard_normal((500, 8))
    >>> y = X @ np.arange(1.0, 9.0) + 2.0
    >>> model = SketchedNewtonRegressor(alpha=1e-3).fit(X, y)
    >>> model.coef_.round(1).tolist(), round(model.intercept_, 1)
    ([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0], 2.0)

    """

    def fit(self, X: MatrixLike, y: VectorLike) -> Self:
        """Learn from X, (n_samples, n_features), dense or sparse, and y. Earlier data are forgotten."""
        X, y = self._checked(X, y, reset=True, y_numeric=True)
        return self._learn_targets(self._start(X.shape[1], SquaredLoss()), X, y, np.ones(len(y)))

    def partial_fit(self, X: MatrixLike, y: VectorLike, sample_weight: VectorLike = None) -> Self:
        """Learn from further rows."""
        first = not self.__sklearn_is_fitted__()
        X, y = self._checked(X, y, reset=first, y_numeric=True)
        weights = _read_weights(sample_weight, len(y))
        learned = self._start(X.shape[1], SquaredLoss()) if first else self._learned
        return self._learn_targets(learned, X, y, weights)

    def _learn_targets(self, learned: LearnedNewton, X: Rows, y: AnyArray, weights: Vector) -> Self:
        targets = np.asarray(y, dtype=np.float64)[:, np.newaxis]
        newton = learned.outputs[0]
        largest = float(np.abs(targets).max())
        if newton.sigma is not None and largest > newton.bound:
            raise InputError(
                f"y has entries up to {largest:g}, but a constant curvature is for targets within "
                f"bound={newton.bound:g}: raise the bound, rescale y, or take curvature='local'"
            )
        return self._learn(learned, X, targets, weights)

    def predict(self, X: MatrixLike) -> Vector:
        """The targets of X, (n_samples,), within the bound."""
        predicted: Vector = self._bounded_margins(X)[:, 0]
        return predicted

    @property
    def coef_(self) -> Vector:
        """The weights, a copy."""
        return self._fitted.coef[0].copy()

    @property
    def intercept_(self) -> float:
        """What is predicted where all features are zero."""
        return float(self._fitted.intercept[0])


def _one_against_rest(y: AnyArray, classes: AnyArray) -> Matrix:
    """1 where the label is that of the column, else -1; two classes share one column, of the second."""
    unknown = ~np.isin(y, classes)
    if unknown.any():
        raise InputError(
            f"label {y[unknown][0]!r} is none of the classes {classes.tolist()}; give all of them first"
        )
    columns = classes[1:] if len(classes) == 2 else classes
    return np.where(y[:, np.newaxis] == columns, 1.0, -1.0)


def _read_weights(sample_weight: VectorLike, count: int) -> Vector:
    """One finite weight a row, none negative; 1 by default."""
    if sample_weight is None:
        return np.ones(count)
    try:
        weights = np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputTypeError(f"sample_weight must be numbers: {error}") from None
    if weights.ndim == 0:
        weights = np.full(count, weights)
    if weights.shape != (count,):
        raise InputError(f"{count} rows need as many weights, got sample_weight of shape {weights.shape}")
    bad = weights[~(np.isfinite(weights) & (weights >= 0.0))]
    if len(bad):
        raise InputError(f"sample_weight contains {bad[0]}; weights must be finite and not negative")
    return weights
