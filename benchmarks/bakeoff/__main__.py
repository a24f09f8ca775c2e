"""Run the bake-off: ``make bakeoff``, or ``python -m benchmarks.bakeoff``.

Results are kept, so that a stopped bake-off goes on where it was. Then speeds are measured, and the page
is written.
"""

import argparse
import resource
import warnings
from collections.abc import Sequence
from pathlib import Path

from threadpoolctl import threadpool_limits

import sketchbandit as sb
from benchmarks.bakeoff.board import Board
from benchmarks.bakeoff.contestants import CONTESTANTS, Contestant
from benchmarks.bakeoff.page import write_page
from benchmarks.bakeoff.remote import MEMORY
from benchmarks.bakeoff.running import Limits, Run, arena, measure_speed, missing, play_missing
from benchmarks.bakeoff.store import Store
from benchmarks.bakeoff.streams import CONDITIONS, SETS, data_set, streams
from sketchbandit.cli.experiments import Bar


def main(arguments: Sequence[str] | None = None) -> None:
    """Play what is missing, measure speeds, write the page."""
    options = _options(arguments)
    results, speeds = (Store(options.out / name) for name in ("results.jsonl", "speeds.jsonl"))
    if not options.report:
        chosen = _chosen(options.only)
        _check_data(options.sets)
        names = [one.name for one in chosen]
        if options.fresh and not options.speed:
            results.forget(names, options.sets, options.conditions)
        if options.fresh:
            speeds.forget(names, options.sets, ["speed"])
        with threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore", sb.SketchTooSmallWarning)  # the paper's sizes are what they are
            _play(options, chosen, results, speeds)
    if not results.results:
        raise SystemExit(f"{results.path} holds no results yet: run without --report first")
    board = Board(results.results.values(), speeds.results.values(), rounds=options.rounds)
    written = write_page(
        board,
        options.page,
        rounds=options.rounds,
        seeds=options.seeds,
    )
    print("wrote", *written)


def _play(options: argparse.Namespace, chosen: list[Contestant], results: Store, speeds: Store) -> None:
    limits = Limits(options.limit, options.cell)
    with arena(options.out / "environments") as place, Bar() as bar:
        for condition in [] if options.speed else options.conditions:
            for data in options.sets:
                runs = [
                    Run(contestant, stream, CONDITIONS[condition], options.rounds)
                    for stream in streams(data, options.seeds)
                    for contestant in chosen
                    if condition == "plain" or contestant.kind != "mark"  # which does not learn
                ]
                left = missing(runs, results)
                bar.stage(f"{data}, {condition}", len(runs), len(runs) - len(left))
                play_missing(left, results, place, limits, bar)
        if options.no_speed:
            return
        bar.stage("speed", len(options.sets), 0)
        for data in options.sets:
            measure_speed(chosen, data, speeds, results, place)
            bar.advance(1)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bakeoff", description=__doc__)
    add = parser.add_argument
    add("--out", type=Path, default=Path("results/bakeoff"), help="folder for results and environments")
    add("--page", type=Path, default=Path("docs/bakeoff.md"), help="where the page is written")
    add("--only", nargs="+", default=[""], metavar="TEXT", help="contestants with one of these in their name")
    add("--sets", nargs="+", choices=SETS, default=SETS, metavar="SET", help=", ".join(SETS))
    add("--conditions", nargs="+", choices=tuple(CONDITIONS), default=tuple(CONDITIONS))
    add(
        "--seeds", type=int, default=3, choices=range(1, 11), metavar="N", help="for every target, at most 10"
    )
    add("--rounds", type=int, default=2000)
    add("--limit", type=float, default=120.0, help="seconds that one run may take")
    add("--cell", type=float, default=150.0, help="seconds for a contestant on a set under a condition")
    add("--fresh", action="store_true", help="forget the results of what is chosen, and play anew")
    add("--no-speed", action="store_true", help="do not measure speeds: the machine is busy")
    add("--speed", action="store_true", help="measure speeds only")
    add("--report", action="store_true", help="write the page from the results there are; play nothing")
    return parser.parse_args(arguments)


def _chosen(texts: list[str]) -> list[Contestant]:
    chosen = [one for one in CONTESTANTS if any(text in one.name for text in texts)]
    if not chosen:
        names = ", ".join(one.name for one in CONTESTANTS)
        raise SystemExit(f"nobody is called {' or '.join(texts)}; choose a part of: {names}")
    return chosen


def _check_data(names: list[str]) -> None:
    """Every data set is read before the first run, so that none is missing an hour later."""
    for name in names:
        try:
            data_set(name)
        except FileNotFoundError as error:
            raise SystemExit(f"{error}\nor leave it out with --sets") from error


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    main()
