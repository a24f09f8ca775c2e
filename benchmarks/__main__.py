"""Run every benchmark: ``make bench``, or ``python -m benchmarks --out results``."""

import argparse
import platform
from pathlib import Path

import numpy as np
import scipy
from threadpoolctl import threadpool_info, threadpool_limits

from benchmarks import scaling, streaming
from sketchbandit.experiments.figures import save
from sketchbandit.experiments.tables import write_csv


def main() -> None:
    """Check, time, print, and write the tables and the scaling plot."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("results"), help="folder for tables and plot")
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    with threadpool_limits(1):
        blas = sorted({f"{pool['internal_api']} {pool['version']}" for pool in threadpool_info()})
        print(
            f"numpy {np.__version__}, scipy {scipy.__version__}, {', '.join(blas)}, "
            f"{platform.machine()}, one thread"
        )
        _streaming(out)
        _low_rank()
        print("\nscaling over n, d and l (a minute or two) ...", flush=True)
        found = scaling.points()
    table = write_csv(out / "bench-scaling.csv", scaling.Point._fields, found)
    for path in (table, *save(scaling.figure(found), out / "bench-scaling")):
        print(f"wrote {path}")


def _streaming(out: Path) -> None:
    print("\nstreaming rows/s (unit Gaussian rows; answers checked first; ours = 1)")
    print(
        f"{'d':>5} {'l':>4}  {'contender':24} {'rows/s':>9} {'ours is':>8} {'peak MB':>8} {'true error':>11}"
    )
    speeds: list[streaming.Speed] = []
    for speed in streaming.speeds():
        speeds.append(speed)
        ours = next(s for s in reversed(speeds) if s.contender == "sketchbandit FD")
        ratio = ours.rows_per_second / speed.rows_per_second
        print(
            f"{speed.dim:5} {speed.size:4}  {speed.contender:24} {speed.rows_per_second:9,.0f} "
            f"{ratio:7.2f}x {speed.peak_mb:8.1f} {speed.error:11.4f}",
            flush=True,
        )
    print(f"wrote {write_csv(out / 'bench-streaming.csv', streaming.Speed._fields, speeds)}")


def _low_rank() -> None:
    print("\nlow-rank stream, d = 784, l = l0 = 50 (rows/s)")
    for name, rate in streaming.low_rank_speeds().items():
        print(f"  {name:16} {rate:9,.0f}")


main()
