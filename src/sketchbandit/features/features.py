"""How a policy reads what its user has: named columns, any array library, a scaling that may be learned."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

import numpy as np

from sketchbandit.arms import Arms, Batch, Offer, View, batch_of, offered_array, read_arms, row_of
from sketchbandit.array_api import check_real_dtype, is_foreign, library_of
from sketchbandit.arrays import AnyArray, Arrays, Rows, Scalars, Vector, taken_from, under
from sketchbandit.errors import InputError, MergeError, RowError
from sketchbandit.features.fitting import Rounds, Sample, fitted
from sketchbandit.features.scaling import Scaling
from sketchbandit.kernels.backend import COLUMNS, KIND, PLAIN
from sketchbandit.sketch.checks import check_real
from sketchbandit.sketch.row_input import ColumnNames, Name, RowBatch, complaint, read_rows, row_source

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
_FEW_NUMBERS = 1 << 18  # arms on a device with at most so many numbers are copied to the host at once


class Features:
    """Turns arms, or contexts, into the rows that a posterior learns from.

    A scaling that has to be learned takes centres and deviations from the arms of the first requests, the
    warm-up. It is fitted again whenever there are 1.4 times as many requests, and fixed after 200. The models
    of one ``PerAction`` share their features.

    Attributes
    ----------
    dim : int
        The number of features of an arm, before scaling.
    dtype : dtype
        The dtype in which arms are read.
    names : ColumnNames
        The names of the columns, once a DataFrame was seen.
    scaling : Scaling or None
        The present scaling; None if arms are read as they are.
    lens : array
        The numbers of the scaling, in the form that the loops read (``kernels.backend``).
    sample : Sample or None
        The arms of the warm-up; None if there is none, or if it is over.

    """

    is_projected = False

    def __init__(
        self,
        dim: int,
        dtype: np.dtype[Any],
        *,
        wanted: str | None = None,
        intercept: float = 0.0,
        scaling: Scaling | None = None,
        sample: Sample | None = None,
    ) -> None:
        self.dim = dim
        self.dtype = dtype
        self.wanted = wanted
        """None, "rows", "columns", "auto", or "given"."""
        self.intercept = intercept
        """The constant to append to an arm of length one; 0: none."""
        self.names = ColumnNames()
        self.sample = sample
        self._next_fit = 1  # requests
        self._read_through(scaling)

    @classmethod
    def of(cls, dim: int, dtype: np.dtype[Any], kind: Kind, intercept: Intercept, **more: Any) -> "Features":
        """The features of a fresh policy, from its settings. ``more`` is for subclasses."""
        if dim < 1:
            raise InputError("with an intercept the sketch needs one column more than an arm: at least 2")
        constant = CONSTANT * intercept if isinstance(intercept, bool) else intercept
        constant = check_real("intercept", constant, at_least=0.0)
        if isinstance(kind, Scaling):
            kind.check_final()
            made = cls(dim, dtype, wanted="given", intercept=constant, scaling=kind, **more)
            made.check(kind)
            return made
        if not (kind is None or isinstance(kind, str)) or kind not in KINDS:
            raise InputError(f'scaling must be None, "rows", "columns", "auto" or a Scaling, got {kind!r}')
        if kind is None and not constant:
            return cls(dim, dtype, **more)
        is_known = kind == "rows" or (kind is None and not isinstance(intercept, bool))
        first = (Scaling.none if kind is None else Scaling.rows)(dim, constant=constant)
        sample = None if is_known else Sample(dim)
        return cls(dim, dtype, wanted=kind, intercept=constant, scaling=first, sample=sample, **more)

    def _read_through(self, scaling: Scaling | None) -> None:
        self.scaling = scaling
        self.lens: Vector = PLAIN if scaling is None else scaling.lens
        self.can_leave_range = scaling is not None and scaling.kind == "columns"
        """Whether features are clipped, so that they can leave their range."""

    # -- reading ------------------------------------------------------------------------------------

    def view(self, arms: object) -> View | None:
        """Dense arms that compiled loops can read without a conversion; None: ``read`` them."""
        if (
            type(arms) is np.ndarray
            and arms.dtype == self.dtype
            and arms.ndim == 2
            and arms.shape[1] == self.dim
            and arms.flags.c_contiguous
            and len(arms) > 0
        ):
            return View(arms, self.lens)
        return None

    def row(self, arm: object) -> tuple[Vector, AnyArray] | None:
        """One arm in float64, and as the sketch stores it, (1, dim); None if it needs a conversion."""
        if not (
            type(arm) is np.ndarray
            and arm.dtype == self.dtype
            and arm.ndim == 1
            and len(arm) == self.dim
            and arm.flags.c_contiguous
        ):
            return None
        row = arm if self.scaling is None else row_of(arm, self.lens)
        if self.dtype == np.float64:
            return row, row[np.newaxis]
        row = row.astype(self.dtype, copy=False)
        return row.astype(np.float64), row[np.newaxis]

    def read(self, arms: object, *, may_be_empty: bool = False) -> Arms:
        """Arms (K, dim), or one arm, from any library. Their norms show whether they are finite."""
        if type(arms) is not np.ndarray and (isinstance(arms, Offer) or is_foreign(arms)):
            return self._read_offered(arms, may_be_empty=may_be_empty)
        aligned = self.names.align(arms)
        return self._scaled(read_arms(aligned, self.dim, self.dtype, may_be_empty=may_be_empty))

    def _scaled(self, arms: Arms) -> Arms:
        return arms if self.scaling is None else self.scaling.read(arms)

    def _read_offered(self, arms: Any, *, may_be_empty: bool) -> Arms:
        """Read arms of a catalogue or of another array library; a few of them are copied to the host."""
        if isinstance(arms, Offer):
            offered = arms.arms
        else:
            check_real_dtype(arms)
            library = library_of(arms)
            if arms.ndim != 2 or math.prod(arms.shape) <= _FEW_NUMBERS or self.is_projected:
                return self.read(library.to_host(arms), may_be_empty=may_be_empty)
            offered = offered_array(arms)
        if offered.dim != self.dim:
            raise InputError(f"arms have length {offered.dim}, but dim is {self.dim}")
        if self.is_projected:
            return self.read(offered.raw_rows(slice(None)))
        return self._scaled(offered)

    def read_rows(self, arms: object) -> RowBatch:
        """Arms (n, dim) to learn from, as rows of the sketch."""
        if self.scaling is None:
            return read_rows(arms, self.dim, self.dtype, "arms")
        source = row_source(arms, self.dim, "arms")
        is_short = self.dtype == np.float32 and source.dtype != np.float32
        with np.errstate(over="ignore"):  # reported below
            read = source.astype(np.float32) if is_short else source  # rounded as a single arm would be
        try:
            return RowBatch(self.scaling.apply(read), self.dtype, "arms")
        except RowError as error:
            raise complaint(source, error.row, self.dtype, "arm") from None

    def batch(self, sets: AnyArray | list[Rows]) -> Batch | None:
        """All the arms of many sets in one array, if they need no conversion; else None."""
        found = batch_of(sets, self.dim, self.dtype)
        return found if found is None else found._replace(arms=View(found.arms.array, self.lens))

    def lift(self, theta: Vector) -> Vector:
        """A parameter vector of the rows, as one of the arms: margins are its products with the rows."""
        return theta.copy()

    @property
    def is_linear(self) -> bool:
        """Whether rows are linear in arms, up to their length."""
        return not self.is_projected and (not len(self.lens) or self.lens[KIND] != COLUMNS)

    # -- the warm-up --------------------------------------------------------------------------------

    @property
    def is_warming_up(self) -> bool:
        """Whether the scaling is still being learned."""
        return self.sample is not None

    def saw(self, arms: Rows) -> None:
        """Note the arms (K, dim) of a request, before scaling."""
        if self.sample is not None and self.sample.requests < WARM_UP:
            self.sample.add(arms)

    def learned(self, arm: Rows) -> None:
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

    def fit(self, rounds: Rounds, ridge: float) -> Scaling:
        """The scaling that fits the arms seen, and the rounds that were learned from."""
        assert self.sample is not None  # noqa: S101  (for the type checker)
        return fitted(self.wanted, self.sample.rows, self.intercept, rounds, ridge)

    @property
    def shown(self) -> Scaling | None:
        """The scaling, marked as provisional during the warm-up."""
        return self.scaling if self.sample is None or self.scaling is None else self.scaling.as_provisional()

    @property
    def requests_seen(self) -> int:
        """The number of requests in the warm-up; 0 if it is over."""
        return 0 if self.sample is None else self.sample.requests

    def use(self, scaling: Scaling, *, is_last: bool = True, seen: int | None = None) -> None:
        """Read features with this scaling from now on. The last one is fixed.

        ``seen`` is the number of requests that it was fitted to, if it differs from those of the warm-up.
        """
        self._read_through(scaling)
        if is_last:
            self.sample = None
        elif self.sample is not None:
            count = max(self.sample.requests if seen is None else seen, 1)
            self._next_fit = max(min(int(_GROWTH * count), WARM_UP), count + 1)

    @contextmanager
    def tried(self, scaling: Scaling) -> Iterator[None]:
        """Read with another scaling, for as long as the block runs."""
        before = self.scaling
        self._read_through(scaling)
        try:
            yield
        finally:
            self._read_through(before)

    def check(self, scaling: Scaling) -> None:
        """Raise if a scaling does not fit."""
        if scaling.dim != self.dim or (scaling.constant != 0.0) != (self.intercept != 0.0):
            raise InputError(
                f"the scaling is for {scaling.dim} columns with the constant {scaling.constant:g}, but the "
                f"policy has dim {self.dim} and {'an' if self.intercept else 'no'} intercept"
            )

    # -- merging ------------------------------------------------------------------------------------

    def check_mergeable(self, other: "Features") -> None:
        """Raise unless both read alike. Only then do the sums of two policies add up."""
        if self.scaling is None and other.scaling is None:
            return
        if self.scaling is None or other.scaling is None:
            raise MergeError("cannot merge: one has a scaling or an intercept, and the other has none")
        if self.is_warming_up and other.is_warming_up and self.wanted != other.wanted:
            raise MergeError(f"cannot merge: scaling is {self.wanted!r} here and {other.wanted!r} there")
        if self.scaling != other.scaling or self.is_warming_up != other.is_warming_up:
            raise MergeError(
                "cannot merge: the two have learned with different scalings; give both the same scaling "
                "while they warm up: policy.scaling = other.scaling = known"
            )

    def merge(self, other: "Features") -> None:
        """Add the requests that another policy has seen in its warm-up."""
        if self.sample is not None and other.sample is not None:
            self.sample.merge(other.sample)

    # -- what it tells ------------------------------------------------------------------------------

    def named(self, columns: tuple[int, ...]) -> tuple[Name, ...]:
        """The names of columns, or their places if they have none."""
        names = self.names.names
        return columns if names is None else tuple(names[column] for column in columns)

    @property
    def dropped(self) -> tuple[Name, ...]:
        """The columns that count as constant, because float64 has no digits for how they vary."""
        return () if self.scaling is None else self.named(self.scaling.dropped)

    @property
    def description(self) -> str | None:
        """The scaling in words; None if there is none."""
        if self.scaling is None:
            return None
        if self.sample is None:
            return f"{self.scaling.kind}, one scale for all" if self.scaling.is_common else self.scaling.kind
        what = self.wanted or "length of the intercept"
        return f"{what}, warming up: {self.sample.requests} of {WARM_UP} requests seen"

    def __repr__(self) -> str:
        if self.scaling is None:
            return "scaling=None"
        constant = f", intercept={self.scaling.constant:.4g}" if self.intercept else ""
        return f"scaling={self.description!r}{constant}"

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays held."""
        return sum(held.nbytes for held in (self.scaling, self.sample) if held is not None)

    # -- files --------------------------------------------------------------------------------------

    def _saved(self) -> tuple[Scalars, Arrays]:
        """JSON values and arrays that ``restore`` reads with the scaling. There must be one."""
        assert self.scaling is not None  # noqa: S101  (for the type checker)
        numbers, arrays = self.scaling.dump()
        scalars = {"wanted": self.wanted, "intercept": self.intercept, "scaling": numbers}
        if self.sample is None:
            return scalars, arrays
        seen, rows = self.sample.dump()
        return {**scalars, "sample": seen, "next_fit": self._next_fit}, arrays | under("sample", rows)

    def restore(self, scalars: Scalars, arrays: Arrays) -> None:
        """Restore the scaling and the warm-up that ``_saved`` described."""
        scaling = Scaling.undump(scalars["scaling"], arrays)
        self.dim, self.wanted = scaling.dim, scalars["wanted"]
        self.intercept = float(scalars["intercept"])
        self._read_through(scaling)
        if "sample" in scalars:
            self.sample = Sample.undump(scalars["sample"], taken_from("sample", arrays))
            self._next_fit = int(scalars["next_fit"])
