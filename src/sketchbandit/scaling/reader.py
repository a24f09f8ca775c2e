"""How a policy reads features: through a scaling, which may have to be learned in a warm-up."""

from typing import Any, Literal

from sketchbandit.arrays import Arrays, Scalars, taken_from, under
from sketchbandit.errors import InputError
from sketchbandit.scaling.fitting import Rounds, fitted
from sketchbandit.scaling.sample import Sample
from sketchbandit.scaling.scaling import Scaling
from sketchbandit.sketch.checks import check_real

Kind = Literal["auto", "rows", "columns"] | Scaling | None
Intercept = bool | float

KINDS = (None, "rows", "columns", "auto")
WARM_UP = 200
"""The number of requests after which a scaling is fixed. An arm learned from without one counts as one."""
MOST_REWARDS = 2 * WARM_UP
"""The number of rewards after which it is fixed, even if there were fewer requests."""
_GROWTH = 1.4  # times as many requests: then it is fitted again
CONSTANT = 1.0
"""The constant that ``intercept=True`` appends to arms of length one. If it is small, the ridge
keeps the common part of all rewards from being learned: with 0.3 and rewards of 10 and 11 hardly anything was
earned."""


class Reader:
    """Reads features through a scaling.

    In a warm-up it is fitted again whenever there are 1.4 times as many requests. The models of one
    ``PerAction`` share a reader.
    """

    def __init__(self, dim: int, wanted: str | None, intercept: float, scaling: Scaling | None) -> None:
        self.dim = dim
        self.wanted = wanted
        """None, "rows", "columns", "auto", or "given"."""
        self.intercept = intercept
        """The constant to append to an arm of length one; 0: none."""
        self.sample = Sample(dim) if scaling is None else None
        """The arms of the warm-up; None if it is over."""
        self.scaling = stand_in(dim, wanted, intercept) if scaling is None else scaling
        self._next_fit = 1  # requests

    @classmethod
    def of(cls, dim: int, kind: Any, intercept: Any) -> "Reader | None":
        """The reader of a policy; None if features are read as they are."""
        if dim < 1:
            raise InputError("with an intercept the sketch needs one column more than an arm: at least 2")
        constant = CONSTANT * intercept if isinstance(intercept, bool) else intercept
        constant = check_real("intercept", constant, at_least=0.0)
        if isinstance(kind, Scaling):
            kind.check_final()
            made = cls(dim, "given", constant, kind)
            made.check(kind)
            return made
        if not (kind is None or isinstance(kind, str)) or kind not in KINDS:
            raise InputError(f'scaling must be None, "rows", "columns", "auto" or a Scaling, got {kind!r}')
        if kind is None and not constant:
            return None
        is_known = kind == "rows" or (kind is None and not isinstance(intercept, bool))
        return cls(dim, kind, constant, stand_in(dim, kind, constant) if is_known else None)

    # -- the warm-up --------------------------------------------------------------------------------

    def saw(self, arms: Any) -> None:
        """Note the arms (K, dim) of a request, before scaling."""
        if self.sample is not None and self.sample.requests < WARM_UP:
            self.sample.add(arms)

    def learned(self, arm: Any) -> None:
        """Note an arm (1, dim) with a reward. It is a request if there are more of them than arms offered."""
        if self.sample is not None:
            self.sample.learned += 1
            if self.sample.learned > self.sample.offered:
                self.sample.add(arm)

    @property
    def is_due(self) -> bool:
        """Whether enough requests were seen to fit the scaling again."""
        return self.sample is not None and (self.sample.requests >= self._next_fit or self.is_last)

    @property
    def is_last(self) -> bool:
        """Whether the next scaling will be the last."""
        sample = self.sample
        return sample is not None and (sample.requests >= WARM_UP or sample.learned >= MOST_REWARDS)

    def fit(self, rounds: Rounds = (), ridge: float = 1.0) -> Scaling:
        """The scaling that fits the arms seen, and the rounds that were learned from."""
        assert self.sample is not None  # noqa: S101  (for the type checker)
        return fitted(self.wanted, self.sample.rows, self.intercept, rounds, ridge)

    @property
    def shown(self) -> Scaling:
        """The scaling, marked as provisional during the warm-up."""
        return self.scaling if self.sample is None else self.scaling.as_provisional()

    @property
    def seen(self) -> int:
        """The number of requests in the warm-up; 0 if it is over."""
        return 0 if self.sample is None else self.sample.requests

    def read_by(self, scaling: Scaling, *, is_last: bool = True, seen: int | None = None) -> None:
        """Read features with this scaling from now on. The last one is fixed.

        ``seen`` is the number of requests that it was fitted to, if it differs from those of the warm-up.
        """
        self.scaling = scaling
        if is_last:
            self.sample = None
        elif self.sample is not None:
            count = max(self.sample.requests if seen is None else seen, 1)
            self._next_fit = max(min(int(_GROWTH * count), WARM_UP), count + 1)

    def check(self, scaling: Scaling) -> None:
        """Raise if a scaling does not fit."""
        if scaling.dim != self.dim or (scaling.constant != 0.0) != (self.intercept != 0.0):
            raise InputError(
                f"the scaling is for {scaling.dim} columns with the constant {scaling.constant:g}, but the "
                f"policy has dim {self.dim} and {'an' if self.intercept else 'no'} intercept"
            )

    def merge(self, other: "Reader") -> None:
        """Add the requests that another reader has seen in its warm-up."""
        if self.sample is not None and other.sample is not None:
            self.sample.merge(other.sample)

    # -- what it tells ------------------------------------------------------------------------------

    @property
    def said(self) -> str | None:
        """A description in words."""
        if self.sample is None:
            return f"{self.scaling.kind}, one scale for all" if self.scaling.is_common else self.scaling.kind
        what = self.wanted or "length of the intercept"
        return f"{what}, warming up: {self.sample.requests} of {WARM_UP} requests seen"

    def __repr__(self) -> str:
        constant = f", intercept={self.scaling.constant:.4g}" if self.intercept else ""
        return f"scaling={self.said!r}{constant}"

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays held."""
        return self.scaling.nbytes + (0 if self.sample is None else self.sample.nbytes)

    # -- files --------------------------------------------------------------------------------------

    def dump(self) -> tuple[Scalars, Arrays]:
        """JSON values and arrays that ``undump`` turns into the same reader."""
        numbers, arrays = self.scaling.dump()
        scalars = {"wanted": self.wanted, "intercept": self.intercept, "scaling": numbers}
        if self.sample is None:
            return scalars, arrays
        seen, rows = self.sample.dump()
        return {**scalars, "sample": seen, "next_fit": self._next_fit}, arrays | under("sample", rows)

    @classmethod
    def undump(cls, scalars: Scalars, arrays: Arrays) -> "Reader":
        """Return the reader that ``dump`` described."""
        scaling = Scaling.undump(scalars["scaling"], arrays)
        made = cls(scaling.dim, scalars["wanted"], float(scalars["intercept"]), scaling)
        if "sample" in scalars:
            made.sample = Sample.undump(scalars["sample"], taken_from("sample", arrays))
            made._next_fit = int(scalars["next_fit"])
        return made


def stand_in(dim: int, wanted: str | None, constant: float) -> Scaling:
    """The scaling before an arm was seen: length one fits every model."""
    return (Scaling.none if wanted is None else Scaling.rows)(dim, constant=constant)
