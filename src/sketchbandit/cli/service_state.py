"""The commands that look after the state of a decision service."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from sketchbandit.cli.output import complaints, console, print_table
from sketchbandit.service import checking, repairing, tokens

group = typer.Typer(
    no_args_is_help=True, rich_markup_mode="markdown", help="Look after the state of a service."
)


class ScopeName(StrEnum):
    """What a token may do; each includes those before it."""

    read = "read"
    decide = "decide"
    admin = "admin"


Folder = Annotated[Path, typer.Argument(help="The state folder of a service that is not running.")]
AnyFolder = Annotated[Path, typer.Argument(help="The state folder of a service, running or not.")]
DatabaseUrl = Annotated[
    str | None,
    typer.Option(
        envvar="SKETCHBANDIT_DATABASE",
        help="postgresql://user:password@host/name; by default SQLite inside the state folder.",
    ),
]


@group.command()
def check(folder: Folder, database: DatabaseUrl = None) -> None:
    """Verify journal and snapshots; exit status 1 if anything is wrong.

    Every row, every checksum; and the journal is played again: each snapshot must be what it leads to, bit
    for bit. Nothing is changed.

    Example: `sketchbandit service check bandit-state`
    """
    with complaints(), console.status("checking") as status:
        findings = checking.check(folder, database, tell=lambda what: status.update(f"checking {what}"))
    _print_findings(folder, findings)


@group.command()
def repair(
    folder: Folder,
    bandit: Annotated[str | None, typer.Option(help="Only this one.")] = None,
    set_aside: Annotated[
        bool,
        typer.Option("--set-aside", help="Move records that cannot be applied into a file in the folder."),
    ] = False,
    database: DatabaseUrl = None,
) -> None:
    """Find out why bandits are quarantined; exit status 1 if one cannot be started.

    Every bandit is played again as at a start. With --set-aside those records go that stand in its way: what
    they said is not learned, and a file keeps it. Without it nothing is changed.

    Example: `sketchbandit service repair bandit-state --bandit shop --set-aside`
    """
    with complaints(), console.status("repairing") as status:
        findings = repairing.repair(
            folder,
            database,
            bandit=bandit,
            set_aside=set_aside,
            tell=lambda what: status.update(f"repairing {what}"),
        )
    _print_findings(folder, findings)


def _print_findings(folder: Path, findings: list[checking.Finding]) -> None:
    rows = [[found.what, "good" if found.is_good else "BAD", found.details] for found in findings]
    print_table(f"{folder}", ["what", "verdict", "details"], rows)
    if not all(found.is_good for found in findings):
        raise typer.Exit(1)


@group.command()
def export(
    folder: AnyFolder,
    out: Annotated[Path, typer.Argument(help="The Parquet file to be written.")],
    bandit: Annotated[str | None, typer.Option(help="Only this one.")] = None,
    database: DatabaseUrl = None,
) -> None:
    """Write the decision log to a Parquet file, for off-policy evaluation.

    One row an arm shown: its features, the propensity and whether it is exact or estimated, what the policy
    had learned, the reward and whether it was given or the default. All arms offered too, for bandits
    created with log_arms. The server may run meanwhile: what was committed when it began is written.
    A file that is there is replaced.

    Example: `sketchbandit service export bandit-state log.parquet --bandit shop`
    """
    from sketchbandit.service import exporting  # noqa: PLC0415  (pyarrow takes 60 MB that a server can do without)

    with complaints(), console.status("exporting"):
        count = exporting.export(folder, out, database=database, bandit=bandit)
    console.print(f"{count} rows in {out}", highlight=False, markup=False, soft_wrap=True)


@group.command()
def evaluate(  # noqa: PLR0917  (typer takes options so)
    folder: AnyFolder,
    policy: Annotated[list[str], typer.Option(help="As for `sketchbandit evaluate`; give it several times.")],
    bandit: Annotated[str | None, typer.Option(help="Which one, where there are several.")] = None,
    methods: Annotated[str, typer.Option(help="By which estimators, with commas.")] = "ips,snips,dr",
    interval: Annotated[str, typer.Option(help="normal, bootstrap, anytime.")] = "normal",
    level: Annotated[float, typer.Option(help="How sure intervals are.")] = 0.95,
    split: Annotated[float | None, typer.Option(help="The share, from the start, learned from; 0.5.")] = None,
    reward_range: Annotated[str | None, typer.Option(help="LEAST,MOST: what no reward leaves.")] = None,
    jobs: Annotated[int | None, typer.Option(min=1, help="Processes at a time.")] = None,
    out: Annotated[Path, typer.Option(help="Folder for the report.")] = Path("evaluation"),
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, and nothing else.")] = False,
    database: DatabaseUrl = None,
) -> None:
    """What would other policies have earned? Judged by the log of a bandit, which may be running.

    `sketchbandit evaluate` on the export of this moment; the bandit must have been created with log_arms, and
    leave something to chance.

    Example: `sketchbandit service evaluate bandit-state --bandit shop --policy adaptive --policy soful`
    """
    try:
        from sketchbandit.cli.evaluate import judge  # noqa: PLC0415  (another extra)
    except ModuleNotFoundError as error:
        typer.secho(f"Error: this needs {error.name}: pip install 'sketchbandit[evaluation]'", err=True)
        raise typer.Exit(1) from error
    from sketchbandit.service import evaluating  # noqa: PLC0415  (pyarrow takes 60 MB that a server can do without)

    options = {"methods": methods, "interval": interval, "level": level, "split": split, "parts": None}
    options |= {"reward_range": reward_range, "max_weight": None, "bandit": None}
    with complaints(), evaluating.exported(folder, bandit=bandit, database=database) as (path, log):
        options["dim"] = log.context_dim or log.dim
        judge(path, policy, options, learning=False, jobs=jobs, out=out, as_json=as_json)


@group.command()
def token(
    file: Annotated[Path, typer.Argument(help="The token file; made if missing.")],
    scope: Annotated[ScopeName, typer.Option(help="What the token may do.")] = ScopeName.decide,
    name: Annotated[str, typer.Option(help="Who it is for: a word.")] = "client",
) -> None:
    """Make a token and append its hash to a file. The token is shown once and kept nowhere.

    A server that runs has to be restarted to know it. To revoke a token, remove its line.

    Example: `sketchbandit service token tokens.txt --scope admin --name ops`
    """
    with complaints():
        secret = tokens.add(file, name, scope.value)
    typer.echo(secret)
