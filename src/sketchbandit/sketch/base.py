"""What every sketch is: the contract, and the parts of it that do not depend on the kind."""

import copy
import math
import sys
from abc import abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import DTypeLike

from sketchbandit.arrays import AnyArray, Arrays, Matrix, Scalars, Vector
from sketchbandit.errors import MergeError, MergeKindError
from sketchbandit.linalg import SUM_ROUNDING, covariance_of
from sketchbandit.sharing import both_locks, holds_the_lock, needs_the_lock
from sketchbandit.sketch.change import NO_CHANGE, Change
from sketchbandit.sketch.checks import check_count, check_dtype
from sketchbandit.sketch.columns import ColumnNames, Name
from sketchbandit.sketch.rows import read_rows
from sketchbandit.sketch.tally import Tally
from sketchbandit.storing import Stored


class Sketch(Stored):
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

    _kinds: ClassVar[dict[str, type[Any]]] = {}
    _noun = "sketch"

    _differs_between_parts: ClassVar[frozenset[str]] = frozenset()
    """Settings that sketches to be merged need not share."""

    def __init__(self, dim: int, dtype: DTypeLike) -> None:
        self._dim = check_count("dim", dim, at_least=1)
        self._dtype = check_dtype(dtype)
        self.tally = Tally(self._dtype)
        """Count and mass, for whoever holds the lock."""
        self.column_names = ColumnNames()
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
        return self.column_names.names

    @property
    def count(self) -> int:
        """How many rows were seen, zero rows included."""
        return self.tally.count

    @property
    def mass(self) -> float:
        """Sum of the squared norms of the rows seen."""
        return self.tally.mass

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

    @needs_the_lock
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
        return SUM_ROUNDING * self.tally.mass

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

    def gram(self) -> Matrix:
        """S'S as a dense (dim, dim) matrix: for small dim."""
        first, *others = self.views()
        gram = covariance_of(first)
        for rows in others:
            gram += covariance_of(rows)
        return gram

    def covariance(self) -> Matrix:
        """S'S + alpha I as a dense (dim, dim) matrix: for small dim."""
        covariance = self.gram()
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
            batch = read_rows(self.column_names.align(rows), self._dim, self._dtype)
            change = NO_CHANGE
            self.tally.check(batch.mass)
            for chunk, norms_sq in batch.chunks():
                change = change.then(self.take(chunk, norms_sq))
            self.column_names.remember(rows)
        return change

    def compress(self) -> Change:
        """Shrink buffered rows in where there are enough for it, and give back memory that no row uses."""
        self.tally.version += 1
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
            self.tally.check(other.tally.mass)
            self.column_names = self.column_names.merged(other.column_names)
            self.tally.add(other.tally)
            self._absorb(other)
        return Change(rebuilt=True)  # alpha may have moved even where rows were only appended

    # -- for whoever holds the lock, and has checked what it gives ------------------------------------

    @needs_the_lock
    def take_one(self, row: AnyArray, norm_sq: float) -> Change:
        """One finite row, (1, dim), of the sketch's dtype, as quick as can be."""
        tally = self.tally
        mass = tally.mass + norm_sq
        if not mass <= tally.most_mass:
            tally.check(norm_sq)  # says why
        tally.version += 1
        tally.count += 1
        tally.mass = mass
        if not norm_sq:  # a zero row changes nothing but the count
            return NO_CHANGE
        tally.nonzero += 1
        return self._ingest_one(row, norm_sq)

    @needs_the_lock
    def take(self, rows: AnyArray, norms_sq: Vector) -> Change:
        """Finite rows of the sketch's dtype whose mass was checked: what ``update`` does with them."""
        change = NO_CHANGE
        while len(rows):
            some = min(len(rows), self._most_at_once)
            if some == 1:
                taken = self.take_one(rows[:1], float(norms_sq[0]))
            else:
                first = norms_sq[:some]
                self.tally.add_rows(first)
                nonzero = rows[:some] if first.all() else rows[:some][first > 0.0]
                taken = self._ingest(nonzero) if len(nonzero) else NO_CHANGE
            change = change.then(taken)
            rows, norms_sq = rows[some:], norms_sq[some:]
        return change

    def add_gram(self, gram: Matrix, tally: Tally) -> None:
        """Rows of which there is only X'X, where ``gram_up_to_dim`` is not 0."""
        self.tally.add(tally)
        if tally.nonzero:
            self._add_gram(gram)

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
        """Take checked, non-zero rows of the sketch's dtype; the tally has them already."""

    def _ingest_one(self, row: AnyArray, norm_sq: float) -> Change:
        """The same for one row, (1, dim), where that can be done quicker."""
        del norm_sq
        return self._ingest(row)

    @property
    def _most_at_once(self) -> int:
        """How many rows ``_ingest`` may be given: fewer where it reads the tally in between."""
        return sys.maxsize

    def _compress(self) -> Change:
        """What ``compress`` does; nothing, unless a subclass knows better."""
        return NO_CHANGE

    @abstractmethod
    def _absorb(self, other: Any) -> None:
        """Take in another sketch of the same class and settings; the tally is up to date already."""

    @abstractmethod
    def _state(self) -> tuple[Scalars, Arrays]:
        """What was learned, apart from count and mass: JSON values and arrays."""

    @abstractmethod
    def _restore(self, scalars: Scalars, arrays: Arrays) -> None:
        """Set the state that ``_state`` returned, on a fresh instance."""

    def _add_gram(self, gram: Matrix) -> None:
        """What ``add_gram`` does; the tally is up to date already.

        Whatever is lost goes into the certificate, what factor_of_covariance leaves and what is rounded away
        too.
        """
        raise NotImplementedError(f"{type(self).__name__} sums rows up in X'X, so it needs _add_gram")

    def _check_mergeable(self, other: Any) -> None:
        mine, theirs = self._settings(), other._settings()
        differing = [n for n in mine if mine[n] != theirs[n] and n not in self._differs_between_parts]
        if differing:
            name = differing[0]
            raise MergeError(
                f"cannot merge sketches with different settings: {name} is {mine[name]!r} here "
                f"and {theirs[name]!r} there"
            )

    def _content(self) -> tuple[Scalars, Arrays]:
        learned, arrays = self._state()
        scalars = {"settings": self._settings(), **self.tally.dump(), "state": learned}
        if self.column_names.names is not None:
            scalars["columns"] = self.column_names.names
        return scalars, arrays

    @classmethod
    def undump(cls, scalars: Scalars, arrays: Arrays, **extra: Any) -> Self:
        """The sketch that ``dump`` described."""
        sketch = cls(**scalars["settings"], **extra)
        sketch.tally.restore(scalars)
        sketch.column_names = ColumnNames(scalars.get("columns"))
        sketch._restore(scalars["state"], arrays)
        return sketch


def read_only(rows: AnyArray) -> AnyArray:
    """A view of the array that nobody can write to."""
    view = rows.view()
    view.flags.writeable = False
    return view
