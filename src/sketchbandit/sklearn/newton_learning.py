"""What the online Newton estimators learn: one weight vector per output, in one pass over the rows."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse

from sketchbandit.arrays import Matrix, Vector
from sketchbandit.errors import InputError
from sketchbandit.linalg import AnyVector, SparseVector, inner, row_norms_sq
from sketchbandit.sketch import Sketch
from sketchbandit.sketch.rows import row_source
from sketchbandit.sklearn.online_newton import OnlineNewton

_LONGEST = 1e150  # a margin whose square does not overflow


class LearnedNewton:
    """One OnlineNewton per output. Rows may have a constant 1 after their features."""

    def __init__(self, outputs: list[OnlineNewton], *, fit_intercept: bool, classes: Any = None) -> None:
        self.outputs = outputs
        self.classes = classes
        self.count = 0
        self._fit_intercept = fit_intercept
        self._reach = 0.0  # an upper bound on |w|

    @property
    def sketch(self) -> Sketch:
        """The sketch of the first output."""
        return self.outputs[0].sketch

    @property
    def thetas(self) -> Matrix:
        """All weights, (outputs, features), with that of the intercept last."""
        return np.stack([output.theta for output in self.outputs])

    def update(self, X: Any, targets: Matrix, weights: Vector) -> None:
        """Learn from rows, dense or CSR, with a target per output, (n, outputs)."""
        reach = self._checked(X, targets, weights)  # nothing is refused after this
        for x, row_targets, weight in zip(self._rows(X), targets.tolist(), weights.tolist(), strict=True):
            for output, y in zip(self.outputs, row_targets, strict=True):
                output.learn(x, y, weight)
        self.count += len(targets)
        self._reach = reach

    def _checked(self, X: Any, targets: Matrix, weights: Vector) -> float:
        """Raise if something would overflow. Return an upper bound on |w| after these rows."""
        first = self.outputs[0]
        with np.errstate(over="ignore"):
            if sparse.issparse(X):
                norms_sq = np.asarray(X.astype(np.float64).power(2).sum(axis=1)).ravel()
            else:
                norms_sq = row_norms_sq(X)
            norms_sq = norms_sq + self._fit_intercept
            slope = first.loss.most_slope(first.bound, float(np.abs(targets).max()))
            omega = first.loss.most_weight if first.sigma is None else first.sigma * slope**2
            added = omega * inner(weights, norms_sq)
            norms = np.sqrt(norms_sq)
            reach = self._reach + slope * inner(weights, norms) / min(1.0, first.precision.ridge)
            longest = reach * max(1.0, float(norms.max()))
        for output in self.outputs:
            output.sketch.row_stats.check(added)
        if not longest < _LONGEST:
            raise InputError(
                f"rows of length up to {norms.max():g}, targets up to {np.abs(targets).max():g} and weights "
                f"up to {weights.max():g} overflow a squared margin; rescale them"
            )
        return reach

    def _rows(self, X: Any) -> Iterator[AnyVector]:
        """Yield one row after another, sparse ones as they are, with the constant at the end."""
        if sparse.issparse(X):
            yield from self._sparse_rows(row_source(X, X.shape[1]))
            return
        for row in X:
            wide = row.astype(np.float64)
            yield np.append(wide, 1.0) if self._fit_intercept else wide

    def _sparse_rows(self, X: Any) -> Iterator[SparseVector]:
        values = X.data.astype(np.float64, copy=False)
        for start, stop in zip(X.indptr[:-1].tolist(), X.indptr[1:].tolist(), strict=True):
            if self._fit_intercept:
                indices = np.append(X.indices[start:stop], X.shape[1])
                yield SparseVector(indices, np.append(values[start:stop], 1.0))
            else:
                yield SparseVector(X.indices[start:stop], values[start:stop])

    # -- what it tells ------------------------------------------------------------------------------

    @property
    def coef(self) -> Matrix:
        """The weights without that of the intercept."""
        thetas = self.thetas
        return thetas[:, :-1] if self._fit_intercept else thetas

    @property
    def intercept(self) -> Vector:
        """The intercept of every output; zero if there is none."""
        return np.array([output.theta[-1] if self._fit_intercept else 0.0 for output in self.outputs])

    def margins(self, X: Any) -> Matrix:
        """X w plus the intercept, (n, outputs), without clipping."""
        return np.asarray(X @ self.coef.T) + self.intercept

    @property
    def error_bound(self) -> float:
        """The largest error bound of the sketches."""
        return max(output.sketch.error_bound for output in self.outputs)

    @property
    def row_count(self) -> int:
        """The number of rows in all sketches."""
        return sum(output.sketch.row_count for output in self.outputs)

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays held."""
        return sum(output.nbytes for output in self.outputs)

    def regret_bound(self, norm: float) -> float:
        """The regret bound, summed over all outputs."""
        return math.fsum(output.regret_bound(norm) for output in self.outputs)
