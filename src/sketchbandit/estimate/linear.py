"""Ridge regression: theta = A^-1 b."""

import math
from typing import Any

import numpy as np

from sketchbandit.arms import Arms, Scan, SparseArms
from sketchbandit.arrays import Arrays, Matrix, Scalars, Vector
from sketchbandit.estimate.base import Estimate
from sketchbandit.linalg import AnyVector, SparseVector, add_multiple, dot
from sketchbandit.precision import Leverage, LowRankInverse, Precision, Step

_MOST_THETA = 1e300  # limit for the sum of |reward|·|arm| / ridge, which bounds theta: no overflow


class Linear(Estimate):
    """Linear rewards: the mean reward is x'theta, with theta = A^-1 b and b the sum of reward·x.

    This is ridge regression, the default reward model. theta moves by one Sherman-Morrison step per round. If
    arms are sparse, W S b is kept instead of theta, so that a round touches nothing of length dim.

    Examples
    --------
    >>> import sketchbandit as sb
    >>> policy = sb.oful(2, rewards=sb.Linear())
    >>> policy.update([1.0, 0.0], 1.0)
    >>> policy.theta
    array([0.5, 0. ])

    """

    kind = "linear"

    def bind(self, precision: Precision) -> None:
        """Start with nothing learned."""
        super().bind(precision)
        self.b: Vector = np.zeros(precision.sketch.dim)
        self._is_plain = type(self).scan is Linear.scan  # False in subclasses with other means
        self._is_sparse = False  # whether W S b is kept rather than theta
        self.kept_theta: Vector | None = np.zeros_like(self.b)
        """theta after the last step, unless W S b is kept instead."""
        self._weights: Vector | None = None  # W S b
        self._theta_for_now: Vector | None = None  # if W S b is kept: valid until the next row
        self._seen_rebuilds = precision.rebuilds
        self.most_reward_mass = _MOST_THETA * min(1.0, precision.ridge)

    # -- what it tells ------------------------------------------------------------------------------

    @property
    def theta(self) -> Vector:
        """A^-1 b."""
        self.sync()
        if self.kept_theta is not None:
            return self.kept_theta
        if self._theta_for_now is None:
            self._theta_for_now = self.precision.apply(self.b)
        return self._theta_for_now

    @property
    def linear_theta(self) -> Vector | None:
        """theta, if it is kept and means are x'theta; else None."""
        precision = self.precision
        if (
            precision.sketch.tally.version != precision.seen_version
            or precision.rebuilds != self._seen_rebuilds
        ):
            self.sync()
        return self.kept_theta if self._is_plain else None

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays held."""
        held = (self.b, self.kept_theta, self._weights, self._theta_for_now)
        return sum(array.nbytes for array in held if array is not None)

    def scan(self, arms: Arms) -> Scan:
        """Means and norms: one pass over dense arms; for sparse arms, their columns of S."""
        self.sync()
        inverse = self.precision.inverse
        if (
            isinstance(arms, SparseArms)
            and self._weights is not None
            and isinstance(inverse, LowRankInverse)
            and arms.nonzeros < len(self.b)
        ):
            means, products = inverse.means_of_sparse(arms, self._weights, self.b)
            return Scan(arms, means, arms.norms_sq(), products)
        return super().scan(arms)

    # -- learning -----------------------------------------------------------------------------------

    def prepare(self, x: AnyVector) -> None:
        """Keep theta up to date from now on, or W S b if arms are sparse."""
        precision = self.precision
        if (  # the fast path
            precision.sketch.tally.version != precision.seen_version
            or precision.rebuilds != self._seen_rebuilds
        ):
            self.sync()
        is_sparse = isinstance(x, SparseVector)
        if is_sparse is not self._is_sparse:
            self._is_sparse = is_sparse
            self._derive()

    def predict(self, x: AnyVector, leverage: Leverage) -> float:
        """x'theta as of ``prepare``, even if the sketch has taken x since. It uses W S b if that is kept."""
        if not self._is_plain:
            return math.nan
        with np.errstate(over="ignore", invalid="ignore"):
            if self._weights is None:
                return math.nan if self.kept_theta is None else dot(self.kept_theta, x)
            seen = float(self._weights @ leverage.seen)
            return (dot(self.b, x) - seen) / self.precision.inverse.shift

    def learn(self, x: AnyVector, reward: float, step: Step | None) -> None:
        """Update b, and theta by Sherman-Morrison: theta += A^-1 x (reward - x'theta) / (1 + x'A^-1 x)."""
        self._theta_for_now = None
        if step is None:
            add_multiple(self.b, reward, x)
        elif self._weights is not None:
            add_multiple(self.b, reward, x)
            seen = step.leverage.seen
            self._weights += reward * seen
            last = (dot(self.b, x) - float(self._weights @ seen)) / step.pivot
            self._weights = np.append(self._weights, last)
        else:
            self._move(x, reward, step)

    def _move(self, x: AnyVector, reward: float, step: Step) -> None:
        assert self.kept_theta is not None  # noqa: S101  (for the type checker)
        with np.errstate(over="ignore", invalid="ignore"):
            error = reward - dot(self.kept_theta, x)
        add_multiple(self.b, reward, x)
        if math.isfinite(error):
            self.kept_theta += error * self.gain(x, step)
        else:
            self._seen_rebuilds = -1  # theta is computed from b when it is asked for

    def learn_many(self, rows: Matrix, rewards: Vector) -> None:
        """Learn from many rewards, after the precision was computed again from all arms."""
        self.b += rewards @ rows

    def forget(self, factor: float) -> None:
        """Multiply b by the factor. theta follows when it is computed again."""
        self.b *= factor

    def add(self, other: "Linear") -> None:
        """Add the other b to this b."""
        self.b += other.b
        self._derive()

    # -- in step with the precision -------------------------------------------------------------------

    def sync(self) -> None:
        """Compute theta again if the precision was."""
        precision = self.precision
        if precision.sketch.tally.version != precision.seen_version:
            precision.rebuild()
        if precision.rebuilds != self._seen_rebuilds:
            self._derive()

    def _derive(self) -> None:
        self.kept_theta = self._weights = self._theta_for_now = None
        inverse = self.precision.inverse
        if self._is_sparse and isinstance(inverse, LowRankInverse):
            self._weights = inverse.weights(self.b)
        else:
            self.kept_theta = self.precision.apply(self.b)
        self._seen_rebuilds = self.precision.rebuilds

    # -- files --------------------------------------------------------------------------------------

    def dump(self) -> tuple[Scalars, Arrays]:
        """JSON values and arrays that ``restore`` turns into the same estimate, to the bit."""
        self.sync()
        vectors = {"b": self.b, "theta": self.kept_theta, "weights": self._weights}
        arrays: dict[str, Any] = {name: vector for name, vector in vectors.items() if vector is not None}
        return {"is_sparse": self._is_sparse}, arrays

    def restore(self, scalars: Scalars, arrays: Arrays) -> None:
        """Restore what ``dump`` returned."""
        self.b = arrays["b"]
        self._is_sparse = bool(scalars["is_sparse"])
        self.kept_theta, self._weights = arrays.get("theta"), arrays.get("weights")
        if self.kept_theta is None and self._weights is None:  # a file of 0.7
            self._derive()
