"""The commands of the decision service: the one that runs it, and those that look after its state."""

import multiprocessing
from collections.abc import Iterator
from contextlib import contextmanager, suppress
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
from sketchbandit.cli.output import complaints, console, print_table, say
from sketchbandit.errors import SketchBanditError
from sketchbandit.extras import how_to_install
from sketchbandit_service.settings import MIB, Limits, Settings

if TYPE_CHECKING:
    from sketchbandit_service.checking import Finding

group = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="Check, repair, export or evaluate the state of a service.",
)
commands = typer.Typer(rich_markup_mode="markdown")
commands.add_typer(group, name="service")


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


class LogFormat(StrEnum):
    """How the log is written."""

    json = "json"
    text = "text"


class SnapshotPlace(StrEnum):
    """Where snapshots are written."""

    folder = "folder"
    database = "database"


_DEFAULTS = Settings(Path())


@commands.command()
def serve(  # noqa: PLR0917  (typer takes options so)
    state: Annotated[Path, typer.Option(help="Folder for the state of the service; made if missing.")],
    host: Annotated[
        str, typer.Option(help="Address to listen on; addresses beyond this machine need --token-file.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 for any free one.")] = 8000,
    token_file: Annotated[
        Path | None,
        typer.Option(help="File of accepted tokens (their hashes); make it with `service token`."),
    ] = None,
    cors: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ORIGIN",
            help="Let web pages of this origin (https://shop.example) call the service; may be repeated.",
        ),
    ] = None,
    database: DatabaseUrl = None,
    standby: Annotated[
        bool,
        typer.Option("--standby", help="Follow the server that has the database; take over when it stops."),
    ] = False,
    snapshots: Annotated[
        SnapshotPlace, typer.Option(help="Where snapshots are written. At a start both places are read.")
    ] = SnapshotPlace.folder,
    snapshot_seconds: Annotated[
        float, typer.Option(min=0.1, help="Seconds between snapshots, if anything was learned.")
    ] = _DEFAULTS.snapshot_seconds,
    retention_days: Annotated[
        float | None,
        typer.Option(min=0.001, help="Delete answered decisions after this many days; by default never."),
    ] = None,
    accept_clock: Annotated[
        bool,
        typer.Option(
            "--accept-clock", help="Trust the clock of this machine if it is far ahead of the journal."
        ),
    ] = False,
    max_body_mib: Annotated[
        int, typer.Option(min=1, max=256, help="Largest request, in MiB.")
    ] = Limits.body_bytes // MIB,
    max_requests_mib: Annotated[
        int,
        typer.Option(
            min=1, help="Memory for all requests in progress, in MiB; at least four times the largest."
        ),
    ] = Limits.request_bytes // MIB,
    max_bandit_mib: Annotated[
        int, typer.Option(min=1, help="Memory that the policy of one bandit may grow to, in MiB.")
    ] = Limits.bandit_bytes // MIB,
    device: Annotated[
        str | None,
        typer.Option(help="Keep large sets of stored arms on this device of torch, such as cuda:0."),
    ] = None,
    max_connections: Annotated[
        int, typer.Option(min=1, help="Largest number of open connections.")
    ] = Limits.connections,
    log_format: Annotated[
        LogFormat, typer.Option(help="Log lines for machines (json) or for people (text).")
    ] = LogFormat.json,
    demo: Annotated[
        bool,
        typer.Option("--demo", help="Also run a demo bandit and traffic for it; it starts anew each time."),
    ] = False,
) -> None:
    """Run the decision service: it chooses arms and learns over HTTP.

    A decision or reward is acknowledged when it is on disk. Stop the service with Ctrl-C or SIGTERM: requests
    in progress are finished first. Started again with the same folder it continues where it was, also after a
    crash. The dashboard is at the address that is printed.

    Example: `sketchbandit serve --state bandit-state`

    Example: `sketchbandit serve --state bandit-state --host 0.0.0.0 --token-file tokens.txt --database
    postgresql://bandit@db/bandit`

    Example: `sketchbandit serve --state second-state --standby --snapshots database --database
    postgresql://bandit@db/bandit`

    Example: `sketchbandit serve --state demo-state --demo`
    """
    from sketchbandit_service import logs  # noqa: PLC0415  (help needs none of it)
    from sketchbandit_service.server import serve as run  # noqa: PLC0415

    logs.configure(as_json=log_format == LogFormat.json)
    limits = Limits(
        body_bytes=max_body_mib * MIB,
        request_bytes=max(max_requests_mib, 4 * max_body_mib) * MIB,
        bandit_bytes=max_bandit_mib * MIB,
        connections=max_connections,
    )
    settings = Settings(
        state,
        database=database,
        limits=limits,
        snapshots="database" if snapshots == SnapshotPlace.database else "folder",
        snapshot_seconds=snapshot_seconds,
        retention_seconds=None if retention_days is None else retention_days * 86_400,
        accept_clock=accept_clock,
        device=device,
    )
    if demo and token_file is not None:
        raise typer.BadParameter("the demo needs no token: leave --token-file out")
    if demo and standby:
        raise typer.BadParameter("a standby has no traffic: leave --demo out")
    traffic = []

    def ready(address: str) -> None:
        typer.echo(f"{'standby' if standby else 'dashboard'}: {address}/")
        if demo:
            typer.echo("traffic: 20 decisions a second on the embedded digits; Ctrl-C ends it")
            traffic.append(_start_traffic(address))

    with _start_complaints():
        try:
            run(
                settings,
                host=host,
                port=port,
                token_file=token_file,
                cors=cors or (),
                standby=standby,
                on_ready=ready,
            )
        except KeyboardInterrupt:
            typer.echo("stopped")
        finally:
            for process in traffic:
                process.terminate()


@contextmanager
def _start_complaints() -> Iterator[None]:
    """What keeps a server from starting is one line, for those who watch it, and exit status 1."""
    try:
        yield
    except (SketchBanditError, OSError) as error:
        typer.secho(f"Error: {' '.join(str(error).split())}", err=True, fg=typer.colors.RED)
        raise typer.Exit(1) from error


def _start_traffic(address: str) -> multiprocessing.process.BaseProcess:
    process = multiprocessing.get_context("spawn").Process(target=_drive, args=(address,), daemon=True)
    process.start()
    return process


def _drive(address: str) -> None:
    from sketchbandit_service.client import ServiceError  # noqa: PLC0415  (in the other process only)
    from sketchbandit_service.demo import drive  # noqa: PLC0415

    with suppress(ServiceError, KeyboardInterrupt):  # the service has gone
        drive(address)


# -- its state ---------------------------------------------------------------------------------------


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
    say(f"{count} rows in {out}")


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
