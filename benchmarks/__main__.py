"""Run every benchmark: ``make bench``, or ``python -m benchmarks --out results``."""

import argparse
import platform
from pathlib import Path

import numpy as np
import scipy
from threadpoolctl import threadpool_info, threadpool_limits

from benchmarks import (
    all_targets,
    dask_scaling,
    out_of_core,
    pca_speed,
    policy_scaling,
    policy_speed,
    scaling,
    service_costs,
    service_load,
    streaming,
    which_tool,
)
from benchmarks.policy_rivals import has_vowpal_wabbit
from sketchbandit.drawing import save
from sketchbandit.kernels import kernels
from sketchbandit_paper.tables import write_csv


def main() -> None:
    """Check, time, print, and write the tables and the scaling plots."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("results"), help="folder for tables and plots")
    parser.add_argument(
        "--only", choices=("sketches", "policies", "service", "large"), help="one part of them"
    )
    options = parser.parse_args()
    out: Path = options.out
    out.mkdir(parents=True, exist_ok=True)
    with threadpool_limits(1):
        blas = sorted({f"{pool['internal_api']} {pool['version']}" for pool in threadpool_info()})
        print(
            f"numpy {np.__version__}, scipy {scipy.__version__}, {', '.join(blas)}, "
            f"{platform.machine()}, one thread"
        )
        if options.only in (None, "sketches"):
            _streaming(out)
            _low_rank()
            print("\nscaling of the sketch over n, d and l (a minute or two) ...", flush=True)
            _scaling(out, "bench-scaling", scaling.points(), scaling.BASE, "seconds, one thread")
        if options.only in (None, "policies"):
            _policies(out)
            _many_arms()
            _all_targets(out)
            print("\nscaling of a round over d, l and K (a minute) ...", flush=True)
            found = policy_scaling.points()
            _scaling(out, "bench-policy-scaling", found, policy_scaling.BASE, "seconds a round, one thread")
        if options.only in (None, "service"):
            print("\nthe decision service, on this machine together with its clients")
            service_costs.main()
            service_load.main([])
    if options.only in (None, "large"):
        _large(out)


def _large(out: Path) -> None:
    print("\nleading directions by every usual tool (minutes)")
    which_tool.run(out)
    print()
    pca_speed.main()
    print("\na matrix on disk: 2 GB here; python -m benchmarks.out_of_core --gigabytes 10 takes ten minutes")
    out_of_core.measure(2.0)
    print("\nDask, one worker and two")
    dask_scaling.main()


def _scaling(out: Path, name: str, found: list[scaling.Point], base: dict[str, int], ylabel: str) -> None:
    table = write_csv(out / f"{name}.csv", scaling.Point._fields, found)
    for path in (table, *save(scaling.figure(found, base=base, ylabel=ylabel), out / name)):
        print(f"wrote {path}")


def _policies(out: Path) -> None:
    print("\nrounds/s, select + update (l = l0 = 50, epsilon 8, ridge 1, beta 0.1; scores checked first)")
    if kernels() is None:
        print("numba is not installed: the loops of a round run in numpy")
    if not has_vowpal_wabbit():
        print("vowpal-wabbit-next is not installed: left out")
    head = f"{'stream':18} {'contender':18} {'rounds/s':>9}"
    print(f"{head} {'x tuned':>8} {'x vw':>7} {'peak MB':>8} {'reward':>7}")
    found = list(policy_speed.speeds())
    for speed in found:
        rates = {s.contender: s.rounds_per_second for s in found if s.stream == speed.stream}
        beside = [
            f"{speed.rounds_per_second / rates[name]:.2f}" if name in rates else "-"
            for name in (policy_speed.TUNED, policy_speed.WABBIT)
        ]
        print(
            f"{speed.stream:18} {speed.contender:18} {speed.rounds_per_second:9,.0f} {beside[0]:>8} "
            f"{beside[1]:>7} {speed.peak_mb:8.2f} {speed.mean_reward:7.3f}"
        )
    print(f"wrote {write_csv(out / 'bench-policies.csv', policy_speed.Speed._fields, found)}")


def _all_targets(out: Path) -> None:
    ridges = ", ".join(f"{ridge:g}" for ridge in all_targets.RIDGES)
    print(f"\nregret and cost, {all_targets.ROUNDS} rounds, all targets; beta 0.1, best ridge of {ridges}")
    head = f"{'data':10} {'contender':26} {'ridge':>5} {'regret':>7}"
    print(f"{head} {'seconds':>8} {'x tuned':>8} {'KiB':>6} {'%':>4}")
    found: list[all_targets.Score] = []
    for score in all_targets.scores():
        found.append(score)
        rival = next(s for s in found if s.data == score.data)
        print(
            f"{score.data:10} {score.contender:26} {score.ridge:5g} {score.regret:7.1f} {score.seconds:8.4f} "
            f"{rival.seconds / score.seconds:8.2f} {score.peak_kib:6.0f} "
            f"{100 * score.peak_kib / rival.peak_kib:4.0f}",
            flush=True,
        )
    print(f"wrote {write_csv(out / 'bench-all-targets.csv', all_targets.Score._fields, found)}")


def _many_arms() -> None:
    best = policy_speed.many_arms()
    ratio = best["select"] / best["arms @ theta"]
    print(
        f"\n1000 image arms after 500 rounds, soful: select {best['select']:.0f} µs, "
        f"arms @ theta {best['arms @ theta']:.0f} µs, ratio {ratio:.2f}"
    )


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
