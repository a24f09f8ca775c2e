"""The command that estimates from a log what policies would earn: its options. ``offline`` does the work."""

from pathlib import Path
from typing import Annotated

import typer

commands = typer.Typer(add_completion=False, rich_markup_mode="markdown")

Policies = Annotated[
    list[str],
    typer.Option(
        help="A policy to judge, as NAME or NAME:KEY=VALUE,... (names as for `compare`), uniform, or "
        "always:ACTION; may be repeated."
    ),
]
Methods = Annotated[
    str,
    typer.Option(
        help="The estimators, separated by commas: dm, ips, clipped, snips, dr, switch-dr, drs, "
        "drs-pessimistic."
    ),
]
IntervalName = Annotated[
    str,
    typer.Option(
        help="The kind of confidence interval: bounded (for rare rewards and heavy weights too), normal, "
        "bootstrap, or anytime (valid however often you look)."
    ),
]
Level = Annotated[float, typer.Option(help="The confidence level of the intervals.")]
Split = Annotated[
    float | None,
    typer.Option(help="The first share of the log is for learning, the rest for judging; 0.5 by default."),
]
Parts = Annotated[
    int | None,
    typer.Option(
        help="Instead of --split: this many parts; each judges policies that learned from the others."
    ),
]
RewardRange = Annotated[
    str | None,
    typer.Option(
        help="The smallest and largest possible reward, as LEAST,MOST; by default those of the log."
    ),
]
MaxWeight = Annotated[
    float | None,
    typer.Option(
        help="The largest possible importance weight, arms / floor; anytime intervals of dr need it."
    ),
]
Jobs = Annotated[int | None, typer.Option(min=1, help="Number of processes; by default one for each core.")]
Out = Annotated[Path, typer.Option(help="Folder for the report, the plot and the numbers.")]
Fresh = Annotated[bool, typer.Option("--fresh", help="Replace the evaluation that is in the folder.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print only JSON.")]


@commands.command()
def evaluate(  # noqa: PLR0917  (typer takes options so)
    log: Annotated[
        Path,
        typer.Argument(help="The log: a .parquet file (ours, or the export of a service), .npz or .csv."),
    ],
    policy: Policies,
    bandit: Annotated[
        str | None, typer.Option(help="The bandit to evaluate, if the export has several.")
    ] = None,
    dim: Annotated[
        int | None, typer.Option(min=1, help="Number of features of an arm, if the arms are sparse.")
    ] = None,
    methods: Methods = "ips,snips,dr",
    interval: IntervalName = "bounded",
    level: Level = 0.95,
    split: Split = None,
    parts: Parts = None,
    learning: Annotated[
        bool, typer.Option("--learning", help="Replay the log: what does each policy earn while it learns?")
    ] = False,
    reward_range: RewardRange = None,
    max_weight: MaxWeight = None,
    jobs: Jobs = None,
    out: Out = Path("evaluation"),
    fresh: Fresh = False,
    as_json: AsJson = False,
) -> None:
    """Estimate from a log what other policies would have earned.

    Nothing is played. Each policy learns from the first part of the log and is judged by the rest. The
    answer has values with confidence intervals by several estimators, the difference to the policy that made
    the log, and how well the log covers each policy. With --learning the log is replayed instead; this needs
    a log of random choices. If a log cannot answer the question, the command says why: the choices were not
    random, the policies do not overlap, or there are too few decisions.

    Example: `sketchbandit evaluate log.parquet --policy adaptive --policy soful:size=20`

    Example: `sketchbandit evaluate log.parquet --policy oful:explore=thompson --interval bootstrap --out b`

    Example: `sketchbandit evaluate log.parquet --policy adaptive --methods ips --interval anytime --fresh`
    """
    from sketchbandit.cli.offline import judge  # noqa: PLC0415  (help needs none of it)
    from sketchbandit.cli.output import complaints  # noqa: PLC0415

    options = {"methods": methods, "interval": interval, "level": level, "split": split, "parts": parts}
    options |= {"reward_range": reward_range, "max_weight": max_weight, "bandit": bandit, "dim": dim}
    with complaints():
        judge(log, policy, options, learning=learning, jobs=jobs, out=out, fresh=fresh, as_json=as_json)
