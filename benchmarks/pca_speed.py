"""SketchedPCA beside scikit-learn on MNIST, or the digits where it is not at hand: speed, and what is left.

SKETCHBANDIT_DATA=data python -m benchmarks.pca_speed
"""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import PCA, IncrementalPCA
from threadpoolctl import threadpool_limits

from sketchbandit import data
from sketchbandit.sklearn import SketchedPCA

Matrix = NDArray[np.float64]

COMPONENTS = (20, 50, 100)
BATCH = 1000
TURNS = 2


def in_batches(model: Any, X: Matrix) -> Any:
    """As a stream would come."""
    for start in range(0, len(X), BATCH):
        model.partial_fit(X[start : start + BATCH])
    return model


def contenders(k: int) -> dict[str, Callable[[Matrix], Any]]:
    """By name: from data to a fitted model."""
    return {
        "SketchedPCA, fit": lambda X: SketchedPCA(k).fit(X),
        f"SketchedPCA, batches of {BATCH}": lambda X: in_batches(SketchedPCA(k), X),
        "IncrementalPCA, fit": lambda X: IncrementalPCA(k).fit(X),
        f"IncrementalPCA, batches of {BATCH}": lambda X: in_batches(IncrementalPCA(k), X),
        "PCA, covariance_eigh": lambda X: PCA(k, svd_solver="covariance_eigh").fit(X),
        "PCA, randomized": lambda X: PCA(k, svd_solver="randomized", random_state=0).fit(X),
    }


def main() -> None:
    """Check that nothing is worse, then print the times."""
    name = "mnist" if data.find("mnist").here else "digits"
    X = np.asarray(data.load(name).features, dtype=np.float64)
    scatter = float(((X - X.mean(axis=0)) ** 2).sum())
    print(f"{name}, {X.shape[0]:,} x {X.shape[1]}, one thread; left: the part of the variance not explained")
    print(f"{'k':>4} {'contender':32} {'seconds':>8} {'left':>9} {'x IncrementalPCA':>17}")
    with threadpool_limits(1):
        for k in COMPONENTS:
            if k < X.shape[1]:
                compare(X, k, scatter)


def compare(X: Matrix, k: int, scatter: float) -> None:
    """Everybody with k components, taking turns."""
    seconds: dict[str, float] = {}
    left: dict[str, float] = {}
    for turn in range(TURNS):
        for name, fit in contenders(k).items():
            start = time.perf_counter()
            model = fit(X)
            _ = model.components_
            seconds[name] = min(seconds.get(name, np.inf), time.perf_counter() - start)
            if not turn:
                left[name] = float(((X - model.inverse_transform(model.transform(X))) ** 2).sum()) / scatter
    rivals = [name for name in seconds if name.startswith("Incremental")]
    for name, taken in seconds.items():
        if name.startswith("Sketched"):
            assert left[name] <= min(left[rival] for rival in rivals), f"{name} leaves more"
        ratio = min(seconds[rival] for rival in rivals) / taken
        print(f"{k:4} {name:32} {taken:8.2f} {left[name]:9.6f} {ratio:17.1f}", flush=True)


if __name__ == "__main__":
    main()
