"""The commands that look after the state of a decision service."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sketchbandit.cli.evaluate import (
    AsJson,
    Fresh,
    IntervalName,
    Jobs,
    Level,
    MaxWeight,
    Methods,
    Out,
    Parts,
    Policies,
    RewardRange,
    Split,
)
from sketchbandit.cli.output import complaints, console, print_table
from sketchbandit.extras import how_to_install

if TYPE_CHECKING:
    from sketchbandit_service.checking import Finding

group = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="Check, repair, export or evaluate the state of a service.",
)


class ScopeName(StrEnum):
    """What a token may do; each includes those before it."""

    read = "read"
    decide = "decide"
    admin = "admin"


Folder = Annotated[Path, typer.Argument(help="State folder of a service. Stop the service first.")]
AnyFolder = Annotated[Path, typer.Argument(help="State folder of a service, which may be running.")]
OneBandit = Annotated[str | None, typer.Option(help="Only this bandit; by default all.")]
DatabaseUrl = Annotated[
    str | None,
    typer.Option(
        envvar="SKETCHBANDIT_DATABASE",
        help="Database, postgresql://user:password@host/name; by default SQLite in the state folder.",
    ),
]


@group.command()
def check(folder: Folder, database: DatabaseUrl = None) -> None:
    """Verify the journal and the snapshots; exit status 1 if anything is wrong.

    Reads every row and every checksum. Then it replays the journal: each snapshot must equal the result, bit
    for bit. Nothing is changed.

    Example: `sketchbandit service check bandit-state`
    """
    from sketchbandit_service import checking  # noqa: PLC0415  (help needs none of it)

    with complaints(), console.status("checking") as status:
        findings = checking.check(folder, database, tell=lambda what: status.update(f"checking {what}"))
    _print_findings(folder, findings)


@group.command()
def repair(
    folder: Folder,
    bandit: OneBandit = None,
    set_aside: Annotated[
        bool,
        typer.Option("--set-aside", help="Move records that cannot be applied into a file in the folder."),
    ] = False,
    database: DatabaseUrl = None,
) -> None:
    """Find out why bandits are quarantined; exit status 1 if one cannot be started.

    Replays the journal of every bandit, as at a start. Without --set-aside nothing is changed. With it the
    records that cannot be applied are moved into a file: the bandit starts, and has not learned from them.

    Example: `sketchbandit service repair bandit-state --bandit shop --set-aside`
    """
    from sketchbandit_service import repairing  # noqa: PLC0415  (help needs none of it)

    with complaints(), console.status("repairing") as status:
        findings = repairing.repair(
            folder,
            database,
            bandit=bandit,
            set_aside=set_aside,
            tell=lambda what: status.update(f"repairing {what}"),
        )
    _print_findings(folder, findings)


def _print_findings(folder: Path, findings: "list[Finding]") -> None:
    rows = [[found.what, "good" if found.is_good else "BAD", found.details] for found in findings]
    print_table(f"{folder}", ["what", "verdict", "details"], rows)
    if not all(found.is_good for found in findings):
        raise typer.Exit(1)


@group.command()
def export(
    folder: AnyFolder,
    out: Annotated[Path, typer.Argument(help="The Parquet file to write; an existing file is replaced.")],
    bandit: OneBandit = None,
    database: DatabaseUrl = None,
) -> None:
    """Write the decision log to a Parquet file, for off-policy evaluation.

    One row for each arm that was shown: its features, its propensity (exact or estimated), how many rounds
    the policy had learned from, the reward, and whether the reward was given or the default. Bandits created
    with log_arms have all arms that were offered. The service may run: the file has what was committed when
    the export began.

    Example: `sketchbandit service export bandit-state log.parquet --bandit shop`
    """
    from sketchbandit_service import exporting  # noqa: PLC0415  (pyarrow takes 60 MB that a server can do without)

    with complaints(), console.status("exporting"):
        count = exporting.export(folder, out, database=database, bandit=bandit)
    console.print(f"{count} rows in {out}", highlight=False, markup=False, soft_wrap=True)


@group.command()
def evaluate(  # noqa: PLR0917  (typer takes options so)
    folder: AnyFolder,
    policy: Policies,
    bandit: Annotated[
        str | None, typer.Option(help="The bandit to evaluate, if the service has several.")
    ] = None,
    methods: Methods = "ips,snips,dr",
    interval: IntervalName = "bounded",
    level: Level = 0.95,
    split: Split = None,
    parts: Parts = None,
    reward_range: RewardRange = None,
    max_weight: MaxWeight = None,
    jobs: Jobs = None,
    out: Out = Path("evaluation"),
    fresh: Fresh = False,
    as_json: AsJson = False,
    database: DatabaseUrl = None,
) -> None:
    """Estimate from the log of a bandit what other policies would have earned.

    Exports the log as it is now, and runs `sketchbandit evaluate` on it. The service may run. The bandit must
    have been created with log_arms, and must choose with some randomness.

    Example: `sketchbandit service evaluate bandit-state --bandit shop --policy adaptive --policy soful`
    """
    try:
        from sketchbandit.cli.offline import judge  # noqa: PLC0415  (another extra)
    except ModuleNotFoundError as error:
        install = how_to_install("evaluation")
        typer.secho(f"Error: service evaluate needs {error.name}: {install}", err=True, fg=typer.colors.RED)
        raise typer.Exit(1) from error
    from sketchbandit_service import evaluating  # noqa: PLC0415  (pyarrow takes 60 MB that a server can do without)

    options = {"methods": methods, "interval": interval, "level": level, "split": split, "parts": parts}
    options |= {"reward_range": reward_range, "max_weight": max_weight, "bandit": None}
    with complaints(), evaluating.exported(folder, bandit=bandit, database=database) as (path, log):
        options["dim"] = log.context_dim or log.dim
        judge(path, policy, options, learning=False, jobs=jobs, out=out, fresh=fresh, as_json=as_json)


@group.command()
def token(
    file: Annotated[Path, typer.Argument(help="The token file; made if missing.")],
    scope: Annotated[
        ScopeName, typer.Option(help="What the token allows; each scope includes those before it.")
    ] = ScopeName.decide,
    name: Annotated[str, typer.Option(help="Who the token is for: one word.")] = "client",
) -> None:
    """Make a token and add its hash to a file. The token is printed once and stored nowhere.

    A running service reads the file when it starts: restart it. To revoke a token, delete its line.

    Example: `sketchbandit service token tokens.txt --scope admin --name ops`
    """
    from sketchbandit_service import tokens  # noqa: PLC0415  (help needs none of it)

    with complaints():
        secret = tokens.add(file, name, scope.value)
    typer.echo(secret)
