"""What an update did to the rows of a sketch."""

from typing import NamedTuple


class Change(NamedTuple):
    """What an update did to ``rows``, for callers that keep something computed from them.

    Attributes
    ----------
    appended : int
        The number of new rows after the old ones. If not ``rebuilt``, the old rows, alpha and the error bound
        are unchanged.
    rebuilt : bool
        Whether any row, or alpha, may have changed. Then read the sketch again.
    lossless : bool
        Known even if ``rebuilt``: S'S has grown by exactly the rows given, and alpha is unchanged.
    orthogonal : bool
        Known even if ``rebuilt``: the rows are now orthogonal to one another.

    Examples
    --------
    >>> import sketchbandit as sb
    >>> sb.FrequentDirections(3, size=2).update([1.0, 0.0, 0.0])
    Change(appended=1, rebuilt=False, lossless=False, orthogonal=False)

    """

    appended: int = 0
    rebuilt: bool = False
    lossless: bool = False
    orthogonal: bool = False

    @property
    def additive(self) -> bool:
        """Whether S'S has grown by exactly the rows given, and alpha is unchanged."""
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
ADDED = Change(rebuilt=True, lossless=True)
"""Rows were added to a matrix."""
