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
from sketchbandit.service import logs
from sketchbandit.service.server import serve as run
from sketchbandit.service.settings import MIB, Limits, Settings

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
    state: Annotated[Path, typer.Option(help="Folder of the state; made if missing.")],
    host: Annotated[
        str, typer.Option(help="Address to listen on; other than loopback only with --token-file.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0: any that is free.")] = 8000,
    token_file: Annotated[
        Path | None, typer.Option(help="Hashes of the tokens taken; made with `service token`.")
    ] = None,
    cors: Annotated[
        list[str] | None,
        typer.Option(metavar="ORIGIN", help="Let pages of this site call the service; may be repeated."),
    ] = None,
    database: DatabaseUrl = None,
    standby: Annotated[
        bool,
        typer.Option("--standby", help="Follow the server that has the database; take over when it goes."),
    ] = False,
    snapshots: Annotated[
        SnapshotPlace, typer.Option(help="Where snapshots are written; both places are read.")
    ] = SnapshotPlace.folder,
    snapshot_seconds: Annotated[
        float, typer.Option(min=0.1, help="How often a snapshot is written, if anything was learned.")
    ] = _DEFAULTS.snapshot_seconds,
    retention_days: Annotated[
        float | None,
        typer.Option(min=0.001, help="Drop answered decisions from the log after so long; by default never."),
    ] = None,
    accept_clock: Annotated[
        bool, typer.Option("--accept-clock", help="This machine's clock, far ahead of the journal, is right.")
    ] = False,
    max_body_mib: Annotated[int, typer.Option(min=1, max=256, help="Largest request.")] = Limits.body_bytes
    // MIB,
    max_requests_mib: Annotated[
        int, typer.Option(min=1, help="Memory of all requests under way; four times the largest at least.")
    ] = Limits.request_bytes // MIB,
    max_bandit_mib: Annotated[
        int, typer.Option(min=1, help="Memory that the policy of one bandit may come to need.")
    ] = Limits.bandit_bytes // MIB,
    device: Annotated[
        str | None,
        typer.Option(help="Keep bandits' many stored arms on this device of torch, such as cuda:0."),
    ] = None,
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

    Example: `sketchbandit serve --state second-state --standby --snapshots database --database
    postgresql://bandit@db/bandit`

    Example: `sketchbandit serve --state demo-state --demo`
    """
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
    from sketchbandit.client import ServiceError  # noqa: PLC0415  (in the other process only)
    from sketchbandit.service.demo import drive  # noqa: PLC0415

    with suppress(ServiceError, KeyboardInterrupt):  # the service has gone
        drive(address)
