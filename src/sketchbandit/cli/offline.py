"""Judging policies by a log, and printing what came of it."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import typer
from rich.progress import BarColumn, TextColumn

from sketchbandit.arrays import Scalars
from sketchbandit.cli.output import LiveProgress, console, print_table, say
from sketchbandit.errors import InputError, SketchBanditError
from sketchbandit.evaluation import Replay
from sketchbandit.evaluation.report import FILES, write_report
from sketchbandit.evaluation.results import numbers, plain
from sketchbandit.simulation import judging

_OPTIONS = {
    "methods=('ips',), or 'dr' with max_weight": "--methods ips, or --methods dr with --max-weight",
    "reward_range=(least, most)": "--reward-range LEAST,MOST",
    "reward_range": "--reward-range",
    "max_weight": "--max-weight",
}
"""What the library calls by the names of its arguments, as options."""


class DecisionBar(LiveProgress, judging.DecisionProgress):
    """A bar of decisions judged, with the time left."""

    def __init__(self) -> None:
        super().__init__(TextColumn("judging"), BarColumn(), TextColumn("{task.completed:,.0f} decisions"))

    def begin(self, decisions: int) -> None:
        """So many, by all candidates together."""
        self._task = self._progress.add_task("", total=decisions)


def judge(
    log: Path,
    policies: Sequence[str],
    options: Scalars,
    *,
    learning: bool,
    jobs: int | None,
    out: Path,
    fresh: bool,
    as_json: bool,
) -> None:
    """Judge, and print what came of it; ``options`` as they were written."""
    if not (learning or fresh) and any((out / name).exists() for name in FILES):
        raise InputError(
            f"{out} holds an evaluation already: replace it (--fresh), or choose another folder (--out)"
        )
    with _said_as_options(), DecisionBar() as bar:
        if learning:
            _refuse_unused(options)
            some = {name: options[name] for name in ("bandit", "dim", "level")}
            lives = judging.replay(log, policies, jobs=jobs, watcher=bar, **some)
        else:
            chosen = {**options, "methods": options["methods"].split(",")}
            chosen["reward_range"] = _range(options["reward_range"])
            found = judging.evaluate(log, policies, jobs=jobs, watcher=bar, **chosen)
    if learning:
        _lives(lives, as_json=as_json)
        return
    page = write_report(found, out, title=f"What would they have earned? {log.name}")
    if as_json:
        typer.echo(json.dumps(found.to_json()))
        return
    for title, header, rows in found.tables():
        print_table(title, header, rows)
    _doubt(found.verdicts())
    for note in found.notes:
        console.print(note, highlight=False, markup=False)
    say(f"report: {page}")


@contextmanager
def _said_as_options() -> Iterator[None]:
    """What is refused by the name of an argument is refused by that of the option."""
    try:
        yield
    except SketchBanditError as error:
        said = str(error)
        for argument, option in _OPTIONS.items():
            said = said.replace(argument, option)
        if said == str(error):
            raise
        raise InputError(said) from error


def _refuse_unused(options: Scalars) -> None:
    """Refuse what a replay does not heed, where it was given."""
    given = [name for name in ("split", "parts", "reward_range", "max_weight") if options[name] is not None]
    given += ["interval"] if options["interval"] != "bounded" else []
    if given:
        said = ", ".join(f"--{name.replace('_', '-')}" for name in given)
        raise InputError(f"--learning replays the whole log, with bounded intervals; leave out {said}")


def _range(text: str | None) -> tuple[float, float] | None:
    if text is None:
        return None
    try:
        least, most = (float(end) for end in text.split(","))
    except ValueError as error:
        raise InputError(f"--reward-range is LEAST,MOST, such as 0,1; got {text!r}") from error
    return least, most


def _doubt(verdicts: Mapping[str, str]) -> None:
    """Why nothing can be said of some."""
    for name, why in verdicts.items():
        typer.secho(f"{name}: nothing can be said: {why}", err=True, fg=typer.colors.YELLOW)


def _lives(lives: dict[str, Replay], *, as_json: bool) -> None:
    if as_json:
        rows = [{**plain(life.estimate), "decisions": life.decisions} for life in lives.values()]
        typer.echo(json.dumps({"replay": rows, "verdicts": {n: r.verdict for n, r in lives.items()}}))
        return
    shown_values = numbers([life.estimate for life in lives.values()])
    header = ["policy", "rounds", "of decisions", "mean reward", "interval", "judged"]
    print_table(
        "while they learn",
        header,
        [
            [life.policy, f"{life.rounds:,}", f"{life.decisions:,}", *shown, "no" if life.verdict else "yes"]
            for life, shown in zip(lives.values(), shown_values, strict=True)
        ],
    )
    _doubt({name: life.verdict for name, life in lives.items() if life.verdict})
