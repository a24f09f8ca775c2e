"""Whether features have left the range that the scaling was made for."""

from typing import Any

import numpy as np
from scipy import sparse

from sketchbandit.arrays import Scalars
from sketchbandit.features.scaling import Scaling
from sketchbandit.kernels.view import HEAD

EVERY = 8
"""One of so many rounds is looked at."""
WINDOW = 16
"""The number of looks after which a verdict is given."""


class RangeWatch:
    """Counts for each column how often arms learned from lie far outside the range of the warm-up.

    The verdict is about the last complete window. Only columns outside are counted, so it costs next to
    nothing as long as there are none.
    """

    def __init__(self) -> None:
        self.looks = 0
        """The number of arms looked at in the present window."""
        self._counts: dict[int, int] = {}
        self.left: tuple[int, ...] = ()
        """The columns outside in more than half of the last window."""

    def look_at(self, source: Any, rounds: int, scaling: Scaling | None) -> None:
        """Look at some of the arms (n, dim), learned from in rounds ``rounds``, ``rounds + 1``, ..."""
        which = range(-rounds % EVERY, source.shape[0], EVERY)
        skipped = (self.looks + len(which)) // WINDOW * WINDOW - WINDOW - self.looks
        if skipped > 0:  # whole windows before the last one do not count
            which, self.looks, self._counts = which[skipped:], 0, {}
        for i in which:
            self.look(source[[i]], scaling)

    def look(self, arm: Any, scaling: Scaling | None) -> None:
        """Look at one arm, (dim,) or (1, dim)."""
        if scaling is None or scaling.limit is None:
            return
        limit, lens, middle = scaling.limit, scaling.lens, HEAD + scaling.dim
        centre, factor = lens[HEAD:middle], lens[middle:]
        if sparse.issparse(arm):
            columns, values = arm.indices, arm.data
            far = abs((values - centre[columns]) * factor[columns]) > limit[columns]
            outside = columns[far].tolist()
        else:
            with np.errstate(over="ignore"):
                far = abs((arm.ravel() - centre) * factor) > limit
            outside = far.nonzero()[0].tolist()
        for column in outside:
            self._counts[column] = self._counts.get(column, 0) + 1
        self.looks += 1
        if self.looks >= WINDOW:
            left = (column for column, count in self._counts.items() if 2 * count > self.looks)
            self.left = tuple(sorted(left))
            self.looks, self._counts = 0, {}

    def add(self, other: "RangeWatch") -> None:
        """Merge with a watch that ran in parallel."""
        self.looks = min(self.looks + other.looks, WINDOW - 1)
        for column, count in other._counts.items():
            self._counts[column] = self._counts.get(column, 0) + count
        self.left = tuple(sorted({*self.left, *other.left}))

    # -- files --------------------------------------------------------------------------------------

    def dump(self) -> Scalars:
        """JSON values that ``undump`` turns into the same watch."""
        counts = sorted(self._counts.items())
        return {"looks": self.looks, "counts": counts, "left": list(self.left)}

    @classmethod
    def undump(cls, scalars: Scalars) -> "RangeWatch":
        """The watch that ``dump`` described."""
        made = cls()
        made.looks = int(scalars["looks"])
        made._counts = {int(column): int(count) for column, count in scalars["counts"]}
        made.left = tuple(map(int, scalars["left"]))
        return made
