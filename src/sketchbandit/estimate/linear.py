"""Ridge regression: theta = A^-1 b."""

import math

import numpy as np

from sketchbandit.arms import Arms, Scan
from sketchbandit.arrays import Arrays, Matrix, Scalars, Vector
from sketchbandit.estimate.base import AffineTheta, Estimate
from sketchbandit.linalg import AnyVector, SparseVector, add_multiple, dot, inner, product
from sketchbandit.precision import Leverage, LinearState, Precision, Step

_MOST_THETA = 1e300  # limit for the sum of |reward|·|arm| / ridge, which bounds theta: no overflow


class Linear(Estimate):
    """Linear rewards: the mean reward is x'theta, with theta = A^-1 b and b the sum of reward·x.

    This is ridge regression, the default reward model. theta moves by one Sherman-Morrison step per round. If
    arms are sparse, W S b is kept instead of theta, so that a round touches nothing of length dim.

    With a baseline m, the mean of the rewards so far, the mean reward is m + x'theta, and theta is what ridge
    regression finds for rewards less m: theta = A^-1 (b - (m - origin)·s). Here b is the sum of
    (reward - origin)·x, s the sum of x, and the origin is the first reward. When m moves, theta moves along
    the image A^-1 s, which takes a Sherman-Morrison step of its own.

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
        dim = precision.sketch.dim
        self.b: Vector = np.zeros(dim)
        self._is_plain = type(self).scan is Linear.scan  # False in subclasses with other means
        self._is_sparse = False  # whether W S b is kept rather than theta
        self.kept_theta: Vector | None = np.zeros_like(self.b)
        """theta for ``kept_level``, unless W S b is kept instead."""
        self.kept_level = 0.0
        """The level of the rewards after the last step."""
        self.sum: Vector = np.zeros(dim if self.reward_scale.baseline else 0)
        """The sum of all arms, s; empty without a baseline."""
        self.image: Vector = np.zeros_like(self.sum)
        """A^-1 s, unless W S s is kept instead; empty without a baseline."""
        self._weights: Vector | None = None  # W S b
        self._sum_weights: Vector = np.zeros(0)  # W S s
        self._theta_for_now: tuple[float, Vector] | None = None  # its level, and theta, until the next row
        self._seen_rebuilds = precision.rebuilds
        self.most_reward_mass = _MOST_THETA * min(1.0, precision.ridge)

    # -- what it tells ------------------------------------------------------------------------------

    @property
    def takes_baseline(self) -> bool:
        """Unless a subclass has other means."""
        return type(self).scan is Linear.scan

    @property
    def level(self) -> float:
        """The mean of the rewards less their origin; 0 without a baseline."""
        return self.reward_scale.shift if self.reward_scale.baseline else 0.0

    @property
    def baseline(self) -> float:
        """The mean of the rewards; 0 without a baseline."""
        return self.reward_scale.origin + self.level

    @property
    def theta(self) -> Vector:
        """A^-1 b for rewards less the baseline."""
        self.sync()
        if self.kept_theta is not None:
            return self._for_level(self.kept_theta)
        level = self.level
        if self._theta_for_now is None or self._theta_for_now[0] != level:
            self._theta_for_now = level, self.precision.apply(self._target(level))
        return self._theta_for_now[1]

    def _for_level(self, theta: Vector) -> Vector:
        """theta for the level of now: that of a ``PerAction`` also moves by rewards of other actions."""
        scale = self.reward_scale
        lag = scale.shift - self.kept_level if scale.baseline else 0.0
        return theta - lag * self.image if lag else theta

    def _target(self, level: float) -> Vector:
        """b for rewards less this level."""
        return self.b - level * self.sum if self.reward_scale.baseline else self.b

    @property
    def linear_theta(self) -> Vector | None:
        """theta, if it is kept and means are x'theta; else None."""
        precision = self.precision
        if (
            precision.sketch.row_stats.version != precision.seen_version
            or precision.rebuilds != self._seen_rebuilds
        ):
            self.sync()
        theta, scale = self.kept_theta, self.reward_scale
        if theta is None or not self._is_plain:
            return None
        return theta if not scale.baseline or scale.shift == self.kept_level else self._for_level(theta)

    @property
    def affine_theta(self) -> AffineTheta | None:
        """theta and its image, if theta is kept and means are x'theta; else None."""
        self.sync()
        if not self._is_plain or self.kept_theta is None:
            return None
        image = self.image if self.reward_scale.baseline else None
        return AffineTheta(self.kept_theta, image, self.kept_level)

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays held."""
        for_now = None if self._theta_for_now is None else self._theta_for_now[1]
        optional = (self.kept_theta, self._weights, for_now)
        held = (self.b, self.sum, self.image, self._sum_weights)
        return sum(array.nbytes for array in (*held, *optional) if array is not None)

    def scan(self, arms: Arms) -> Scan:
        """Means less the baseline, and norms. One pass over dense arms; over columns of S for sparse ones."""
        self.sync()
        inverse = self.precision.low_rank
        if (
            arms.matrix is not None
            and self._weights is not None
            and inverse is not None
            and arms.nonzeros < len(self.b)
        ):
            level, weights, targets = self.level, self._weights, arms.times(self.b)
            if self.reward_scale.baseline:
                weights = weights - level * self._sum_weights
                targets = targets - level * arms.times(self.sum)
            means, products = inverse.means_of_sparse(arms, weights, targets)
            return Scan(arms, means, arms.norms_sq(), products)
        return super().scan(arms)

    # -- learning -----------------------------------------------------------------------------------

    def prepare(self, x: AnyVector) -> None:
        """Keep theta up to date from now on, or W S b if arms are sparse."""
        precision = self.precision
        if (  # the fast path
            precision.sketch.row_stats.version != precision.seen_version
            or precision.rebuilds != self._seen_rebuilds
        ):
            self.sync()
        is_sparse = isinstance(x, SparseVector)
        if is_sparse is not self._is_sparse:
            self._is_sparse = is_sparse
            self._derive()

    def predict(self, x: AnyVector, leverage: Leverage) -> float:
        """The mean reward as of ``prepare``, even if the sketch has taken x since. It uses what is kept."""
        if not self._is_plain:
            return math.nan
        level = self.level
        with np.errstate(over="ignore", invalid="ignore"):
            if self._weights is not None:
                margin = self._margin_through_rows(self.b, self._weights, x, leverage)
                if self.reward_scale.baseline:
                    margin -= level * self._margin_through_rows(self.sum, self._sum_weights, x, leverage)
            elif self.kept_theta is None:
                return math.nan
            else:
                margin = dot(self.kept_theta, x)
                if level != self.kept_level:
                    margin -= (level - self.kept_level) * dot(self.image, x)
        return self.reward_scale.origin + level + margin

    def _margin_through_rows(
        self, target: Vector, weights: Vector, x: AnyVector, leverage: Leverage
    ) -> float:
        """x'A^-1 target, for a target whose W S target is known."""
        return (dot(target, x) - inner(weights, leverage.seen)) / self.precision.inverse.shift

    def learn(self, x: AnyVector, reward: float, step: Step | None) -> None:
        """Update b, and theta by Sherman-Morrison: theta += A^-1 x (reward - x'theta) / (1 + x'A^-1 x).

        The scale has counted the reward already.
        """
        self._theta_for_now = None
        value, has_baseline = reward - self.reward_scale.origin, self.reward_scale.baseline
        if step is not None and self._weights is None:
            self._move(x, value, step)
            return
        add_multiple(self.b, value, x)
        if has_baseline:
            add_multiple(self.sum, 1.0, x)
        if step is not None and self._weights is not None:
            self._weights = _grown(self._weights, value, dot(self.b, x), step)
            if has_baseline:
                self._sum_weights = _grown(self._sum_weights, 1.0, dot(self.sum, x), step)
        self.kept_level = self.level

    def learn_fused(self, x: AnyVector, norm_sq: float, leverage: Leverage, reward: float) -> float | None:
        """``learn``, and the ``append`` of the inverse, in one compiled loop.

        The scale of the rewards counts this one later.
        """
        theta, scale, before = self.kept_theta, self.reward_scale, self.kept_level
        if theta is None or isinstance(x, SparseVector) or type(self) is not Linear:
            return None
        lag, after = 0.0, 0.0
        if scale.baseline:
            lag, after = scale.shift - before, scale.shift_after(reward)
        state = LinearState(theta, self.b, self.sum, self.image, before, lag, after - before)
        inverse = self.precision.inverse
        error = inverse.append_and_move(x, norm_sq, leverage, reward - scale.origin, state)
        if error is not None:
            self.kept_level = after
        return error

    def _move(self, x: AnyVector, value: float, step: Step) -> None:
        assert self.kept_theta is not None  # noqa: S101  (for the type checker)
        before, has_baseline = self.kept_level, self.reward_scale.baseline
        with np.errstate(over="ignore", invalid="ignore"):
            error = value - before - dot(self.kept_theta, x)
            rest = 1.0 - dot(self.image, x) if has_baseline else 0.0
        add_multiple(self.b, value, x)
        if has_baseline:
            add_multiple(self.sum, 1.0, x)
        self.kept_level = self.level
        if not math.isfinite(error + rest):
            self._seen_rebuilds = -1  # theta is computed from b when it is asked for
            return
        gain = self.gain(x, step)
        self.kept_theta += error * gain
        if has_baseline:
            self.image += rest * gain
            self.kept_theta -= (self.kept_level - before) * self.image

    def learn_many(self, rows: Matrix, rewards: Vector) -> None:
        """Learn from many rewards, after the precision was computed again from all arms."""
        self.b += product(rewards - self.reward_scale.origin, rows)
        if self.reward_scale.baseline:
            self.sum += rows.sum(axis=0)
        self.kept_level = self.level

    def forget(self, factor: float) -> None:
        """Multiply all sums by the factor. theta follows when it is computed again."""
        self.b *= factor
        self.sum *= factor

    def add(self, other: "Linear") -> None:
        """Add the other sums to these. The scale includes the other rewards already."""
        self.b += other.b
        if self.reward_scale.baseline:
            self.b += (other.reward_scale.origin - self.reward_scale.origin) * other.sum
            self.sum += other.sum
        self.kept_level = self.level
        self._derive()

    def move_origin(self, by: float) -> None:
        """Measure rewards from an origin that is larger by this much. The baseline stays."""
        self.b -= by * self.sum
        self.kept_level -= by
        self._derive()

    # -- in step with the precision -------------------------------------------------------------------

    def sync(self) -> None:
        """Compute theta again if the precision was."""
        precision = self.precision
        if precision.sketch.row_stats.version != precision.seen_version:
            precision.rebuild()
        if precision.rebuilds != self._seen_rebuilds:
            self._derive()

    def _derive(self) -> None:
        self.kept_theta = self._weights = self._theta_for_now = None
        inverse = self.precision.low_rank
        if self._is_sparse and inverse is not None:
            self._weights = inverse.weights(self.b)
            if self.reward_scale.baseline:
                self._sum_weights = inverse.weights(self.sum)
        else:
            self.kept_theta = self.precision.apply(self._target(self.kept_level))
            if self.reward_scale.baseline:
                self.image = self.precision.apply(self.sum)
        self._seen_rebuilds = self.precision.rebuilds

    # -- files --------------------------------------------------------------------------------------

    def dump(self) -> tuple[Scalars, Arrays]:
        """JSON values and arrays that ``restore`` turns into the same estimate, to the bit."""
        self.sync()
        vectors = {"b": self.b, "theta": self.kept_theta, "weights": self._weights}
        if self.reward_scale.baseline:
            vectors |= {"sum": self.sum, "image": self.image, "sum_weights": self._sum_weights}
        arrays: Arrays = {name: vector for name, vector in vectors.items() if vector is not None}
        return {"is_sparse": self._is_sparse, "level": self.kept_level}, arrays

    def restore(self, scalars: Scalars, arrays: Arrays) -> None:
        """Restore what ``dump`` returned."""
        self.b = arrays["b"]
        self._is_sparse = bool(scalars["is_sparse"])
        self.kept_theta, self._weights = arrays.get("theta"), arrays.get("weights")
        if self.reward_scale.baseline:
            self.kept_level = float(scalars["level"])
            self.sum, self.image = arrays["sum"], arrays["image"]
            self._sum_weights = arrays["sum_weights"]
        if self.kept_theta is None and self._weights is None:  # a file of 0.7
            self._derive()


def _grown(weights: Vector, value: float, total: float, step: Step) -> Vector:
    """W S b after one more row with this value. ``total`` is x'b with the row."""
    weights = weights + value * step.leverage.seen
    return np.append(weights, (total - inner(weights, step.leverage.seen)) / step.pivot)
