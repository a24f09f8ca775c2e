"""The command that runs the decision service."""

import multiprocessing
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from sketchbandit.cli.service_state import DatabaseUrl, group
from sketchbandit.errors import SketchBanditError
from sketchbandit_service.settings import MIB, Limits, Settings

commands = typer.Typer(rich_markup_mode="markdown")
commands.add_typer(group, name="service")


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
        SnapshotPlace,
        typer.Option(help="Where snapshots are written. At a start both places are read."),
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
