"""Memory of requests under way: charged before it is used, given back when the answer has left."""

from threading import Lock

from sketchbandit.service.problems import Busy, TooLarge

SMALL = 64 * 1024
"""Bytes of an answer that is never refused: there are only so many connections."""
_ORDINARY = 256 * 1024
"""Bytes of a request that finds room where large ones have taken all that they may."""
_SPARE = 16
"""One part in so many is there for those besides; where it is room for some of them."""


class NeverFits(TooLarge):
    """A request that the budget cannot hold even when it is alone."""


class Budget:
    """So many bytes for all requests together: bodies, arms made of them, rankings, answers not yet read.

    >>> budget = Budget(100)
    >>> charge = budget.open()
    >>> charge.add(60)
    >>> budget.taken
    60
    >>> charge.release()
    >>> budget.taken
    0
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.spare = most // _SPARE if most >= 4 * _SPARE * _ORDINARY else 0
        """For ordinary requests, which find room when hostile ones have taken all the rest."""
        self.taken = 0
        self.lock = Lock()
        """Bodies are read in threads too."""

    def open(self) -> "Charge":
        """The charge of a new request, which holds nothing yet."""
        return Charge(self)


class Charge:
    """What one request holds."""

    __slots__ = ("_budget", "expected", "held")

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self.held = 0
        self.expected: float = 0
        """Bytes of the body as the request tells: a long one is not ordinary at its beginning either."""

    def add(self, count: int) -> None:
        """Hold more, or be refused: for ever if that never fits, for now if others hold too much."""
        with self._budget.lock:
            self._hold(self.held + count)

    def become(self, count: int, *, is_done: bool) -> None:
        """Hold so much instead, for an answer: what the work has taken is over.

        Less than before is never refused, nor a small answer, nor that to work that ``is_done`` and cannot
        be undone: it is sent even if others have to wait for that.
        """
        budget = self._budget
        with budget.lock:
            if count <= max(self.held, SMALL) or is_done:
                budget.taken += count - self.held
                self.held = count
            else:
                self._hold(count)

    def release(self) -> None:
        """Give all of it back."""
        with self._budget.lock:
            self._budget.taken -= self.held
            self.held = 0

    def _hold(self, wanted: int) -> None:
        budget = self._budget
        most = budget.most + (budget.spare if max(wanted, self.expected) <= _ORDINARY else 0)
        if wanted > most:
            raise NeverFits(
                f"this request needs {wanted:,} bytes of memory, and all requests together have "
                f"{most:,}: send fewer arms, or ask for a shorter ranking (top)"
            )
        if budget.taken + wanted - self.held > most:
            raise Busy("other requests hold the memory that this one needs; try again in a moment")
        budget.taken += wanted - self.held
        self.held = wanted
