"""A live progress bar with the time left."""

from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn

from sketchbandit.cli.output import LiveProgress
from sketchbandit_paper.runner import RunProgress


class Bar(LiveProgress, RunProgress):
    """Told of stages and finished runs; draws one line for each stage."""

    def __init__(self) -> None:
        super().__init__(TextColumn("{task.description:22}"), BarColumn(), MofNCompleteColumn())
        self._task: TaskID | None = None
        self._downloads: dict[str, TaskID] = {}

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
