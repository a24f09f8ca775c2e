"""What the online Newton estimators have in common: their settings, and what they tell."""

import math
from typing import Any, Literal

import numpy as np
from sklearn.utils.validation import check_is_fitted, validate_data

from sketchbandit.arrays import Matrix, Vector
from sketchbandit.errors import InputError, InputTypeError
from sketchbandit.sketch import Sketch
from sketchbandit.sketch.checks import check_compensation, check_count, check_real
from sketchbandit.sklearn.losses import Loss
from sketchbandit.sklearn.newton_learning import LearnedNewton
from sketchbandit.sklearn.online_newton import OnlineNewton
from sketchbandit.sklearn.sketches import Choice, make_sketch
from sketchbandit.sklearn.streaming import StreamingEstimator

Curvature = Literal["local", "uniform"] | float

_SHORT_NAMES = {"dbs": "dyadic-block", "fd": "frequent-directions"}
_EPSILON = 1.25  # of alpha: sqrt(1 + e/alpha) <= 1.5, as for sb.adaptive


class SketchedNewton(StreamingEstimator):
    """What both have in common."""

    alpha: float
    sketch: Choice
    size: int | None
    epsilon: float | None
    compensation: float
    bound: Any
    curvature: Curvature
    fit_intercept: bool

    def _start(self, dim: int, loss: Loss, outputs: int, classes: Any = None) -> LearnedNewton:
        """Nothing learned yet; settings are looked at here, as scikit-learn wants it."""
        alpha = check_real("alpha", self.alpha, above=0.0)
        bound = math.inf if self.bound is None else check_real("bound", self.bound, above=0.0)
        sigma = self._sigma(loss, bound)
        fit_intercept = bool(self.fit_intercept)
        made = [
            OnlineNewton(self._sketch(dim + fit_intercept, alpha), alpha, loss, bound=bound, sigma=sigma)
            for _ in range(outputs)
        ]
        return LearnedNewton(made, fit_intercept=fit_intercept, classes=classes)

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
        return loss.uniform(bound) if self.curvature == "uniform" else self._number()

    def _number(self) -> float:
        return check_real("curvature", self.curvature, above=0.0)

    def _sketch(self, dim: int, alpha: float) -> Sketch:
        size = None if self.size is None else check_count("size", self.size, at_least=2)
        epsilon = _EPSILON * alpha if self.epsilon is None else check_real("epsilon", self.epsilon, above=0.0)
        choice = _SHORT_NAMES.get(self.sketch, self.sketch) if isinstance(self.sketch, str) else self.sketch
        if choice == "dyadic-block":
            epsilon /= 2.0  # the certificate of its blocks is at most twice that
        return make_sketch(choice, dim, size, check_compensation(self.compensation), epsilon)

    def _read(self, X: Any, y: Any, *, reset: bool, **options: Any) -> tuple[Any, Any]:
        X, y = validate_data(
            self, X, y, accept_sparse="csr", dtype=[np.float64, np.float32], reset=reset, **options
        )
        return X, y

    def _margins(self, X: Any) -> Matrix:
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=False)
        learned: LearnedNewton = self._fitted
        return learned.margins(X)

    def _bounded_margins(self, X: Any) -> Matrix:
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
        return float(self._fitted.error_bound)

    @property
    def sketch_rows_(self) -> int:
        """How many rows the sketches hold, all together."""
        return int(self._fitted.row_count)

    @property
    def nbytes_(self) -> int:
        """Bytes of every array held."""
        return int(self._fitted.nbytes)

    def regret_bound(self, norm: float) -> float:
        """What the losses so far exceed, at most, those of any fixed weights of that norm or less.

        Losses are those of the margins before each row was learned, within the bound; of several classes,
        their sum. The fixed weights (for each class) have margins within the bound too. It is what the rows
        seen made of the theorem in docs/beyond-linear.md, with the sketch's error in it. Raises
        ``InputError`` if ``curvature`` is a number that was above the curvature of the loss in some round.
        """
        return float(self._fitted.regret_bound(check_real("norm", norm, at_least=0.0)))


def read_weights(sample_weight: Any, count: int) -> Vector:
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
