"""Rows per second into a sketch, from arrays on a device, beside what torch has.

python -m benchmarks.device_sketching --device cuda:0
python -m benchmarks.device_sketching --dim 256 --size 32 --rows 20000    # on a CPU, to try it out
"""

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

import sketchbandit as sb
from sketchbandit.array_api import library_of
from sketchbandit.sketch.device_gram import Gathering, device_norms_sq

_KEPT = 4  # different batches, taken in turn


def made_batches(dim: int, rows: int, device: str) -> list[Any]:
    """Float32 rows whose spectrum falls slowly, on the device."""
    generator = torch.Generator(device=device).manual_seed(0)
    scale = 1.0 / torch.sqrt(1.0 + torch.arange(dim, device=device, dtype=torch.float32))
    return [torch.randn(rows, dim, generator=generator, device=device) * scale for _ in range(_KEPT)]


def check_certificate(sketch: Any, batches: list[Any], device: str) -> None:
    """Compare with the float64 spectrum of X'X - S'S, computed on the device."""
    left = sum(batch.double().T @ batch.double() for batch in batches)
    kept = torch.asarray(np.array(sketch.rows, dtype=np.float64)).to(device)
    values = torch.linalg.eigvalsh(left - kept.T @ kept)
    lowest, highest = float(values[0]), float(values[-1])
    free = sketch.uncounted
    if not (-sketch.rounding - free <= lowest and highest <= sketch.error_bound + free):
        raise SystemExit(f"the certificate is broken: {lowest:g} to {highest:g} with {sketch!r}")
    print(f"certificate: X'X - S'S from {lowest:.4g} to {highest:.6g}, certified {sketch.error_bound:.6g},")
    print(f"of which rounding {sketch.rounding:.3g} ({sketch.rounding / sketch.mass:.2g} of the mass)")


def with_sketch(batches: list[Any], rounds: int, size: int) -> None:
    """Take all batches, and read the certificate once."""
    sketch = sb.FrequentDirections(batches[0].shape[1], size=size)
    for number in range(rounds):
        sketch.update(batches[number % _KEPT])
    _ = sketch.error_bound


def with_products(batches: list[Any], rounds: int, size: int) -> None:
    """Gather alone, without the shrink at the end."""
    del size
    library = library_of(batches[0])
    gathered = Gathering(library, batches[0].shape[1], np.dtype(np.float64))
    for number in range(rounds):
        batch = batches[number % _KEPT]
        gathered.add(batch, device_norms_sq(library, batch))


def with_lowrank(batches: list[Any], rounds: int, size: int) -> None:
    """``torch.pca_lowrank`` of each batch by itself: it has no way to go on from one to the next."""
    for number in range(rounds):
        torch.pca_lowrank(batches[number % _KEPT], q=size, center=False, niter=2)


def with_incremental_svd(batches: list[Any], rounds: int, size: int) -> None:
    """Incremental PCA as usual: the SVD of [S; batch], cut to the size, without a certificate."""
    kept = batches[0][:0]
    for number in range(rounds):
        stacked = torch.cat([kept, batches[number % _KEPT]])
        _, values, directions = torch.linalg.svd(stacked, full_matrices=False)
        kept = values[:size, None] * directions[:size]


def seconds(work: Callable[[list[Any], int, int], None], batches: list[Any], rounds: int, size: int) -> float:
    """Of the work alone, after a batch to warm up."""
    work(batches, 1, size)
    _wait(batches[0])
    start = time.perf_counter()
    work(batches, rounds, size)
    _wait(batches[0])
    return time.perf_counter() - start


def _wait(batch: Any) -> None:
    if batch.device.type == "cuda":
        torch.cuda.synchronize(batch.device)


def main() -> None:
    """Check, then time, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dim", type=int, default=4096)
    parser.add_argument("--size", type=int, default=256)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--batch", type=int, default=8192)
    given = parser.parse_args()
    batches = made_batches(given.dim, given.batch, given.device)
    sketch = sb.FrequentDirections(given.dim, size=given.size)
    for batch in batches:
        sketch.update(batch)
    check_certificate(sketch, batches, given.device)
    rounds = max(1, given.rows // given.batch)
    doubles = library_of(batches[0]).doubles_are_fast
    print(f"\n{given.device}, dim {given.dim}, size {given.size}, batches of {given.batch} float32 rows,")
    print(f"products in {'float64' if doubles else 'float32'}\n")
    print(f"{'':34}{'rows':>10}{'seconds':>10}{'rows/s':>12}")
    few = min(rounds, 4)  # of what is slow
    for name, work, times in (
        ("FrequentDirections, read once", with_sketch, rounds),
        ("its products alone", with_products, rounds),
        ("torch.pca_lowrank of each batch", with_lowrank, few),
        ("incremental PCA: SVD of [S; batch]", with_incremental_svd, few),
    ):
        took, count = seconds(work, batches, times, given.size), times * given.batch
        print(f"{name:34}{count:>10,}{took:>10.3f}{count / took:>12,.0f}")


if __name__ == "__main__":
    main()
