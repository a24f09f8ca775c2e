"""What every sketch is: the contract, and the parts of it that do not depend on the kind."""

import copy
import math
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray

from sketchbandit import files
from sketchbandit.arrays import AnyArray, Arrays, Scalars
from sketchbandit.errors import FileError, InputError, InputTypeError, MergeError, MergeKindError
from sketchbandit.linalg import SUM_ROUNDING, covariance_of, running_sums
from sketchbandit.sharing import Shared, both_locks, holds_the_lock
from sketchbandit.sketch.checks import check_count, check_dtype
from sketchbandit.sketch.columns import ColumnNames, Name
from sketchbandit.sketch.rows import read_rows


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


def known_change(change: Any) -> Change:
    """What a sketch's ``update`` returned; one that does not say may have changed everything."""
    return change if isinstance(change, Change) else Change(rebuilt=True)


class Sketch(Shared, ABC):
    """A streaming summary (S, alpha, e) of the rows X seen so far.

    At every moment

        S'S  ⪯  X'X  ⪯  S'S + e I,        e = ``error_bound``, S = ``rows``,

    where X has the rows as ``dtype`` holds them. The left side holds up to ``rounding``, which e includes.
    Both hold up to ``uncounted``, what sums in float64 get wrong.

    Subclasses implement the abstract members below; ``sketchbandit.testing`` ships the laws as tests to
    inherit. The hooks that start with an underscore are for subclasses, never for callers.

    Threads may share a sketch: every public call is atomic. (``rows`` must then be an array that no later
    update changes: a copy, or one that is replaced rather than written to.)
    """

    kind: ClassVar[str]
    """The name under which files know the class."""

    _differs_between_parts: ClassVar[frozenset[str]] = frozenset()
    """Settings that sketches to be merged need not share."""

    _kinds: ClassVar[dict[str, type["Sketch"]]] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "kind" in cls.__dict__:
            Sketch._kinds[cls.kind] = cls

    def __init__(self, dim: int, dtype: DTypeLike) -> None:
        self._dim = check_count("dim", dim, at_least=1)
        self._dtype = check_dtype(dtype)
        self._most_mass = float(np.finfo(self._dtype).max)
        self._count = 0
        self._mass = 0.0
        self._edition = 0  # how often somebody asked for a compression or a merge
        self._columns = ColumnNames()
        self._lock = self._make_lock()

    # -- what a sketch tells ------------------------------------------------------------------------

    @property
    def dim(self) -> int:
        """Length of a row."""
        return self._dim

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype in which rows are stored."""
        return self._dtype

    @property
    def columns(self) -> tuple[Name, ...] | None:
        """The names of the columns, if rows came as a DataFrame; later ones are put in this order."""
        return self._columns.names

    @property
    def count(self) -> int:
        """How many rows were seen, zero rows included."""
        return self._count

    @property
    def mass(self) -> float:
        """Sum of the squared norms of the rows seen."""
        return self._mass

    @property
    @abstractmethod
    def size(self) -> int:
        """The current sketch size l."""

    @property
    @abstractmethod
    def rows(self) -> AnyArray:
        """S, (r, dim), buffered rows included: a read-only copy."""

    @property
    def row_count(self) -> int:
        """How many rows S has; dim where S'S is held as a matrix."""
        return self._dim if self.is_dense else sum(len(view) for view in self.views())

    @property
    def parts(self) -> tuple[AnyArray, ...]:
        """``rows`` in the pieces in which they are kept: one below the other they are S."""
        return tuple(read_only(view.copy()) for view in self.views())

    @holds_the_lock
    def views(self) -> tuple[AnyArray, ...]:
        """``parts``, not copied: for whoever holds the lock, and valid until the next update."""
        return (self.rows,)

    @property
    def is_dense(self) -> bool:
        """Whether S'S is held as a matrix: ``covariance()`` is then cheap and ``rows`` is not."""
        return False

    @property
    @abstractmethod
    def alpha(self) -> float:
        """What the sketch adds to the diagonal: X'X is estimated by S'S + alpha I."""

    @property
    @abstractmethod
    def error_bound(self) -> float:
        """The certificate e: no direction of X'X exceeds that of S'S by more."""

    @property
    def rounding(self) -> float:
        """The part of ``error_bound`` that is rounding; S'S may exceed X'X by as much."""
        return 0.0

    @property
    def uncounted(self) -> float:
        """What rounding in float64 may add to the error besides: 4·eps·mass, and what shrinks round.

        It is not in ``error_bound`` because it is at most some 1e-11 of the mass.
        """
        return SUM_ROUNDING * self._mass

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Bytes of every array held."""

    @property
    def guarantee(self) -> float:
        """The g with ``error_bound - rounding <= mass / g`` on every stream; 0 if nothing is promised."""
        return 0.0

    @property
    def error_limit(self) -> float:
        """What ``error_bound`` will never exceed, whatever the stream; inf if nothing is promised."""
        return float("inf")

    @property
    def error_order(self) -> float:
        """The p for which ``error_bound`` is O(t^p) on every stream; inf if nothing is promised."""
        return 0.0 if math.isfinite(self.error_limit) else math.inf

    @property
    def budget(self) -> float:
        """What ``error_bound`` may be by now; inf if nothing is promised."""
        return self.error_limit

    @property
    def exact_rank(self) -> int:
        """The largest rank of a stream that is kept without any loss; 0 if nothing is promised."""
        return 0

    @property
    def lossless_room(self) -> int:
        """How many rows can come before anything may be lost; 0 if nothing is promised."""
        return 0

    @property
    def gram_up_to_dim(self) -> int:
        """The dim up to which many rows are better summed up in X'X first; see ``BulkReader``."""
        return 0

    def covariance(self) -> NDArray[np.float64]:
        """S'S + alpha I as a dense (dim, dim) matrix: for small dim."""
        covariance = np.zeros((self._dim, self._dim))
        for rows in self.views():
            covariance += covariance_of(rows)
        covariance[np.diag_indices_from(covariance)] += self.alpha
        return covariance

    # -- what can be done with it -------------------------------------------------------------------

    @holds_the_lock
    def update(self, rows: Any) -> Change:
        """Take one row (dim,) or many (n, dim): numpy, lists or scipy.sparse; returns what happened to S.

        Many at once give the same sketch as one by one, faster. Input that cannot be used raises before
        anything changes.
        """
        with self._lock:
            batch = read_rows(self._columns.align(rows), self._dim, self._dtype)
            change = NO_CHANGE
            self._check_mass(batch.mass)
            for chunk, norms_sq in batch.chunks():
                change = change.then(self._take(chunk, norms_sq))
            self._columns.remember(rows)
        return change

    def compress(self) -> Change:
        """Shrink buffered rows in where there are enough for it, and give back memory that no row uses."""
        self._edition += 1
        return self._compress()

    @holds_the_lock
    def merge(self, other: "Sketch") -> Change:
        """Take in what another sketch of the same kind and settings has seen.

        Certificates add, and with them whatever the merge itself has to shrink.
        """
        if type(other) is not type(self):
            raise MergeKindError(f"cannot merge {type(other).__name__} into {type(self).__name__}")
        if other is self:
            other = copy.deepcopy(self)
        with both_locks(self, other):
            self._check_mergeable(other)
            self._check_mass(other.mass)
            self._columns = self._columns.merged(other._columns)
            self._edition += 1
            self._absorb(other)
            self._count += other.count
            self._mass += other.mass
        return Change(rebuilt=True)  # alpha may have moved even where rows were only appended

    def save(self, path: str | Path) -> None:
        """Write the sketch to ``path`` (safetensors, atomically); ``sketchbandit.load`` reads it back."""
        scalars, arrays = self._dump()
        files.write(Path(path), self.kind, scalars, arrays)

    def __repr__(self) -> str:
        settings = ", ".join(f"{name}={value!r}" for name, value in self._settings().items())
        kept = "S'S" if self.is_dense else self.row_count
        return (
            f"<{type(self).__name__}({settings}): {self.count} rows seen, {kept} kept, "
            f"error <= {self.error_bound:.4g}>"
        )

    # -- hooks for subclasses -----------------------------------------------------------------------

    @abstractmethod
    def _settings(self) -> Scalars:
        """The constructor's keyword arguments, as JSON values."""

    @abstractmethod
    def _ingest(self, rows: AnyArray) -> Change:
        """Take checked, non-zero rows of the sketch's dtype; count and mass are already up to date."""

    def _compress(self) -> Change:
        """What ``compress`` does; nothing, unless a subclass knows better."""
        return NO_CHANGE

    @abstractmethod
    def _absorb(self, other: Any) -> None:
        """Take in another sketch of the same class and settings; count and mass are not its business."""

    @abstractmethod
    def _state(self) -> tuple[Scalars, Arrays]:
        """What was learned, apart from count and mass: JSON values and arrays."""

    @abstractmethod
    def _restore(self, scalars: Scalars, arrays: Arrays) -> None:
        """Set the state that ``_state`` returned, on a fresh instance."""

    def _add_gram(self, covariance: NDArray[np.float64], taken: int) -> None:
        """Take in X'X of ``taken`` rows that were not zero, where ``gram_up_to_dim`` is not 0.

        Count and mass are not its business. Whatever is lost goes into the certificate, what
        factor_of_covariance leaves and what is rounded away too.
        """
        raise NotImplementedError(
            f"{type(self).__name__} gathers rows in X'X, so it needs a method _add_gram"
        )

    def _check_mergeable(self, other: Any) -> None:
        mine, theirs = self._settings(), other._settings()
        differing = [n for n in mine if mine[n] != theirs[n] and n not in self._differs_between_parts]
        if differing:
            name = differing[0]
            raise MergeError(
                f"cannot merge sketches with different settings: {name} is {mine[name]!r} here "
                f"and {theirs[name]!r} there"
            )

    # -- shared machinery ---------------------------------------------------------------------------

    def _take(self, rows: AnyArray, norms_sq: NDArray[np.float64]) -> Change:
        """Rows that were checked, mass included: what ``update`` does with them."""
        if len(rows) == 1:
            return self._take_one(rows, float(norms_sq[0]))
        self._count += len(rows)
        # One after the other, as if the rows had come one by one: the sum is the same to the bit.
        self._mass = float(running_sums(self._mass, norms_sq)[-1])
        # A zero row changes nothing but the count.
        nonzero = rows if norms_sq.all() else rows[norms_sq > 0.0]
        return self._ingest(nonzero) if len(nonzero) else NO_CHANGE

    def _take_one(self, row: AnyArray, norm_sq: float) -> Change:
        """One checked row, (1, dim)."""
        self._count += 1
        self._mass += norm_sq
        return self._ingest(row) if norm_sq else NO_CHANGE

    def _check_mass(self, added: float) -> None:
        """Refuse what would overflow: entries of X'X and squared norms of sketch rows reach the mass."""
        if not self._mass + added <= self._most_mass:
            raise InputError(
                f"the sum of squared norms would overflow {self._dtype}: "
                f"{self._mass:g} so far, {added:g} to come; rescale the rows"
            )

    def _dump(self) -> tuple[Scalars, Arrays]:
        if Sketch._kinds.get(self.kind) is not type(self):
            raise InputTypeError(
                f"{type(self).__name__} needs a `kind` of its own to be saved; {self.kind!r} names "
                f"{Sketch._kinds[self.kind].__name__}"
            )
        learned, arrays = self._state()
        scalars = {"settings": self._settings(), "count": self._count, "mass": self._mass, "state": learned}
        if self._columns.names is not None:
            scalars["columns"] = self._columns.names
        return scalars, arrays

    @classmethod
    def _undump(cls, scalars: Scalars, arrays: Arrays, **extra: Any) -> Self:
        sketch = cls(**scalars["settings"], **extra)
        sketch._count = check_count("count", scalars["count"], at_least=0)
        sketch._mass = float(scalars["mass"])
        sketch._columns = ColumnNames(scalars.get("columns"))
        sketch._restore(scalars["state"], arrays)
        return sketch


def read_only(rows: AnyArray) -> AnyArray:
    """A view of the array that nobody can write to."""
    view = rows.view()
    view.flags.writeable = False
    return view


def sketch_class(kind: str) -> type[Sketch]:
    """The class that files call ``kind``."""
    try:
        return Sketch._kinds[kind]
    except KeyError:
        raise FileError(
            f"unknown kind of sketch {kind!r} (known: {', '.join(sorted(Sketch._kinds))}); "
            "if a package of yours defines it, import that package before loading"
        ) from None
