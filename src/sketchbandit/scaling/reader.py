"""How a policy reads features: by a scaling, which a warm-up may have to find first."""

from typing import Any, Literal

from sketchbandit.arrays import Arrays, Scalars, taken_from, under
from sketchbandit.errors import InputError
from sketchbandit.scaling.fitting import fitted
from sketchbandit.scaling.sample import Sample
from sketchbandit.scaling.scaling import Scaling
from sketchbandit.sketch.checks import check_real

Kind = Literal["auto", "rows", "columns"] | Scaling | None
Intercept = bool | float

KINDS = (None, "rows", "columns", "auto")
WARM_UP = 200
"""Arms after which a scaling is fixed."""
CONSTANT = 1.0
"""What ``intercept=True`` appends to arms of length one. Where it is small, the ridge keeps what all rewards
share from being learned: with 0.3 and rewards of 10 and 11 hardly anything was earned."""


class Reader:
    """Reads features by a scaling. In a warm-up that is fitted anew whenever as many arms again were seen.

    Models of one set share a reader.
    """

    def __init__(self, dim: int, wanted: str | None, intercept: float, scaling: Scaling | None) -> None:
        self.dim = dim
        self.wanted = wanted
        """None, "rows", "columns", "auto", or "given"."""
        self.intercept = intercept
        """The constant to be, beside an arm of length one; 0: none."""
        self.sample = Sample(dim) if scaling is None else None
        """Arms of the warm-up; None: it is over."""
        self.scaling = stand_in(dim, wanted, intercept) if scaling is None else scaling
        self._next_fit = 1  # arms

    @classmethod
    def of(cls, dim: int, kind: Any, intercept: Any) -> "Reader | None":
        """The reader of a policy; None: features are read as they are."""
        if dim < 1:
            raise InputError("a sketch with an intercept has one column more than an arm: at least 2")
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
        """Arms that were offered, (K, dim), as they came."""
        if self.sample is not None and self.sample.count < WARM_UP:
            self.sample.add_request(arms)

    def learned(self, arm: Any) -> None:
        """An arm that a reward came for, (1, dim): it counts if more rewards came than arms were offered."""
        if self.sample is not None:
            self.sample.learned += 1
            if self.sample.learned > self.sample.count:
                self.sample.add(arm)

    @property
    def is_due(self) -> bool:
        """Whether so much was seen that the scaling is to be fitted anew."""
        return self.sample is not None and self.sample.count >= self._next_fit

    @property
    def is_last(self) -> bool:
        """Whether that is then fixed."""
        return self.sample is not None and self.sample.count >= WARM_UP

    def fit(self) -> Scaling:
        """The scaling that follows from what was seen."""
        assert self.sample is not None  # noqa: S101  (for the type checker)
        return fitted(self.wanted, self.sample.rows, self.intercept)

    @property
    def shown(self) -> Scaling:
        """The scaling, marked as provisional while it is."""
        return self.scaling if self.sample is None else self.scaling.as_provisional()

    @property
    def seen(self) -> int:
        """Arms of the warm-up; 0: it is over."""
        return 0 if self.sample is None else self.sample.count

    def read_by(self, scaling: Scaling, *, is_last: bool = True, seen: int | None = None) -> None:
        """Read by this one from now on; the last one is fixed.

        ``seen``: the arms that it was fitted to, where these are others than those of the warm-up.
        """
        self.scaling = scaling
        if is_last:
            self.sample = None
        elif self.sample is not None:
            count = max(self.sample.count if seen is None else seen, 1)
            self._next_fit = min(2 * count, max(WARM_UP, count + 1))

    def check(self, scaling: Scaling) -> None:
        """Refuse a scaling that does not fit."""
        if scaling.dim != self.dim or (scaling.constant != 0.0) != (self.intercept != 0.0):
            raise InputError(
                f"the scaling is for {scaling.dim} columns and has the constant {scaling.constant:g}; the "
                f"policy has dim {self.dim} and {'an' if self.intercept else 'no'} intercept"
            )

    def merge(self, other: "Reader") -> None:
        """What another has seen in its warm-up."""
        if self.sample is not None and other.sample is not None:
            self.sample.merge(other.sample)

    # -- what it tells ------------------------------------------------------------------------------

    @property
    def said(self) -> str | None:
        """What it does, in words."""
        if self.sample is None:
            return self.scaling.kind
        what = self.wanted or "length of the intercept"
        return f"{what}, warming up: {self.sample.count} of {WARM_UP} arms seen"

    def __repr__(self) -> str:
        constant = f", intercept={self.scaling.constant:.4g}" if self.intercept else ""
        return f"scaling={self.said!r}{constant}"

    @property
    def nbytes(self) -> int:
        """Bytes of every array held."""
        return self.scaling.lens.nbytes + (0 if self.sample is None else self.sample.nbytes)

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
        """The reader that ``dump`` described."""
        scaling = Scaling.undump(scalars["scaling"], arrays)
        made = cls(scaling.dim, scalars["wanted"], float(scalars["intercept"]), scaling)
        if "sample" in scalars:
            made.sample = Sample.undump(scalars["sample"], taken_from("sample", arrays))
            made._next_fit = int(scalars["next_fit"])
        return made


def stand_in(dim: int, wanted: str | None, constant: float) -> Scaling:
    """Before an arm was seen: lengths of one fit every model."""
    return (Scaling.none if wanted is None else Scaling.rows)(dim, constant=constant)
