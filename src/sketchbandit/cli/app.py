"""The command line, put together from the commands whose extras are installed."""

from collections.abc import Callable
from importlib import import_module
from typing import Annotated, NoReturn

import typer
from threadpoolctl import threadpool_limits

import sketchbandit
from sketchbandit.cli.output import console

# Where commands live (sketchbandit.cli.NAME), the extra they need, and their names.
_GROUPS = {
    "experiments": ("experiments", ["reproduce", "compare", "report", "data"]),
    "service": ("service", ["serve", "service"]),
}

app = typer.Typer(no_args_is_help=True, add_completion=False, rich_markup_mode="markdown")


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


def _needing(package: str | None, extra: str) -> Callable[[], NoReturn]:
    def explain() -> NoReturn:
        typer.secho(f"Error: this command needs {package}: pip install 'sketchbandit[{extra}]'", err=True)
        raise typer.Exit(1)

    explain.__doc__ = f"Needs the extra {extra}, which is not installed."
    return explain


for _module, (_extra, _names) in _GROUPS.items():
    try:
        app.add_typer(import_module(f"sketchbandit.cli.{_module}").commands)
    except ModuleNotFoundError as _error:
        if (_error.name or "").startswith("sketchbandit"):
            raise
        for _name in _names:
            # whatever arguments it was given, what is missing comes first
            anything = {"ignore_unknown_options": True, "allow_extra_args": True}
            app.command(_name, context_settings=anything)(_needing(_error.name, _extra))
