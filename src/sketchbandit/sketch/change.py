"""What an update did to the rows of a sketch."""

from typing import NamedTuple


class Change(NamedTuple):
    """What an update did to ``rows``, for whoever keeps something derived from them.

    Not ``rebuilt``: the old rows, alpha and the certificate stand as they were, and ``appended`` new rows
    follow them.
    ``rebuilt``: any row may differ, and alpha with them; read the sketch anew. Two things may be known
    even then: ``lossless``, that S'S has grown by exactly the rows given and alpha stands; ``orthogonal``,
    that the rows are now orthogonal to one another.
    """

    appended: int = 0
    rebuilt: bool = False
    lossless: bool = False
    orthogonal: bool = False

    @property
    def additive(self) -> bool:
        """Whether S'S has grown by exactly the rows given and alpha stands."""
        return self.lossless or not self.rebuilt

    def then(self, later: "Change") -> "Change":
        """This change followed by another."""
        if later == NO_CHANGE:
            return self
        if not (self.rebuilt or later.rebuilt):
            return Change(self.appended + later.appended)
        return Change(0, True, self.additive and later.additive, later.orthogonal)


NO_CHANGE = Change()
ONE_APPENDED = Change(1)
