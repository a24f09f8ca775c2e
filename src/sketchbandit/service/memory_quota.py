"""Memory of requests under way: taken before it is used, given back when the request ends."""

from typing import Any

from sketchbandit.service.problems import Busy

_TAKEN = "sketchbandit.bytes"


class MemoryQuota:
    """So many bytes for all requests together: bodies, arms made from them, what is logged of them."""

    def __init__(self, most: int) -> None:
        self._most = most
        self.taken = 0

    def take(self, scope: Any, count: int) -> None:
        """Take bytes for the request of this ASGI scope, or refuse it for now."""
        if self.taken + count > self._most:
            raise Busy("large requests take all the memory that there is for them; try again in a moment")
        self.taken += count
        scope[_TAKEN] = scope.get(_TAKEN, 0) + count

    def give_back(self, scope: Any) -> None:
        """All that the request has taken."""
        self.taken -= scope.pop(_TAKEN, 0)
