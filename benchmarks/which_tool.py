"""Leading directions of a matrix by every usual tool, over the dimension: who is fastest where, and how good.

    python -m benchmarks.which_tool --out results

In memory, one BLAS thread, the same rows for all. The excess is what a tool's k directions leave of the data,
over what the best k directions leave, less 1.
"""

import argparse
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure
from numpy.typing import NDArray
from sklearn.decomposition import IncrementalPCA
from sklearn.utils.extmath import randomized_svd
from threadpoolctl import threadpool_limits

import sketchbandit as sb
from sketchbandit.drawing import COLOURS, STYLE, save
from sketchbandit_paper.tables import write_csv

Matrix = NDArray[np.float64]

ROWS, COMPONENTS, SIZE = 20_000, 20, 50
DIMS = (100, 200, 400, 800, 1600, 3200)
TURNS = 2


class Point(NamedTuple):
    """One tool at one dimension."""

    dim: int
    tool: str
    seconds: float
    peak_mb: float
    excess: float
    certificate: float


def covariance(X: Matrix) -> tuple[Matrix, float]:
    """X'X in one product, then all its eigenvectors."""
    return np.linalg.eigh(X.T @ X)[1].T[::-1][:COMPONENTS], 0.0


def incremental_pca(X: Matrix) -> tuple[Matrix, float]:
    """scikit-learn's, without its copies, in batches of 500, the fastest of 100, 250, 500, 1000 and 5·dim."""
    model = IncrementalPCA(n_components=COMPONENTS)
    for start in range(0, len(X), 500):
        model.partial_fit(X[start : start + 500].copy(), check_input=False)
    return model.components_, np.nan


def randomized(X: Matrix) -> tuple[Matrix, float]:
    """scikit-learn's randomized SVD, which needs X whole and reads it several times."""
    return randomized_svd(X, COMPONENTS, random_state=0)[2], np.nan


def stream(X: Matrix) -> tuple[Matrix, float]:
    """The certified incremental SVD, row by row as a stream would come."""
    sketch = sb.IncrementalSVD(X.shape[1], size=SIZE)
    sketch.update(X)
    return sb.spectrum(sketch, COMPONENTS).directions, sketch.error_bound


def bulk(X: Matrix) -> tuple[Matrix, float]:
    """The same sketch read in bulk: X'X first where that is worth it."""
    reader = sb.BulkReader(sb.IncrementalSVD(X.shape[1], size=SIZE))
    reader.update(X)
    sketch = reader.finish()
    return sb.spectrum(sketch, COMPONENTS).directions, sketch.error_bound


TOOLS: dict[str, Callable[[Matrix], tuple[Matrix, float]]] = {
    "X'X and eigh": covariance,
    "IncrementalPCA": incremental_pca,
    "randomized SVD": randomized,
    "sketchbandit, stream": stream,
    "sketchbandit, bulk": bulk,
}


def rows_of(dim: int) -> Matrix:
    """Gaussian rows of mean zero, singular values like 1/sqrt(i)."""
    rows = np.random.default_rng(0).standard_normal((ROWS, dim))
    rows /= np.sqrt(np.arange(1, dim + 1))
    rows -= rows.mean(axis=0)
    return rows


def points() -> Iterator[Point]:
    """Every tool at every dimension: checked, then timed, taking turns."""
    for dim in DIMS:
        X = rows_of(dim)
        best = residual(X, covariance(X)[0])
        found = {}
        for name, tool in TOOLS.items():
            directions, certificate = tool(X)
            excess = residual(X, directions) / best - 1.0
            assert excess > -1e-9, f"{name} beats the best"
            tracemalloc.start()
            tool(X)
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            found[name] = (peak / 1e6, excess, certificate / float((X**2).sum()))
        seconds = dict.fromkeys(TOOLS, np.inf)
        for _ in range(TURNS):
            for name, tool in TOOLS.items():
                start = time.perf_counter()
                tool(X)
                seconds[name] = min(seconds[name], time.perf_counter() - start)
        for name in TOOLS:
            yield Point(dim, name, seconds[name], *found[name])


def residual(X: Matrix, directions: Matrix) -> float:
    """|X - X V'V|²."""
    projected = X @ directions.T
    return float((X**2).sum() - (projected**2).sum())


def figure(found: list[Point]) -> Figure:
    """Seconds over the dimension."""
    with rc_context(STYLE):
        drawn = Figure(figsize=(6.0, 3.8), layout="constrained")
        axis = drawn.subplots()
        for colour, name in zip(COLOURS, TOOLS, strict=False):
            line = [(point.dim, point.seconds) for point in found if point.tool == name]
            axis.loglog(*zip(*line, strict=True), marker="o", ms=3, color=colour, label=name)
        axis.set_xlabel("dimension d")
        axis.set_ylabel("seconds, one thread")
        axis.set_title(f"{COMPONENTS} leading directions of {ROWS:,} rows (sketch size {SIZE})")
        axis.legend(frameon=False, fontsize=8)
    return drawn


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.which_tool", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("results"), help="folder for table and plot")
    run(parser.parse_args().out)


def run(out: Path) -> None:
    """The table and the figure."""
    out.mkdir(parents=True, exist_ok=True)
    print(f"{'d':>5} {'tool':22} {'seconds':>8} {'peak MB':>8} {'excess':>9} {'e/mass':>9}")
    found = []
    with threadpool_limits(1):
        for point in points():
            found.append(point)
            print(
                f"{point.dim:5} {point.tool:22} {point.seconds:8.3f} {point.peak_mb:8.1f} "
                f"{point.excess:9.2g} {point.certificate:9.2g}",
                flush=True,
            )
    for path in (
        write_csv(out / "bench-tools.csv", Point._fields, found),
        *save(figure(found), out / "bench-tools"),
    ):
        print(f"wrote {path}")


if __name__ == "__main__":
    main()
