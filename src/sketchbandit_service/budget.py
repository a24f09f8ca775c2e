"""The memory of requests under way. It is charged before it is used, and freed once the answer is sent."""

from threading import Lock

from sketchbandit_service.problems import Busy, TooLarge

SMALL = 64 * 1024
"""An answer of up to this many bytes is never refused. The number of connections is bounded."""
_ORDINARY = 256 * 1024
"""A request of up to this many bytes finds room even when large requests hold all they may."""
_SPARE = 16
"""One part in this many is reserved for such requests, if it has room for some of them."""


class NeverFits(TooLarge):
    """The budget could not hold this request even if it were alone."""


class Budget:
    """A number of bytes for all requests together: bodies, arms, rankings, answers not yet sent.

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
        """Bytes for ordinary requests. They find room when hostile ones have taken all the rest."""
        self.taken = 0
        self.lock = Lock()
        """Needed because bodies are read in threads too."""

    def open(self) -> "Charge":
        """The charge of a new request. It holds nothing yet."""
        return Charge(self)


class Charge:
    """The bytes that one request holds."""

    __slots__ = ("_budget", "expected", "held")

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self.held = 0
        self.expected: float = 0
        """Bytes of the body as announced. With them, a long request is not ordinary even at its beginning."""

    def add(self, count: int) -> None:
        """Hold more bytes, or refuse: for good if they never fit, for now if others hold too much."""
        with self._budget.lock:
            self._hold(self.held + count)

    def become(self, count: int, *, is_done: bool) -> None:
        """Hold this many bytes instead, for an answer. The memory of the work is free again.

        Three things are never refused: fewer bytes than before, a small answer, and an answer to work that
        ``is_done`` and cannot be undone. The last is sent even if others must wait.
        """
        budget = self._budget
        with budget.lock:
            if count <= max(self.held, SMALL) or is_done:
                budget.taken += count - self.held
                self.held = count
            else:
                self._hold(count)

    def release(self) -> None:
        """Free all bytes."""
        with self._budget.lock:
            self._budget.taken -= self.held
            self.held = 0

    def _hold(self, wanted: int) -> None:
        budget = self._budget
        most = budget.most + (budget.spare if max(wanted, self.expected) <= _ORDINARY else 0)
        if wanted > most:
            raise NeverFits(
                f"this request needs {wanted:,} bytes of memory, but all requests together have "
                f"{most:,}; send fewer arms, or ask for a shorter ranking (top)"
            )
        if budget.taken + wanted - self.held > most:
            raise Busy("other requests hold the memory that this one needs; try again in a moment")
        budget.taken += wanted - self.held
        self.held = wanted
