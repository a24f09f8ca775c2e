"""The streams on which policies are timed: arms and rewards are made before the clock starts."""

import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.datasets import load_digits

Matrix = NDArray[np.float64]


class Stream(NamedTuple):
    """Rounds of arms (dense or CSR, K each) and the reward of every arm."""

    name: str
    dim: int
    arms: list[Any]
    rewards: list[NDArray[np.float64]]


def gaussian(dim: int, rounds: int, arms: int = 10, seed: int = 0) -> Stream:
    """Unit Gaussian arms, theta on the sphere, noise 0.1."""
    random = np.random.default_rng(seed)
    drawn = random.standard_normal((rounds, arms, dim))
    drawn /= np.linalg.norm(drawn, axis=2, keepdims=True)
    theta = random.standard_normal(dim)
    theta /= np.linalg.norm(theta)
    rewards = drawn @ theta + 0.1 * random.standard_normal((rounds, arms))
    return Stream(f"Gaussian d={dim}", dim, list(drawn), list(rewards))


def classification(rounds: int, seed: int = 0, target: int = 3) -> Stream:
    """The paper's setup: one random image of each digit a round, in random order; reward 1 for the target."""
    name, rows, labels = images()
    random = np.random.default_rng(seed)
    by_label = [np.flatnonzero(labels == digit) for digit in range(10)]
    arms, rewards = [], []
    for _ in range(rounds):
        order = random.permutation(10)
        arms.append(rows[[random.choice(by_label[digit]) for digit in order]])
        rewards.append((order == target).astype(float))
    return Stream(f"{name} d={rows.shape[1]}", rows.shape[1], arms, rewards)


def images() -> tuple[str, Matrix, NDArray[Any]]:
    """MNIST from SKETCHBANDIT_DATA, else scikit-learn's digits; rows of unit length."""
    path = _file("mnist.npz")
    if path is None:
        rows, labels = load_digits(return_X_y=True)
        name = "digits"
    else:
        with np.load(path) as data:
            rows, labels = data["X"].astype(float), data["y"]
        name = "MNIST"
    kept = np.linalg.norm(rows, axis=1) > 0.0
    rows, labels = rows[kept], labels[kept]
    return name, rows / np.linalg.norm(rows, axis=1, keepdims=True), labels


def farm_ads(rounds: int, arms: int = 10, seed: int = 0) -> Stream | None:
    """Sparse word features of ads, ten a round, reward the approval; None without SKETCHBANDIT_DATA."""
    path = _file("farm-ads.npz")
    if path is None:
        return None
    with np.load(path) as data:
        shape = tuple(data["shape"])
        rows = sparse.csr_array((data["data"], data["indices"], data["indptr"]), shape=shape)
        labels = data["y"]
    norms = np.sqrt(np.asarray(rows.multiply(rows).sum(axis=1)).ravel())
    rows = sparse.csr_array(sparse.diags_array(1.0 / np.maximum(norms, 1e-12)) @ rows).astype(np.float32)
    random = np.random.default_rng(seed)
    drawn = random.integers(0, len(labels), (rounds, arms))
    chosen = [rows[some] for some in drawn]
    return Stream(
        f"farm-ads d={shape[1]}", int(shape[1]), chosen, [(labels[s] > 0).astype(float) for s in drawn]
    )


def _file(name: str) -> Path | None:
    folder = os.environ.get("SKETCHBANDIT_DATA")
    path = Path(folder) / name if folder else None
    return path if path is not None and path.exists() else None
