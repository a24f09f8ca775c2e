"""What progress bars have in common: they are drawn while something lasts."""

from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import Progress, ProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn


class LiveProgress:
    """Lines that are drawn between ``with`` and its end, with the time taken and the time left."""

    def __init__(self, *columns: ProgressColumn) -> None:
        times = (TimeElapsedColumn(), TextColumn("elapsed,"), TimeRemainingColumn(), TextColumn("left"))
        self._progress = Progress(*columns, *times, console=Console(stderr=True))

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
