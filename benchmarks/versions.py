"""Rounds per second of two versions side by side: ``python -m benchmarks.versions --before OTHER/CHECKOUT``.

Each version runs in a process of its own, on the same streams; they take turns, and the best of five counts.
The totals of the rewards are compared first: a version that chooses otherwise is not timed in vain.
"""

import argparse
import json
import os
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

TURNS = 5  # and more on a machine that others use too
STREAMS = {"Gaussian d=57": (57, 6000), "Gaussian d=784": (784, 2000), "Gaussian d=5000": (5000, 300)}
_SQUARE = ("oful", "dbslinucb", "adaptive")  # d² on a flat spectrum: not for 5000 dimensions


def main() -> None:
    """Print a table of ratios, after/before."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.versions", description=__doc__)
    parser.add_argument("--before", type=Path, help="the root of the other checkout")
    parser.add_argument("--only", help="streams whose name contains this")
    parser.add_argument("--turns", type=int, default=TURNS, help="how often each plays; the best counts")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        _work()
    elif options.before is None:
        parser.error("--before is needed: the root of the other checkout")
    else:
        _compare(options.before, options.only, options.turns)


def _compare(before: Path, only: str | None, turns: int) -> None:
    here = Path(__file__).parents[1]
    workers = {"before": _start(before), "after": _start(here)}
    print(f"{'stream':18} {'policy':10} {'before':>9} {'after':>9} {'ratio':>6}   rounds/s, best of {turns}")
    for stream in [*STREAMS, "images"]:
        if only and only not in stream:
            continue
        for policy in ("oful", "cbrap", "soful", "cbscfd", "dbslinucb", "adaptive"):
            if stream.endswith("5000") and policy in _SQUARE:
                continue
            best = dict.fromkeys(workers, 0.0)
            rewards = dict.fromkeys(workers, 0.0)
            for _ in range(turns):
                for name, worker in workers.items():
                    rate, rewards[name] = _ask(worker, stream, policy)
                    best[name] = max(best[name], rate)
            ratio = best["after"] / best["before"]
            same = "" if rewards["before"] == rewards["after"] else f"  other choices: {rewards}"
            print(
                f"{stream:18} {policy:10} {best['before']:9,.0f} {best['after']:9,.0f} {ratio:6.3f}{same}",
                flush=True,
            )
    for worker in workers.values():
        worker.kill()


def _start(root: Path) -> "subprocess.Popen[str]":
    environment = {
        **os.environ,
        **dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1"),
        "PYTHONPATH": str(root / "src"),
    }
    return subprocess.Popen(
        [sys.executable, "-m", "benchmarks.versions", "--worker"],
        cwd=Path(__file__).parents[1],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def _ask(worker: "subprocess.Popen[str]", stream: str, policy: str) -> tuple[float, float]:
    if worker.stdin is None or worker.stdout is None:
        raise RuntimeError("the worker was started without pipes")
    worker.stdin.write(json.dumps([stream, policy]) + "\n")
    worker.stdin.flush()
    rate, reward = json.loads(worker.stdout.readline())
    return rate, reward


def _work() -> None:
    """Play what is asked for, with whatever version of the package is on the path."""
    import sketchbandit as sb  # noqa: PLC0415  (the version that the path names)
    from benchmarks.policy_speed import OURS, play  # noqa: PLC0415
    from benchmarks.policy_streams import classification, gaussian  # noqa: PLC0415

    warnings.simplefilter("ignore", sb.SketchTooSmallWarning)
    made: dict[str, Any] = {}
    for line in sys.stdin:
        stream, policy = json.loads(line)
        if stream not in made:
            made[stream] = gaussian(*STREAMS[stream]) if stream in STREAMS else classification(2000)
            play(OURS["soful"](made[stream].dim), made[stream], 60)  # compiled loops are loaded
        rounds = len(made[stream].arms)
        seconds, reward, _ = play(OURS[policy](made[stream].dim), made[stream], rounds)
        sys.stdout.write(json.dumps([rounds / seconds, reward]) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
