"""Theorems of the paper that more than one sketch must satisfy, as assertions."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def assert_scfd_theorems(sketch: Any, rows: NDArray[np.float64]) -> None:
    """Feed the rows one by one to a sketch with compensation 1 and check its two theorems at every step.

    Monotone: S'S + alpha I never falls; it dominates X'X. Well conditioned, with lambda added: no worse
    than S'S + lambda I, and at most (sigma_max(X'X) + lambda) / lambda. (The paper states the second half
    against cond(X'X + lambda I), which its proof does not give and which is false in general.)
    """
    dim = rows.shape[1]
    covariance, before, mass = np.zeros((dim, dim)), np.zeros((dim, dim)), 0.0
    for row in rows:
        sketch.update(row)
        covariance += np.outer(row, row)
        mass += float(row @ row)
        slack = 1e-11 * mass
        estimate = sketch.covariance()
        assert np.linalg.eigvalsh(estimate - before)[0] >= -slack
        assert np.linalg.eigvalsh(estimate - covariance)[0] >= -slack
        before = estimate
        ridge = 1e-3 * mass
        if ridge:
            bare = estimate - sketch.alpha * np.eye(dim)
            condition = _condition(estimate, ridge)
            assert condition <= _condition(bare, ridge) * (1 + 1e-6)
            assert condition <= (np.linalg.eigvalsh(covariance)[-1] + ridge) / ridge * (1 + 1e-6)


def _condition(symmetric: NDArray[np.float64], ridge: float) -> float:
    eigenvalues = np.linalg.eigvalsh(symmetric)
    return float((eigenvalues[-1] + ridge) / (eigenvalues[0] + ridge))
