"""Run the bake-off: ``make bakeoff``, or ``python -m benchmarks.bakeoff``."""

import argparse
import resource
from pathlib import Path

from threadpoolctl import threadpool_limits

from benchmarks.bakeoff.contestants import CONTESTANTS, Contestant
from benchmarks.bakeoff.remote import MEMORY
from benchmarks.bakeoff.running import Limits, Run, arena, missing, play_missing
from benchmarks.bakeoff.store import Store
from benchmarks.bakeoff.streams import CONDITIONS, SETS, streams
from sketchbandit.cli.progress import Bar


def main() -> None:
    """Play what is missing, then write the page."""
    options = _options()
    store = Store(options.out / "results.jsonl")
    chosen = _chosen(options.only)
    if options.fresh:
        store.forget([one.name for one in chosen], options.sets, options.conditions)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    with threadpool_limits(1), arena(options.out / "environments") as place, Bar() as bar:
        for condition in options.conditions:
            for data in options.sets:
                runs = [
                    Run(contestant, stream, CONDITIONS[condition], options.rounds)
                    for stream in streams(data, options.seeds)
                    for contestant in chosen
                ]
                left = missing(runs, store)
                bar.stage(f"{data}, {condition}", len(runs), len(runs) - len(left))
                play_missing(left, store, place, Limits(options.limit, options.cell), bar)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bakeoff", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("results/bakeoff"), help="folder for the results")
    parser.add_argument("--only", nargs="+", default=[""], metavar="TEXT", help="contestants whose name has one of these in it")
    parser.add_argument("--sets", nargs="+", choices=SETS, default=SETS, metavar="SET", help=", ".join(SETS))
    parser.add_argument("--conditions", nargs="+", choices=tuple(CONDITIONS), default=tuple(CONDITIONS))
    parser.add_argument("--seeds", type=int, default=3, help="seeds for every target, at most 10")
    parser.add_argument("--rounds", type=int, default=2000)
    parser.add_argument("--limit", type=float, default=120.0, help="seconds that one run may take")
    parser.add_argument("--cell", type=float, default=150.0, help="seconds for a contestant, set and condition")
    parser.add_argument("--fresh", action="store_true", help="forget the results of what is chosen, and play anew")
    return parser.parse_args()


def _chosen(texts: list[str]) -> list[Contestant]:
    chosen = [one for one in CONTESTANTS if any(text in one.name for text in texts)]
    if not chosen:
        names = ", ".join(one.name for one in CONTESTANTS)
        raise SystemExit(f"nobody is called {' or '.join(texts)}; choose a part of: {names}")
    return chosen


main()
