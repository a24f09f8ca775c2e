"""Thompson sampling as other packages have it: one linear model, K arms of d features a round."""

import importlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]


class BayesianBandits:
    """``NormalRegressor`` of bayesianbandits, its own sampler."""

    package = "bayesianbandits"

    def __init__(self, dim: int, ridge: float, scale: float) -> None:
        module = importlib.import_module(self.package)
        self.model = module.NormalRegressor(alpha=ridge / scale**2, beta=1.0 / scale**2, random_state=0)
        self.model.partial_fit(np.zeros((1, dim)), np.zeros(1))  # an unfitted one does not know its dimension

    def select(self, arms: Matrix) -> int:
        """The best arm of one draw."""
        return int(np.argmax(self.model.sample(arms)[0]))

    def update(self, arm: Matrix, reward: float) -> None:
        """One reward."""
        self.model.partial_fit(arm[np.newaxis], np.array([reward]))

    def posterior(self, arms: Matrix) -> tuple[Matrix, Matrix]:
        """Means and variances of the arms' scores."""
        upper = np.triu(np.asarray(self.model.cov_inv_))  # the rest of it is not kept up to date
        precision = upper + np.triu(upper, 1).T
        return arms @ self.model.coef_, np.vecdot(arms, np.linalg.solve(precision, arms.T).T)


class ContextualBandits:
    """``LinearRegression`` of contextualbandits (Sherman-Morrison in Cython), its own sampler."""

    package = "contextualbandits"

    def __init__(self, dim: int, ridge: float, scale: float) -> None:
        module = importlib.import_module(f"{self.package}.linreg")
        self.scale = scale
        self.model = module.LinearRegression(lambda_=ridge, fit_intercept=False, method="sm", use_float=False)
        self.model.fit(np.zeros((1, dim)), np.zeros(1))
        self.random = np.random.default_rng(0)

    def select(self, arms: Matrix) -> int:
        """The best arm of one draw."""
        drawn = self.model.predict_thompson(arms, self.scale**2, False, self.random)
        return int(np.argmax(drawn))

    def update(self, arm: Matrix, reward: float) -> None:
        """One reward."""
        self.model.partial_fit(arm[np.newaxis], np.array([reward]))

    def posterior(self, arms: Matrix) -> tuple[Matrix, Matrix]:
        """Means and variances of the arms' scores."""
        means = self.model.predict(arms)
        return means, np.square(self.model.predict_ucb(arms, self.scale) - means)


class River:
    """``BayesianLinearRegression`` of river; each arm's score is drawn by itself."""

    package = "river"

    def __init__(self, dim: int, ridge: float, scale: float) -> None:
        module = importlib.import_module("river.linear_model")
        self.model = module.BayesianLinearRegression(alpha=ridge / scale**2, beta=1.0 / scale**2)
        self.names = list(range(dim))
        self.noise_sq = scale**2
        self.random = np.random.default_rng(0)

    def _distributions(self, arms: Matrix) -> list[Any]:
        features = (dict(zip(self.names, arm.tolist(), strict=True)) for arm in arms)
        return [self.model.predict_one(x, with_dist=True) for x in features]

    def select(self, arms: Matrix) -> int:
        """The largest of independent draws."""
        means, variances = self.posterior(arms)
        return int(np.argmax(means + np.sqrt(variances) * self.random.standard_normal(len(arms))))

    def update(self, arm: Matrix, reward: float) -> None:
        """One reward."""
        self.model.learn_one(dict(zip(self.names, arm.tolist(), strict=True)), reward)

    def posterior(self, arms: Matrix) -> tuple[Matrix, Matrix]:
        """Means and variances of the arms' scores, without the noise of a reward."""
        found = self._distributions(arms)
        means = np.array([one.mu for one in found])
        return means, np.array([one.sigma for one in found]) ** 2 - self.noise_sq
