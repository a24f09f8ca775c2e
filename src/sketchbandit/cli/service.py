"""The commands of the decision service."""

import multiprocessing
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from sketchbandit.cli.output import complaints, console, print_table
from sketchbandit.service import checking, logs, tokens
from sketchbandit.service.server import serve as run
from sketchbandit.service.settings import MIB, Limits, Settings

commands = typer.Typer(rich_markup_mode="markdown")
group = typer.Typer(
    no_args_is_help=True, rich_markup_mode="markdown", help="Look after the state of a service."
)
commands.add_typer(group, name="service")


class LogFormat(StrEnum):
    """How the log is written."""

    json = "json"
    text = "text"


class ScopeName(StrEnum):
    """What a token may do; each includes those before it."""

    read = "read"
    decide = "decide"
    admin = "admin"


Folder = Annotated[Path, typer.Argument(help="The state folder of a service that is not running.")]
DatabaseUrl = Annotated[
    str | None,
    typer.Option(
        envvar="SKETCHBANDIT_DATABASE",
        help="postgresql://user:password@host/name; by default SQLite inside the state folder.",
    ),
]
_DEFAULTS = Settings(Path())


@commands.command()
def serve(  # noqa: PLR0917  (typer takes options so)
    state: Annotated[Path, typer.Option(help="Folder of the state; made if missing.")],
    host: Annotated[
        str, typer.Option(help="Address to listen on; other than loopback only with --token-file.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0: any that is free.")] = 8000,
    token_file: Annotated[
        Path | None, typer.Option(help="Hashes of the tokens taken; made with `service token`.")
    ] = None,
    database: DatabaseUrl = None,
    snapshot_seconds: Annotated[
        float, typer.Option(min=0.1, help="How often a snapshot is written, if anything was learned.")
    ] = _DEFAULTS.snapshot_seconds,
    retention_days: Annotated[
        float | None,
        typer.Option(min=0.001, help="Drop answered decisions from the log after so long; by default never."),
    ] = None,
    max_body_mib: Annotated[int, typer.Option(min=1, max=256, help="Largest request.")] = Limits.body_bytes
    // MIB,
    max_bandit_mib: Annotated[
        int, typer.Option(min=1, help="Memory that the policy of one bandit may come to need.")
    ] = Limits.bandit_bytes // MIB,
    max_connections: Annotated[int, typer.Option(min=1, help="Connections at once.")] = Limits.connections,
    log_format: Annotated[LogFormat, typer.Option(help="For machines or for people.")] = LogFormat.json,
    demo: Annotated[
        bool, typer.Option("--demo", help="With traffic for a demo bandit, which begins anew each time.")
    ] = False,
) -> None:
    """Run the decision service: decisions and rewards over HTTP, durable, with a dashboard.

    Decisions and rewards are acknowledged when they are on disk. End it with Ctrl-C or SIGTERM: requests
    under way are finished. Started again on the same folder it goes on where it was, also after a crash.

    Example: `sketchbandit serve --state bandit-state`

    Example: `sketchbandit serve --state bandit-state --host 0.0.0.0 --token-file tokens.txt --database
    postgresql://bandit@db/bandit`

    Example: `sketchbandit serve --state demo-state --demo`
    """
    logs.configure(as_json=log_format == LogFormat.json)
    limits = Limits(
        body_bytes=max_body_mib * MIB, bandit_bytes=max_bandit_mib * MIB, connections=max_connections
    )
    settings = Settings(
        state,
        database=database,
        limits=limits,
        snapshot_seconds=snapshot_seconds,
        retention_seconds=None if retention_days is None else retention_days * 86_400,
    )
    if demo and token_file is not None:
        raise typer.BadParameter("the demo needs no token: leave --token-file out")
    traffic = []

    def ready(address: str) -> None:
        typer.echo(f"dashboard: {address}/")
        if demo:
            typer.echo("traffic: 20 decisions a second on the embedded digits; Ctrl-C ends it")
            traffic.append(_start_traffic(address))

    with complaints():
        try:
            run(settings, host=host, port=port, token_file=token_file, on_ready=ready)
        except KeyboardInterrupt:
            typer.echo("stopped")
        finally:
            for process in traffic:
                process.terminate()


def _start_traffic(address: str) -> multiprocessing.process.BaseProcess:
    process = multiprocessing.get_context("spawn").Process(target=_drive, args=(address,), daemon=True)
    process.start()
    return process


def _drive(address: str) -> None:
    from sketchbandit.client import ServiceError  # noqa: PLC0415  (in the other process only)
    from sketchbandit.service.demo import drive  # noqa: PLC0415

    with suppress(ServiceError, KeyboardInterrupt):  # the service has gone
        drive(address)


@group.command()
def check(folder: Folder, database: DatabaseUrl = None) -> None:
    """Verify journal and snapshots; exit status 1 if anything is wrong.

    Every row, every checksum; and the journal is played again: each snapshot must be what it leads to, bit
    for bit. Nothing is changed.

    Example: `sketchbandit service check bandit-state`
    """
    with complaints(), console.status("checking") as status:
        findings = checking.check(folder, database, tell=lambda what: status.update(f"checking {what}"))
    rows = [[found.what, "good" if found.is_good else "BAD", found.details] for found in findings]
    print_table(f"{folder}", ["what", "verdict", "details"], rows)
    if not all(found.is_good for found in findings):
        raise typer.Exit(1)


@group.command()
def export(
    folder: Folder,
    out: Annotated[Path, typer.Argument(help="The Parquet file to be written.")],
    bandit: Annotated[str | None, typer.Option(help="Only this one.")] = None,
    database: DatabaseUrl = None,
) -> None:
    """Write the decision log to a Parquet file, for off-policy evaluation.

    One row an arm shown: its features, the propensity and whether it is exact or estimated, what the policy
    had learned, the reward and whether it was given or the default. All arms offered too, for bandits
    created with log_arms.
    A file that is there is replaced.

    Example: `sketchbandit service export bandit-state log.parquet --bandit shop`
    """
    from sketchbandit.service import exporting  # noqa: PLC0415  (pyarrow takes 60 MB that a server can do without)

    with complaints(), console.status("exporting"):
        count = exporting.export(folder, out, database=database, bandit=bandit)
    console.print(f"{count} rows in {out}", highlight=False, markup=False, soft_wrap=True)


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
