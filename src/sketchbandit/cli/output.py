"""What the commands have in common: the console, tables, progress bars, and errors as messages."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Self

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import Progress, ProgressColumn, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from sketchbandit.errors import SketchBanditError

console = Console(width=None if sys.stdout.isatty() else 120)  # a file or a pipe has no width of its own


@contextmanager
def complaints(interrupted: str = "Interrupted.") -> Iterator[None]:
    """What the library refuses is a message and exit status 2, not a traceback."""
    try:
        yield
    except (SketchBanditError, OSError) as error:
        typer.secho(f"Error: {error}", err=True, fg=typer.colors.RED)
        raise typer.Exit(2) from error
    except KeyboardInterrupt:
        typer.secho(interrupted, err=True)
        raise typer.Exit(130) from None


def say(line: str) -> None:
    """A line as it is, however long."""
    console.print(line, soft_wrap=True, highlight=False, markup=False)


def print_table(title: str, header: list[str], rows: list[list[str]]) -> None:
    """A table; a short first column is never broken."""
    shown = Table(title=escape(title))
    for index, heading in enumerate(header):
        short = index == 0 and max((len(row[0]) for row in rows), default=0) < 40
        shown.add_column(heading, overflow="fold", no_wrap=short)
    for row in rows:
        shown.add_row(*map(escape, row))
    console.print(shown)


class LiveProgress:
    """Lines that are drawn between ``with`` and its end, with the time taken and the time left."""

    def __init__(self, *columns: ProgressColumn) -> None:
        times = (TimeElapsedColumn(), TextColumn("elapsed,"), TimeRemainingColumn(), TextColumn("left"))
        self._progress = Progress(*columns, *times, console=Console(stderr=True))
        self._task: TaskID | None = None

    def advance(self, count: int) -> None:
        """So many more are done."""
        if self._task is not None:
            self._progress.advance(self._task, count)

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()
