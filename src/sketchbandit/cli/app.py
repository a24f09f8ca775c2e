"""The command line. A command's module is imported when the command is asked for.

So a server does not carry what draws figures, and a command whose extra is missing says so without taking the
others with it.
"""

from importlib import import_module
from typing import Annotated, Any

import typer
from threadpoolctl import threadpool_limits
from typer.core import TyperGroup

import sketchbandit
from sketchbandit.cli.output import console

# Every command: where it lives (sketchbandit.cli.NAME), and the extra that it needs.
_COMMANDS = {
    **dict.fromkeys(
        ["tour", "reproduce", "compare", "report", "verify", "data"], ("experiments", "experiments")
    ),
    "evaluate": ("evaluate", "evaluation"),
    "sketch": ("sketch", "files"),
    **dict.fromkeys(["serve", "service"], ("service", "service")),
}


class LazyGroup(TyperGroup):
    """Looks for a command in its module."""

    def list_commands(self, ctx: Any) -> list[str]:
        """All of them, in the order of help."""
        del ctx
        return list(_COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command, or one that says what is missing."""
        if cmd_name not in _COMMANDS:
            return None
        module, extra = _COMMANDS[cmd_name]
        try:
            commands: typer.Typer = import_module(f"sketchbandit.cli.{module}").commands
        except ModuleNotFoundError as error:
            if (error.name or "").startswith("sketchbandit"):
                raise
            return _missing(cmd_name, error.name, extra)
        group: Any = typer.main.get_command(commands)
        return group.get_command(ctx, cmd_name) if hasattr(group, "get_command") else group  # one alone


def _missing(name: str, package: str | None, extra: str) -> Any:
    stand_in = typer.Typer(add_completion=False)
    anything = {"ignore_unknown_options": True, "allow_extra_args": True}  # what is missing comes first

    @stand_in.command(name, context_settings=anything, help=f"Needs the extra {extra}, not installed.")
    def explain() -> None:
        typer.secho(f"Error: {name} needs {package}: pip install 'sketchbandit[{extra}]'", err=True)
        raise typer.Exit(1)

    return typer.main.get_command(stand_in)


app = typer.Typer(cls=LazyGroup, no_args_is_help=True, add_completion=False, rich_markup_mode="markdown")


def _version(wanted: bool) -> None:
    if wanted:
        console.print(sketchbandit.__version__)
        raise typer.Exit


@app.callback()
def about(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """Linear bandits in high dimension, on matrix sketches with certificates."""
    del version
    threadpool_limits(1)  # the process is ours, and its matrices are small: more threads only wait
