"""The command line. A command's module is imported when the command is asked for.

So ``--help`` is quick, a server does not carry what draws figures, and a command whose extra is missing says
so without taking the others with it.
"""

from importlib import import_module
from typing import Annotated, Any, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup

from sketchbandit._version import __version__
from sketchbandit.extras import how_to_install


class Entry(NamedTuple):
    """What is known of a command before its module is imported."""

    module: str
    """It is in ``sketchbandit.cli.MODULE``."""
    extra: str
    """What has to be installed for it."""
    summary: str
    """The first line of its own help."""


COMMANDS = {
    "tour": Entry(
        "experiments",
        "experiments",
        "Take a first look: two tables, a figure and what they show, in about a minute.",
    ),
    "reproduce": Entry(
        "experiments", "experiments", "Run the paper's experiments again, and judge its claims."
    ),
    "compare": Entry("experiments", "experiments", "Race policies on a data set, yours or a known one."),
    "report": Entry(
        "experiments",
        "experiments",
        "Make the figures, tables and report of a folder anew, without running anything.",
    ),
    "verify": Entry(
        "experiments",
        "experiments",
        "Do some runs of a folder again: each must give the same results to the bit, but for the seconds.",
    ),
    "data": Entry(
        "experiments", "experiments", "List the data sets: source, licence, shape, and where each lies."
    ),
    "evaluate": Entry("evaluate", "evaluation", "Estimate from a log what other policies would have earned."),
    "sketch": Entry(
        "sketch", "files", "Sketch a matrix in files, also one larger than memory, with a bound on the error."
    ),
    "serve": Entry("service", "service", "Run the decision service: it chooses arms and learns over HTTP."),
    "service": Entry("service", "service", "Check, repair, export or evaluate the state of a service."),
}


class LazyGroup(TyperGroup):
    """Looks for a command in its module."""

    def list_commands(self, ctx: object) -> list[str]:
        """All of them, in the order of help."""
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command; None if there is none of that name."""
        if cmd_name not in COMMANDS:
            return None
        commands: typer.Typer = import_module(f"sketchbandit.cli.{COMMANDS[cmd_name].module}").commands
        group: Any = typer.main.get_command(commands)
        return group.get_command(ctx, cmd_name) if hasattr(group, "get_command") else group  # one alone

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """The help, from the summaries: no command is imported for it."""
        mode = self.rich_markup_mode
        known = [
            TyperCommand(name, help=entry.summary, rich_markup_mode=mode) for name, entry in COMMANDS.items()
        ]
        listing = TyperGroup(
            name=self.name, commands=known, help=self.help, params=self.params, rich_markup_mode=mode
        )
        listing.format_help(ctx, formatter)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that the arguments name; its name is known also if its module cannot be imported."""
        ctx.invoked_subcommand = args[0]
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run the command, or say which extra it needs."""
        try:
            return super().invoke(ctx)
        except ModuleNotFoundError as error:
            if (error.name or "sketchbandit").startswith("sketchbandit"):
                raise
            name = ctx.invoked_subcommand
            install = how_to_install(COMMANDS[name].extra)
            typer.secho(f"Error: {name} needs {error.name}: {install}", err=True, fg=typer.colors.RED)
            raise typer.Exit(1) from None


app = typer.Typer(cls=LazyGroup, no_args_is_help=True, add_completion=False, rich_markup_mode="markdown")


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def about(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """Contextual bandits with many features, on matrix sketches that bound their own error.

    `sketchbandit COMMAND --help` says more about a command, with examples.
    """
    del version
