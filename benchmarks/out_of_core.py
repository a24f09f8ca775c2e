"""A matrix on disk, larger than its memory: ours beside the machine's ceilings and scikit-learn.

    python -m benchmarks.out_of_core --gigabytes 10

The file is made for the run and deleted afterwards. Ceilings: what the disk delivers when nobody computes;
and 8·l·d flop a row (the products of Frequent Directions, its eigenvectors for free) at the speed that BLAS
reaches when every core multiplies. The file is out of the page cache before each reading.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.decomposition import IncrementalPCA
from threadpoolctl import threadpool_limits

import sketchbandit as sb

DIM, SIZE = 1000, 100
_BLOCK = 1 << 24

GEMM = """
import time, numpy as np
left, right = np.ones(({size}, {two})), np.ones(({two}, {dim}))
out = np.empty(({size}, {dim}))
np.matmul(left, right, out=out)
count, start = 0, time.perf_counter()
while time.perf_counter() - start < 5.0:
    np.matmul(left, right, out=out)
    count += 1
print(count / (time.perf_counter() - start))
"""


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.out_of_core", description=__doc__)
    parser.add_argument("--gigabytes", type=float, default=10.0, help="size of the file")
    parser.add_argument(
        "--folder", type=Path, default=None, help="where it is made; by default for temporary files"
    )
    parser.add_argument(
        "--skip-rival", action="store_true", help="without IncrementalPCA, which takes minutes"
    )
    options = parser.parse_args()
    measure(options.gigabytes, options.folder, with_rival=not options.skip_rival)


def measure(gigabytes: float, folder: Path | None = None, *, with_rival: bool = True) -> None:
    """With a file of that size, made in a folder of its own."""
    with tempfile.TemporaryDirectory(dir=folder) as made, threadpool_limits(1):
        run(Path(made), int(gigabytes * 1e9 / (8 * DIM)), with_rival=with_rival)


def run(folder: Path, rows: int, *, with_rival: bool) -> None:
    """Everything, in one run."""
    path, out = folder / "big.npy", folder / "s.safetensors"
    make(path, rows)
    gigabytes = rows * DIM * 8 / 1e9
    jobs = os.cpu_count() or 1
    print(
        f"{path.stat().st_size / 1e9:.1f} GB, {rows:,} rows of length {DIM}, sketch size {SIZE}, {jobs} cores"
    )
    disk = read_time(path)
    gemm = rows * 8 * SIZE * DIM / gemm_flops(jobs)
    print(
        f"ceilings: disk {disk:.1f} s ({gigabytes / disk:.2f} GB/s), "
        f"GEMM {gemm:.1f} s ({gigabytes / gemm:.2f} GB/s)"
    )
    forget(path)
    seconds, peak = watched(
        [sys.executable, "-m", "sketchbandit", "sketch", str(path), "--size", str(SIZE), "--out", str(out)]
    )
    ceiling = max(disk, gemm)
    print(
        f"sketchbandit sketch: {seconds:.1f} s, {gigabytes / seconds:.2f} GB/s, "
        f"{100 * ceiling / seconds:.0f} % of the lower ceiling, peak {peak / 1e6:.0f} MB in all processes"
    )
    check(path, rows, out)
    if with_rival:
        forget(path)
        start = time.perf_counter()
        rival = incremental_pca(path)
        taken = time.perf_counter() - start
        print(
            f"sklearn IncrementalPCA({SIZE}), partial_fit of 5·d rows, {jobs} BLAS threads: {taken:.1f} s, "
            f"{taken / seconds:.1f} times ours ({rival.n_samples_seen_:,} rows)"
        )


def make(path: Path, rows: int) -> None:
    """Gaussian rows with a spectrum that falls slowly."""
    random = np.random.default_rng(0)
    scale = 1.0 / np.sqrt(np.arange(1, DIM + 1))
    mapped: Any = np.lib.format.open_memmap(path, "w+", np.float64, (rows, DIM))
    del mapped
    with path.open("r+b") as file:
        file.seek(path.stat().st_size - rows * DIM * 8)
        for start in range(0, rows, 20_000):
            file.write((random.standard_normal((min(20_000, rows - start), DIM)) * scale).data)
        file.flush()
        os.fsync(file.fileno())


def forget(path: Path) -> None:
    """Ask the system to drop the file from its page cache."""
    with path.open("rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def read_time(path: Path) -> float:
    """Seconds to read the file and do nothing with it."""
    forget(path)
    buffer = bytearray(_BLOCK)
    start = time.perf_counter()
    with path.open("rb", buffering=0) as file:
        while file.readinto(buffer):
            pass
    return time.perf_counter() - start


def gemm_flops(jobs: int) -> float:
    """Flop a second of the products of a shrink, one BLAS thread in each of ``jobs`` processes at once."""
    code = GEMM.format(size=SIZE, two=2 * SIZE, dim=DIM)
    one = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    running = [
        subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, env=one)  # noqa: S603  (ours)
        for _ in range(jobs)
    ]
    rates = [float(process.communicate()[0]) for process in running]
    return sum(rates) * 2.0 * SIZE * 2 * SIZE * DIM


def watched(line: list[str]) -> tuple[float, int]:
    """Seconds that a command takes, and the most memory that it and its children held at once."""
    start, peak = time.perf_counter(), 0
    with subprocess.Popen(line) as process:  # noqa: S603  (our own command)
        while process.poll() is None:
            peak = max(peak, resident(process.pid))
            time.sleep(0.05)
    assert process.returncode == 0
    return time.perf_counter() - start, peak


def resident(pid: int) -> int:
    """Bytes held by a process and its children, mapped pages included."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
        threads = [thread.name for thread in Path(f"/proc/{pid}/task").iterdir()]
        for thread in threads:
            if thread != str(pid):
                children += Path(f"/proc/{pid}/task/{thread}/children").read_text(encoding="ascii").split()
    except OSError:  # it has gone
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE") + sum(resident(int(child)) for child in children)


def check(path: Path, rows: int, out: Path) -> None:
    """The certificate against the true X'X, read once more and summed plainly."""
    mapped = np.load(path, mmap_mode="r")
    covariance = np.zeros((DIM, DIM))
    for start in range(0, rows, 10_000):
        some = np.asarray(mapped[start : start + 10_000])
        covariance += some.T @ some
    sketch = sb.load(out, sb.Sketch)
    loss = np.linalg.eigvalsh(covariance - sketch.rows.T @ sketch.rows)
    assert sketch.count == rows
    assert loss[0] >= -1e-9 * sketch.mass, "S'S exceeds X'X"
    assert loss[-1] <= sketch.error_bound * (1 + 1e-9), "X'X exceeds S'S + e I"
    print(
        f"checked: true error {loss[-1]:.6g}, certificate {sketch.error_bound:.6g} "
        f"({sketch.error_bound / sketch.mass:.2g} of the mass)"
    )


def incremental_pca(path: Path) -> IncrementalPCA:
    """The rival with its own default batch, and all cores for its BLAS."""
    mapped = np.load(path, mmap_mode="r")
    model = IncrementalPCA(n_components=SIZE)
    with threadpool_limits(os.cpu_count() or 1):
        for start in range(0, len(mapped), 5 * DIM):
            model.partial_fit(np.array(mapped[start : start + 5 * DIM]), check_input=False)
    return model


if __name__ == "__main__":
    main()
