"""Pauses for long work in Python, so that the event loop need not wait for it."""

import asyncio
import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")

_STRETCH = 0.002  # seconds of work between two pauses


class Pace:
    """Called between short pieces of work in a thread. After 2 ms of work it sleeps for as long.

    Without it, a thread that computes in Python would hold the interpreter's lock half of the time, and the
    event loop would wait at every switch. Time in which others hold the lock does not count as work. On the
    event loop itself it never sleeps.
    """

    def __init__(self) -> None:
        self._since: float | None = None
        """In CPU seconds of the working thread, which need not be the thread that made this object."""

    def __call__(self) -> None:
        """Sleep if it is time to."""
        now = time.thread_time()
        if self._since is None:
            self._since = now
        elif now - self._since >= _STRETCH:
            if not _is_on_loop():
                time.sleep(now - self._since)
            self._since = time.thread_time()


def politely(items: Iterable[T], pace: Pace | None = None) -> Iterator[T]:
    """The items, with pauses between them.

    >>> list(politely(range(3)))
    [0, 1, 2]
    """
    pace = pace or Pace()
    for item in items:
        yield item
        pace()


def _is_on_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
