"""The models of all actions side by side, so that one call scores them all."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from sketchbandit.arrays import AnyArray, Vector
from sketchbandit.explore.scores import upper_bound
from sketchbandit.kernels import kernels
from sketchbandit.linalg import inner_rows, row_norms_sq
from sketchbandit.policy.learning import Policy
from sketchbandit.precision import DenseInverse, Leverage, LowRankInverse


class Board:
    """The theta, shift and radius of every model. A row is read again whenever its model has changed.

    With a baseline a model has theta for the level of the rewards after its own last one, and the image along
    which theta moves by what the others have learned since.

    Attributes
    ----------
    policies : sequence of Policy
        The models on offer.
    thetas, shifts, radii : array
        Shapes (K, dim), (K,) and (K,), as of the last ``sync``.

    """

    def __init__(self, policies: Sequence[Policy]) -> None:
        self.policies = policies
        count, dim = len(policies), policies[0].precision.sketch.dim if policies else 0
        self.thetas, self.shifts, self.radii = np.zeros((count, dim)), np.ones(count), np.zeros(count)
        has_baseline = count > 0 and policies[0]._has_baseline
        self._images = np.zeros((count if has_baseline else 0, dim))
        self._levels, self._lags = np.zeros(count), np.zeros(count)
        self._tallies = [policy.precision.sketch.row_stats for policy in policies]
        self._versions = [-1] * count
        self._without: set[int] = set()
        self._inverses: list[Any] = [None] * count  # in the form that compiled loops read

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays held."""
        held = (self.thetas, self.shifts, self.radii, self._images, self._levels, self._lags)
        return sum(array.nbytes for array in held)

    def sync(self) -> bool:
        """Read the models that have changed. Return whether all means are x'theta."""
        now = [row_stats.version for row_stats in self._tallies]
        if now != self._versions:
            for k, policy in enumerate(self.policies):
                if now[k] != self._versions[k]:
                    self._read(k, policy)
            self._versions = now
        if len(self.policies):
            policy = self.policies[0]
            if policy._confidence == "auto":  # the spread of the rewards of all actions
                self.radii[:] = policy.radius
            if len(self._images):
                np.subtract(policy._estimate.level, self._levels, out=self._lags)
        return not self._without

    def _read(self, k: int, policy: Policy) -> None:
        found, precision = policy._estimate.affine_theta, policy._precision
        precision.sync()
        inverse = precision.inverse
        self.shifts[k] = inverse.shift
        self.radii[k] = policy._radius if policy._confidence is None else policy.radius
        if isinstance(inverse, LowRankInverse):
            self._inverses[k] = inverse.plain_rows, inverse.factor.array, inverse.factor.count
        elif isinstance(inverse, DenseInverse):
            self._inverses[k] = inverse.inverse, inverse.pending, inverse.pending_count
        if found is None:
            self._without.add(k)
            return
        self._without.discard(k)
        self.thetas[k] = found.theta
        if found.image is not None:
            self._images[k], self._levels[k] = found.image, found.at

    def means(self, x: Vector, which: AnyArray) -> tuple[Vector, float]:
        """x'theta of some models, and |x|². Values that overflow are inf or NaN."""
        compiled = kernels()
        if compiled is None:
            with np.errstate(over="ignore", invalid="ignore"):
                means = inner_rows(self.thetas[which], x)
                if len(self._images):
                    means -= self._lags[which] * inner_rows(self._images[which], x)
                return means, float(row_norms_sq(x[np.newaxis])[0])
        means, _, _, norm_sq = self._scored(compiled, x, which)
        return means, norm_sq

    def _scored(self, compiled: Any, x: Vector, which: AnyArray) -> tuple[Vector, Vector, int, float]:
        """Means, optimistic bounds, the index of the largest bound (-1: one is not finite), and |x|²."""
        means, bounds = np.empty(len(which)), np.empty(len(which))
        models = self.thetas, self._images, self._lags, which, self.shifts, self.radii
        first, norm_sq = compiled.score_models(x, *models, means, bounds)
        return means, bounds, first, norm_sq

    def search(self, x: Vector, which: AnyArray) -> int | None:
        """The index of the model with the largest upper confidence bound; None if it cannot be found so.

        Ties go to the first. The most promising model is tried first. A model whose optimistic bound cannot
        win is not asked for a width.
        """
        compiled = kernels()
        if compiled is None or not self.sync():
            return None
        means, bounds, first, norm_sq = self._scored(compiled, x, which)
        if first < 0:
            return None
        best, score, kept = -1, -math.inf, None
        listed = bounds.tolist()
        for i in (first, *range(len(listed))):
            if listed[i] < score or (i == first and best >= 0):
                continue
            k = which.item(i)
            mean, radius, inverse = means.item(i), self.radii.item(k), self.policies[k]._precision.inverse
            leverage = self._leverage(compiled, k, x, norm_sq, (mean, radius, score))
            if leverage is None:
                continue
            value = upper_bound(mean, radius, math.sqrt(inverse.quadratic(leverage, norm_sq)))
            if value > score or (value == score and i < best):
                best, score, kept = i, value, (k, leverage)
        if kept is not None:
            self.policies[kept[0]]._precision.last_choice = x.copy(), kept[1]
        return best

    def _leverage(
        self, compiled: Any, k: int, x: Vector, norm_sq: float, to_beat: tuple[float, float, float]
    ) -> Leverage | None:
        """The leverage of x in one model; None as soon as its score cannot reach the score to beat.

        ``to_beat`` holds the mean, the radius and the score to beat.
        """
        inverse, shift = self.policies[k]._precision.inverse, self.shifts.item(k)
        matrix, other, count = self._inverses[k]
        if isinstance(inverse, LowRankInverse) and matrix is not None:
            y, u = np.empty(count), np.empty(count)
            value = compiled.leverage_above(x, norm_sq, *to_beat, matrix, other, count, shift, y, u)
            return None if value < 0.0 else Leverage(y, u, value)
        if isinstance(inverse, DenseInverse) and to_beat[2] > -math.inf:
            may_win = compiled.may_win_dense(x, norm_sq, *to_beat, matrix, other, count, shift)
            return inverse.leverage(x, norm_sq) if may_win else None
        return inverse.leverage(x, norm_sq)
