"""Time that never goes backwards."""

import time
from collections.abc import Callable


class Clock:
    """Seconds since the epoch, steady while the process runs and never before ``floor``.

    The wall clock is read once, at the start; from then on the monotonic clock counts, so that an adjusted
    wall clock neither expires a decision early nor keeps it open. ``floor`` is the last time found in the
    journal: after a restart with a clock that was set back, time goes on from there.
    """

    def __init__(
        self,
        floor: float = 0.0,
        *,
        wall: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._monotonic = monotonic
        self._offset = max(wall(), floor) - monotonic()

    def now(self) -> float:
        """Now."""
        return self._offset + self._monotonic()
