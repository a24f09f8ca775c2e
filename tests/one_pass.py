"""One-pass estimates by dense solves, and the streams that they learn from."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

import sketchbandit as sb

Matrix = NDArray[np.float64]

SKETCHES: dict[str, Callable[[int], sb.Sketch]] = {
    "exact": sb.ExactSketch,
    "fd": lambda dim: sb.FrequentDirections(dim, size=3),
    "scfd": lambda dim: sb.FrequentDirections(dim, size=3, compensation=1.0),
    "blocks": lambda dim: sb.DyadicBlockSketch(dim, size=3, epsilon=1.0, compensation=1.0),
    "adaptive": lambda dim: sb.AdaptiveSketch(dim, size=3, epsilon=12.0, horizon=60, compensation=1.0),
}


class Clicks:
    """mu of a click, its slope and the loss, without a thought for overflow."""

    made = staticmethod(sb.Logistic)

    @staticmethod
    def mean(z: Any) -> Any:
        """The probability."""
        return 1.0 / (1.0 + np.exp(-z))

    @classmethod
    def slope(cls, z: Any) -> Any:
        """Its derivative."""
        return cls.mean(z) * (1.0 - cls.mean(z))

    @staticmethod
    def loss(z: Any, reward: float) -> Any:
        """-ln of the likelihood, up to what does not depend on z."""
        return np.logaddexp(0.0, z) - reward * z

    @classmethod
    def draw(cls, z: float, random: np.random.Generator) -> float:
        """A reward."""
        return float(random.random() < cls.mean(z))


class Counts:
    """The same of counts."""

    made = staticmethod(sb.Poisson)
    mean = staticmethod(np.exp)
    slope = staticmethod(np.exp)

    @staticmethod
    def loss(z: Any, reward: float) -> Any:
        """-ln of the likelihood, up to what does not depend on z."""
        return np.exp(z) - reward * z

    @staticmethod
    def draw(z: float, random: np.random.Generator) -> float:
        """A reward."""
        return float(random.poisson(math.exp(z)))


MODELS: dict[str, Any] = {"logistic": Clicks, "poisson": Counts}


class Oracle:
    """A from the rows of a sketch of its own; theta by the dense step."""

    def __init__(self, sketch: sb.Sketch, ridge: float) -> None:
        self.sketch, self.ridge = sketch, ridge
        self.theta = np.zeros(sketch.dim)

    @property
    def matrix(self) -> Matrix:
        """A = S'S + (lambda + alpha) I."""
        rows = self.sketch.rows
        return np.asarray(rows.T @ rows + (self.ridge + self.sketch.alpha) * np.eye(self.sketch.dim))

    def width(self, arms: Matrix) -> Matrix:
        """sqrt(x'A^-1 x)."""
        return np.asarray(np.sqrt(np.vecdot(arms, np.linalg.solve(self.matrix, arms.T).T)))

    def generalized(
        self, model: Any, x: Matrix, reward: float, *, step: float, most: float = math.inf
    ) -> None:
        """The argmin of loss(x'theta) + |theta - theta_t|²_A / (2·step), among |x'theta| <= most."""
        image = np.linalg.solve(self.matrix, x)
        q, margin = float(x @ image), float(x @ self.theta)

        def off(z: float) -> float:
            return float(z - margin - step * q * (reward - model.mean(z)))

        far = margin + step * q * (reward - float(model.mean(margin)))
        low, high = min(margin, far) - 1e-9, max(margin, far) + 1e-9
        new = min(max(float(brentq(off, low, high, xtol=1e-15)), -most), most)
        self.theta += (new - margin) / q * image
        self.sketch.update(math.sqrt(float(model.slope(new))) * x)

    def robust(self, settings: sb.Robust, x: Matrix, reward: float, count: int) -> None:
        """Wang et al.'s step: A'^-1 times the gradient of the Huber loss, A' with x in it."""
        before = self.matrix
        width = math.sqrt(float(x @ np.linalg.solve(before, x)))
        sigma = max(settings.scale, settings.caution * width)
        w, eps = width / sigma, settings.moment - 1.0
        tau = settings.threshold * math.sqrt(1.0 + w * w) / w * count ** ((1.0 - eps) / (2.0 * (1.0 + eps)))
        residual = (reward - float(x @ self.theta)) / sigma
        slope = residual if abs(residual) <= tau else math.copysign(tau, residual)
        self.theta += np.linalg.solve(before + np.outer(x, x) / sigma**2, x) * slope / sigma
        self.sketch.update(x / sigma)


def arms_of(count: int, dim: int, random: np.random.Generator) -> Matrix:
    """Arms of length one, some directions of which are rare."""
    drawn = random.standard_normal((count, dim)) * 0.8 ** np.arange(dim)
    return np.asarray(drawn / np.linalg.norm(drawn, axis=1, keepdims=True))


def trained(policy: Any, count: int, *, model: Any = Clicks, seed: int = 0) -> Any:
    """Play so many rounds of rewards from the model."""
    random = np.random.default_rng(seed)
    theta = arms_of(1, policy.dim, random)[0] * 2.0
    for _ in range(count):
        arms = arms_of(4, policy.dim, random)
        chosen = policy.select(arms)
        policy.update(arms[chosen], model.draw(float(arms[chosen] @ theta), random))
    return policy
