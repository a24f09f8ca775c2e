"""A live progress bar with the time left."""

from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from sketchbandit.experiments.runner import Watcher


class Bar(Watcher):
    """Told of stages and finished runs; draws one line for each stage."""

    def __init__(self, console: Console) -> None:
        self._progress = Progress(
            TextColumn("{task.description:12}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=console,
        )
        self._task: TaskID | None = None
        self._downloads: dict[str, TaskID] = {}

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._progress.stop()

    def stage(self, name: str, total: int, done: int) -> None:
        """A stage of so many runs begins; some of them were done before."""
        self._task = self._progress.add_task(name, total=total, completed=done)

    def advance(self, count: int) -> None:
        """So many more runs are finished."""
        if self._task is not None:
            self._progress.advance(self._task, count)

    def download(self, name: str, come: int, total: int) -> None:
        """So many bytes of a data set have come."""
        if name not in self._downloads:
            self._downloads[name] = self._progress.add_task(f"get {name}", total=total or None)
        self._progress.update(self._downloads[name], completed=come)
