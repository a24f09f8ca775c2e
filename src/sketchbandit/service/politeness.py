"""Long work in Python beside an event loop that must not wait for it."""

import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")

_STRETCH = 0.002  # seconds of work between two pauses


class Pace:
    """Called between short pieces of work in a thread: after 2 ms of work it sleeps as long.

    Without it a thread that computes in Python would have the interpreter's lock for half of the time, and
    the event loop would wait for every switch. Time that others have the lock does not count as work.
    """

    def __init__(self) -> None:
        self._since = time.thread_time()

    def __call__(self) -> None:
        """Sleep if it is time."""
        worked = time.thread_time() - self._since
        if worked >= _STRETCH:
            time.sleep(worked)
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
