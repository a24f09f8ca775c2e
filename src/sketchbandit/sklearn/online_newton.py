"""Online Newton steps on a sketch: a weight vector for each output, updated by one row after another.

They ask losses l(z, y) of a margin z how much they curve. A loss has the curvature sigma at z, on the
interval [-C, C], if for every b of it

    l(b) >= l(z) + l'(z) (b - z) + sigma/2 · (l'(z) (b - z))²        (Luo et al. 2016, Assumption 2).

The largest such sigma at one z, times l'(z)², is what ``local`` tells: the weight of x x' in the matrix of
that round. The least of all z and y is the constant that ``uniform`` bounds from below.
"""

import math
from collections.abc import Iterator
from typing import Protocol

import numpy as np
from scipy import sparse

from sketchbandit.arrays import AnyArray, Matrix, Rows, Vector
from sketchbandit.errors import InputError
from sketchbandit.linalg import (
    AnyVector,
    SparseVector,
    add_multiple,
    as_dense,
    dot,
    inner,
    length_of,
    row_norms_sq,
)
from sketchbandit.precision import Leverage, Precision, take_weighted
from sketchbandit.sketch import Sketch
from sketchbandit.sketch.row_input import row_source

_NEAR = 1e-4  # if b - z is smaller, the ratio is computed from its series


class Loss(Protocol):
    """A convex function of the margin."""

    most_weight: float
    """An upper bound on ``local``."""

    def slope(self, z: float, y: float) -> float:
        """l'(z)."""

    def local(self, z: float, bound: float) -> float:
        """The minimum of 2 (l(b) - l(z) - l'(z)(b - z)) / (b - z)² over b within the bound C."""

    def uniform(self, bound: float) -> float:
        """A sigma valid for all z, b and y within the bound C."""

    def most_slope(self, bound: float, largest: float) -> float:
        """An upper bound on |l'|, if |z| is within the bound and |y| is at most ``largest``."""


class SquaredLoss:
    """(z - y)²/2. Its curvature is constant: with ``local``, online Newton is recursive least squares."""

    most_weight = 1.0

    def slope(self, z: float, y: float) -> float:
        """z - y."""
        return z - y

    def local(self, z: float, bound: float) -> float:
        """1: sigma is 1/(z - y)²."""
        del z, bound
        return 1.0

    def uniform(self, bound: float) -> float:
        """1/(2C)², for |z - y| <= 2C."""
        return 0.25 / bound**2

    def most_slope(self, bound: float, largest: float) -> float:
        """The bound for margins within the bound; without one, for the margins at the start."""
        return largest + (bound if math.isfinite(bound) else 0.0)


class LogisticLoss:
    """ln(1 + exp(-y z)), y = -1 or 1.

    Examples
    --------
    >>> loss = LogisticLoss()
    >>> round(loss.local(0.0, bound=1e-6), 6), round(loss.local(0.0, bound=5.0), 3)
    (0.25, 0.145)

    """

    most_weight = 0.25

    def slope(self, z: float, y: float) -> float:
        """-y / (1 + exp(y z))."""
        return -y / (1.0 + math.exp(y * z))

    def local(self, z: float, bound: float) -> float:
        """At b = -C or C: as a function of b, the mean of l'' between z and b rises, and then falls.

        The ratio is the mean of l'' over the way from z to b, with weights 2(1 - s) at the part s of it, and
        l'' rises up to 0 and falls from there.
        """
        return min(_mean_curvature(z, -bound - z), _mean_curvature(z, bound - z))

    def uniform(self, bound: float) -> float:
        """2 gamma (U - ln(1 + U)) / U², gamma = exp(-C), U = 2 C gamma.

        exp(-gamma l) is concave, for l''/l'² = exp(y z) >= gamma. So l(b) >= l(z) - ln(1 - u)/gamma with
        u = gamma l'(z)(b - z) >= -U, and (-ln(1 - u) - u)/u² grows with u.
        """
        gamma = math.exp(-bound)
        U = 2.0 * bound * gamma
        share = 0.5 - U / 3.0 if U < _NEAR else (U - math.log1p(U)) / U**2
        return 2.0 * gamma * share

    def most_slope(self, bound: float, largest: float) -> float:
        """1."""
        del bound, largest
        return 1.0


def _mean_curvature(z: float, h: float) -> float:
    """2 (l(z + h) - l(z) - l'(z) h) / h² of the logistic loss, whatever the label.

    With p = 1/(1 + exp(-z)) the numerator is 2 (ln(1 + p (exp(h) - 1)) - p h); at -z and -h it is the same.
    """
    if z > 0.0:
        z, h = -z, -h  # then p is small, and nothing cancels
    e = math.exp(z)
    p = e / (1.0 + e)
    if abs(h) < _NEAR:
        return p * (1.0 - p) * (1.0 + (1.0 - 2.0 * p) * h / 3.0)
    return 2.0 * (math.log1p(p * math.expm1(h)) - p * h) / h**2


_DIGITS = 1e-3  # the relative accuracy to which x'A^-1 x must be known
_ROUNDING = 1e-9  # by which a constant curvature may exceed that of the loss
_LONGEST = 1e150  # a margin whose square does not overflow


class OnlineNewton:
    """Sketched online Newton (Luo, Agarwal, Cesa-Bianchi, Langford 2016, Alg. 1) with a certified sketch.

    With A = (alpha + c·e) I + S'S, S the sketch of the rows sqrt(omega) x so far, a round with x and y is

        z      = x'w, brought into [-C, C] by the least step in the norm of A: along A^-1 x,
        w      = w - l'(z) (A + omega x x')^-1 x,      omega = sigma·l'(z)², sigma the curvature at z,
        S      takes sqrt(omega) x, and may shrink after that.

    Both steps are along A^-1 x, so that a round costs O(r·d). ``docs/beyond-linear.md`` has the regret.

    Parameters
    ----------
    sketch : Sketch
        A fresh one.
    alpha : float
        The ridge.
    loss : Loss
        Of the margins.
    bound : float
        C; inf: margins are as they come.
    sigma : float
        A constant curvature; None: the largest that the loss has at the margin of the round. With a constant
        above that, the steps are made, but there is no ``regret_bound``.

    Examples
    --------
    >>> from sketchbandit import ExactSketch
    >>> from sketchbandit.sklearn.online_newton import SquaredLoss
    >>> newton = OnlineNewton(ExactSketch(2), 1.0, SquaredLoss())
    >>> newton.learn(np.array([1.0, 0.0]), 3.0)  # least squares with a ridge of 1
    >>> newton.theta.tolist()
    [1.5, 0.0]

    """

    def __init__(
        self, sketch: Sketch, alpha: float, loss: Loss, *, bound: float = math.inf, sigma: float | None = None
    ) -> None:
        self.precision = Precision(sketch, alpha)
        self.loss = loss
        self.bound = bound
        self.sigma = sigma
        self.theta = np.zeros(sketch.dim)
        """w, before it is projected for the next row."""
        self.spent = 0.0
        """The sum of g'(A + omega x x')^-1 g over all rounds. Half of it is in the regret bound."""
        self._excess = 0.0  # the largest ratio of sigma to the curvature of the loss; 0 if never above 1
        self._raised = np.zeros(3)  # sums of a, a |w| and a |w|², where a was added to the diagonal of A

    @property
    def sketch(self) -> Sketch:
        """The sketch of the rows sqrt(omega) x."""
        return self.precision.sketch

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays held."""
        return self.theta.nbytes + self.precision.nbytes + self.sketch.nbytes

    def regret_bound(self, norm: float) -> float:
        """An upper bound on the regret against any v with |v| <= norm and |x'v| <= C.

        (alpha |v|² + the sum of g'(A + omega x x')^-1 g + the sum of a |w - v|²) / 2: Theorem N1 of
        docs/beyond-linear.md. It needs a sigma that is at most the curvature of the loss, in every round.
        """
        if self._excess:
            raise InputError(
                f"no theorem bounds the regret with curvature={self.sigma:g}: in one round it is "
                f"{self._excess:.3g} times that of the loss. Use curvature='local', 'uniform' or a smaller "
                "number"
            )
        moved = inner(self._raised, np.array([norm**2, 2.0 * norm, 1.0]))
        return 0.5 * (self.precision.ridge * norm**2 + self.spent + moved)

    def learn(self, x: AnyVector, y: float, weight: float = 1.0) -> None:
        """Learn from one checked row and its target. The loss is multiplied by ``weight``."""
        values = x.values if isinstance(x, SparseVector) else x
        norm_sq = inner(values, values)
        if not norm_sq * weight:
            return  # no direction, or nothing to learn
        with self.sketch._lock:
            leverage = self.precision.leverage(x, norm_sq)
            quadratic = self.precision.inverse.quadratic(leverage, norm_sq)
            margin = dot(self.theta, x)
            z = min(max(margin, -self.bound), self.bound)
            slope = weight * self.loss.slope(z, y)
            omega = weight * self._omega(z, y)
            # (A + omega x x')^-1 x = A^-1 x / (1 + omega x'A^-1 x)
            within = quadratic / (1.0 + omega * quadratic)
            by = (margin - z) + slope * within  # the projection to [-C, C], and the Newton step
            self._move(x, norm_sq, leverage, quadratic=quadratic, by=by)
            self.spent += slope * within * slope
            shift = self.precision.shift
            row = as_dense(x, self.sketch.dim).astype(self.sketch.dtype, copy=False)[np.newaxis]
            take_weighted(self.precision, x, row, norm_sq, weight=omega, leverage=leverage)
            if self.precision.shift > shift:
                reach = length_of(self.theta)
                self._raised += (self.precision.shift - shift) * np.array([1.0, reach, reach**2])

    def _move(self, x: AnyVector, norm_sq: float, leverage: Leverage, *, quadratic: float, by: float) -> None:
        """Lower the margin x'w along A^-1 x."""
        if not by:
            return
        image = self.precision.image(x, leverage)
        if abs(dot(image, x) - quadratic) < _DIGITS * quadratic:
            self.theta -= (by / quadratic) * image
        else:  # for rows so long that rounding has destroyed A^-1: the same margin by the shortest way
            add_multiple(self.theta, -by / norm_sq, x)

    def _omega(self, z: float, y: float) -> float:
        """sigma·l'(z)²."""
        most = self.loss.local(z, self.bound)
        if self.sigma is None:
            return most
        slope = self.loss.slope(z, y)
        omega = self.sigma * slope * slope
        if omega > (1.0 + _ROUNDING) * most:
            self._excess = max(self._excess, omega / most)
        return omega


class LearnedNewton:
    """One OnlineNewton per output. Rows may have a constant 1 after their features."""

    def __init__(self, outputs: list[OnlineNewton], classes: AnyArray, *, fit_intercept: bool) -> None:
        self.outputs = outputs
        self.classes = classes
        self.count = 0
        self._fit_intercept = fit_intercept
        self._reach = 0.0  # an upper bound on |w|

    @property
    def sketch(self) -> Sketch:
        """The sketch of the first output."""
        return self.outputs[0].sketch

    def update(self, X: Rows, targets: Matrix, weights: Vector) -> None:
        """Learn from rows, dense or CSR, with a target per output, (n, outputs)."""
        reach = self._checked(X, targets, weights)  # nothing is refused after this
        for x, row_targets, weight in zip(self._rows(X), targets.tolist(), weights.tolist(), strict=True):
            for output, y in zip(self.outputs, row_targets, strict=True):
                output.learn(x, y, weight)
        self.count += len(targets)
        self._reach = reach

    def _checked(self, X: Rows, targets: Matrix, weights: Vector) -> float:
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

    def _rows(self, X: Rows) -> Iterator[AnyVector]:
        """Yield one row after another, sparse ones as they are, with the constant at the end."""
        if sparse.issparse(X):
            yield from self._sparse_rows(row_source(X, X.shape[1]))
            return
        for row in X:
            wide = row.astype(np.float64)
            yield np.append(wide, 1.0) if self._fit_intercept else wide

    def _sparse_rows(self, X: Rows) -> Iterator[SparseVector]:
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
        """The weights, (outputs, features), without that of the intercept."""
        thetas = np.stack([output.theta for output in self.outputs])
        return thetas[:, :-1] if self._fit_intercept else thetas

    @property
    def intercept(self) -> Vector:
        """The intercept of every output; zero if there is none."""
        return np.array([output.theta[-1] if self._fit_intercept else 0.0 for output in self.outputs])

    def margins(self, X: Rows) -> Matrix:
        """X w plus the intercept, (n, outputs), without clipping."""
        return np.asarray(X @ self.coef.T) + self.intercept
