"""What progress bars have in common: they are drawn while something lasts."""

from types import TracebackType
from typing import Self

from rich.progress import Progress, ProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from sketchbandit.cli.output import console


class LiveProgress:
    """Lines that are drawn between ``with`` and its end, with the time taken and the time left."""

    def __init__(self, *columns: ProgressColumn) -> None:
        times = (TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn())
        self._progress = Progress(*columns, *times, console=console)

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
