"""The command that judges policies by a log."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import BarColumn, TaskID, TextColumn

from sketchbandit.cli.live import LiveProgress
from sketchbandit.cli.output import complaints, console, print_table
from sketchbandit.errors import InputError
from sketchbandit.evaluation import INTERVALS, METHODS, Evaluation, Replay
from sketchbandit.evaluation.report import write_report
from sketchbandit.experiments import judging

commands = typer.Typer(add_completion=False, rich_markup_mode="markdown")

Policies = Annotated[
    list[str],
    typer.Option(help="NAME or NAME:KEY=VALUE,... as for compare, or uniform; give it several times."),
]
Methods = Annotated[str, typer.Option(help=f"By which estimators, with commas: {', '.join(METHODS)}.")]
IntervalName = Annotated[str, typer.Option(help=f"{', '.join(INTERVALS)}.")]
Level = Annotated[float, typer.Option(help="How sure intervals are.")]
Split = Annotated[float | None, typer.Option(help="The share, from the start, learned from; 0.5.")]
Parts = Annotated[
    int | None, typer.Option(help="Instead: so many parts, each judging what learned from the others.")
]
Learning = Annotated[
    bool, typer.Option("--learning", help="What they earn while they learn, by replay of the log.")
]
RewardRange = Annotated[
    str | None, typer.Option(help="LEAST,MOST: what no reward leaves, for anytime intervals.")
]
MaxWeight = Annotated[
    float | None, typer.Option(help="What no weight exceeds: K/floor; for dr with anytime intervals.")
]
Jobs = Annotated[int | None, typer.Option(min=1, help="Processes at a time; by default one for each core.")]
Out = Annotated[Path, typer.Option(help="Folder for the report, the plot and the numbers.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, and nothing else.")]


class DecisionBar(LiveProgress, judging.Watcher):
    """A bar of decisions judged, with the time left."""

    def __init__(self) -> None:
        super().__init__(TextColumn("judging"), BarColumn(), TextColumn("{task.completed:,.0f} decisions"))
        self._task: TaskID | None = None

    def begin(self, decisions: int) -> None:
        """So many, by all candidates together."""
        self._task = self._progress.add_task("", total=decisions)

    def advance(self, decisions: int) -> None:
        """So many more."""
        if self._task is not None:
            self._progress.advance(self._task, decisions)


@commands.command()
def evaluate(  # noqa: PLR0917  (typer takes options so)
    log: Annotated[Path, typer.Argument(help="The log: .parquet (ours, or a service's export), .npz.")],
    policy: Policies,
    bandit: Annotated[str | None, typer.Option(help="Which one, if an export has several.")] = None,
    dim: Annotated[int | None, typer.Option(min=1, help="Length of an arm, where they are sparse.")] = None,
    methods: Methods = "ips,snips,dr",
    interval: IntervalName = "normal",
    level: Level = 0.95,
    split: Split = None,
    parts: Parts = None,
    learning: Learning = False,
    reward_range: RewardRange = None,
    max_weight: MaxWeight = None,
    jobs: Jobs = None,
    out: Out = Path("evaluation"),
    as_json: AsJson = False,
) -> None:
    """What would other policies have earned? Judged by a log, without playing them.

    Each policy learns from the beginning of the log and is judged by the rest: values with intervals by
    several estimators, the difference to the policy that made the log, and how well the log covers each.
    With --learning: what it earns while it learns, on a log of random choices. Where nothing can be said
    (a log without chance, no overlap, too few), it says so.

    Example: `sketchbandit evaluate log.parquet --policy adaptive --policy soful:size=20`

    Example: `sketchbandit evaluate log.parquet --policy oful:explore=thompson --interval bootstrap --jobs 2`

    Example: `sketchbandit evaluate log.parquet --policy adaptive --methods ips --interval anytime --json`
    """
    options = {"methods": methods, "interval": interval, "level": level, "split": split, "parts": parts}
    options |= {"reward_range": reward_range, "max_weight": max_weight, "bandit": bandit, "dim": dim}
    with complaints():
        judge(log, policy, options, learning=learning, jobs=jobs, out=out, as_json=as_json)


def judge(
    log: Path,
    policies: Sequence[str],
    options: dict[str, Any],
    *,
    learning: bool,
    jobs: int | None,
    out: Path,
    as_json: bool,
) -> None:
    """Judge, and print what came of it; ``options`` as they were written."""
    with DecisionBar() as bar:
        if learning:
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
    _show(found)
    console.print(f"report: {page}", soft_wrap=True, highlight=False, markup=False)


def _range(text: str | None) -> tuple[float, float] | None:
    if text is None:
        return None
    try:
        least, most = (float(end) for end in text.split(","))
    except ValueError as error:
        raise InputError(f"--reward-range is LEAST,MOST, such as 0,1; got {text!r}") from error
    return least, most


def _show(found: Evaluation) -> None:
    for title, header, rows in found.tables():
        print_table(title, header, rows)
    for name, why in found.verdicts().items():
        typer.secho(f"{name}: nothing can be said: {why}", err=True, fg=typer.colors.YELLOW)
    for note in found.notes:
        console.print(note, highlight=False, markup=False)


def _lives(lives: dict[str, Replay], *, as_json: bool) -> None:
    if as_json:
        rows = [{**life.estimate._asdict(), "decisions": life.decisions} for life in lives.values()]
        typer.echo(json.dumps({"replay": rows, "verdicts": {n: r.verdict for n, r in lives.items()}}))
        return
    header = ["policy", "rounds", "of decisions", "mean reward", "interval", "verdict"]
    print_table(
        "while they learn",
        header,
        [
            [
                life.policy,
                f"{life.rounds:,}",
                f"{life.decisions:,}",
                f"{life.estimate.value:.4g}",
                f"{life.estimate.low:.4g} to {life.estimate.high:.4g}",
                f"nothing can be said: {life.verdict}" if life.verdict else "good",
            ]
            for life in lives.values()
        ],
    )
