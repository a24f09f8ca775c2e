"""Rows per second of streaming FD beside its rivals, on the same stream, in the same run."""

import tracemalloc
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import sketchbandit as sb
from benchmarks import rivals
from benchmarks.timing import best_seconds, unit_rows
from sketchbandit.linalg import spectral_error

SHAPES = ((500, 50), (784, 100), (784, 200), (5000, 100))

RIVALS: dict[str, rivals.Run] = {
    "sketchbandit FD": rivals.ours,
    "numpy Gram-eigh shrink": rivals.numpy_gram,
    "numpy SVD shrink": rivals.numpy_svd,
    "sklearn IncrementalPCA": rivals.incremental_pca,
}


class Speed(NamedTuple):
    """One contender on one stream."""

    dim: int
    size: int
    contender: str
    rows_per_second: float
    peak_mb: float
    error: float


def check(stream: NDArray[np.float64], size: int) -> dict[str, float]:
    """True errors. The FDs must agree with one another, and ours must keep its certificate."""
    errors = {}
    reference, certificate = rivals.ours(stream, size)
    for name, run in RIVALS.items():
        rows, claimed = run(stream, size)
        errors[name] = spectral_error(stream, rows)
        if not np.isnan(claimed):
            assert abs(claimed - certificate) <= 1e-8 * certificate, f"{name}: another certificate"
            assert len(rows) == len(reference), f"{name}: another number of rows"
            assert errors[name] <= certificate * (1 + 1e-9), f"{name}: error above the certificate"
    return errors


def speeds(shapes: tuple[tuple[int, int], ...] = SHAPES) -> Iterator[Speed]:
    """Check the answers, then time every contender, taking turns."""
    for dim, size in shapes:
        stream = unit_rows(5000 if dim < 2000 else 2000, dim)
        errors = check(stream, size)
        seconds = best_seconds({name: (run, (stream, size)) for name, run in RIVALS.items()})
        for name, run in RIVALS.items():
            yield Speed(dim, size, name, len(stream) / seconds[name], _peak(run, stream, size), errors[name])


def low_rank_speeds(dim: int = 784, size: int = 50, rank: int = 20) -> dict[str, float]:
    """Rows per second on a stream of rank < size: DBS stays in its first block, and keeps up with FD."""
    random = np.random.default_rng(1)
    low = random.standard_normal((20_000, rank)) @ random.standard_normal((rank, dim))
    low /= np.linalg.norm(low, axis=1, keepdims=True)
    full = unit_rows(20_000, dim)

    def fd(stream: NDArray[np.float64]) -> sb.FrequentDirections:
        sketch = sb.FrequentDirections(dim, size=size)
        sketch.update(stream)
        return sketch

    def dbs(stream: NDArray[np.float64]) -> sb.DyadicBlockSketch:
        sketch = sb.DyadicBlockSketch(dim, size=size, epsilon=8.0)
        sketch.update(stream)
        return sketch

    kept = dbs(low)
    assert len(kept.blocks) == 1, "the stream left the first block"
    assert kept.error_bound == 0.0, "a low-rank stream was shrunk"
    seconds = best_seconds(
        {
            "FD, full rank": (fd, (full,)),
            f"FD, rank {rank}": (fd, (low,)),
            f"DBS, rank {rank}": (dbs, (low,)),
        }
    )
    return {name: len(low) / value for name, value in seconds.items()}


def _peak(run: rivals.Run, stream: NDArray[np.float64], size: int) -> float:
    tracemalloc.start()
    run(stream, size)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 1e6
