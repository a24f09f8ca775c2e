"""What every sketch is: the contract, and the parts of it that do not depend on the kind."""

import copy
import sys
from abc import abstractmethod
from typing import Any, ClassVar, Self

from sketchbandit.arrays import AnyArray, Arrays, Matrix, Scalars, Vector
from sketchbandit.errors import InputTypeError, MergeError, MergeKindError
from sketchbandit.libraries import is_foreign
from sketchbandit.sharing import both_locks, holds_the_lock, needs_the_lock
from sketchbandit.sketch.change import NO_CHANGE, Change
from sketchbandit.sketch.checks import check_real
from sketchbandit.sketch.columns import ColumnNames
from sketchbandit.sketch.gathering import device_rows
from sketchbandit.sketch.rows import read_rows
from sketchbandit.sketch.tally import Tally
from sketchbandit.sketch.telling import Telling


class Sketch(Telling):
    """A streaming summary (S, alpha, e) of the rows X seen so far.

    At every moment

        S'S  ⪯  X'X  ⪯  S'S + e I,        e = ``error_bound``, S = ``rows``,

    where X has the rows as ``dtype`` holds them, each times the root of its weight: 1, until ``forget`` makes
    it less. The left side holds up to ``rounding``, which e includes.
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

    # -- what can be done with it -------------------------------------------------------------------

    @holds_the_lock
    def update(self, rows: Any) -> Change:
        """Take one row (dim,) or many (n, dim): numpy, lists or scipy.sparse; returns what happened to S.

        Arrays of torch, JAX, CuPy and other libraries that follow the array API standard are taken too.
        Frequent Directions and incremental SVD sum them up where they are, and shrink when somebody reads.

        Many at once give the same sketch as one by one, faster. Input that cannot be used raises before
        anything changes.
        """
        if is_foreign(rows):
            return self._update_foreign(rows)
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

    def forget(self, factor: float) -> Change:
        """Let all rows seen so far count by this factor, above 0 and at most 1: their weights times it.

        S'S, alpha, the certificate and the mass are multiplied by it: what is forgotten of the error is gone.
        ``count`` stays, ``effective_count`` is the sum of the weights. The ridge of a policy is not part of
        the sketch, and is not forgotten.

        >>> import sketchbandit as sb
        >>> sketch = sb.FrequentDirections(2, size=2)
        >>> change = sketch.update([[2.0, 0.0], [0.0, 1.0]])
        >>> change = sketch.forget(0.25)
        >>> sketch.mass, sketch.count, sketch.effective_count
        (1.25, 2, 0.5)
        """
        factor = check_real("factor", factor, above=0.0, at_most=1.0)
        self._check_can_forget()
        if factor == 1.0:
            return NO_CHANGE
        self.tally.forget(factor)
        return self._said(self._forget(factor), by="_forget")

    @holds_the_lock
    def merge(self, other: "Sketch") -> Change:
        """Take in what another sketch of the same kind and settings has seen.

        Certificates add, and with them whatever the merge itself has to shrink.
        """
        self._check_same_kind(other)
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
        """One finite row, (1, dim), of the sketch's dtype, whose mass was checked, as quick as can be."""
        tally = self.tally
        tally.version += 1
        tally.count += 1
        tally.mass += norm_sq
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
                taken = self._said(self._ingest(nonzero)) if len(nonzero) else NO_CHANGE
            change = change.then(taken)
            rows, norms_sq = rows[some:], norms_sq[some:]
        return change

    def add_gram(self, gram: Matrix, tally: Tally) -> None:
        """Rows of which there is only X'X, where ``gram_up_to_dim`` is not 0."""
        self.tally.add(tally)
        if tally.nonzero:
            self._add_gram(gram)

    # -- hooks for subclasses -----------------------------------------------------------------------

    def _update_foreign(self, rows: Any) -> Change:
        """What ``update`` does with an array of another library; nobody holds the lock yet."""
        library, rows = device_rows(rows, self._dim)
        return self.update(library.to_host(rows))

    @abstractmethod
    def _ingest(self, rows: AnyArray) -> Change:
        """Take checked, non-zero rows of the sketch's dtype; the tally has them already."""

    def _ingest_one(self, row: AnyArray, norm_sq: float) -> Change:
        """The same for one row, (1, dim), where that can be done quicker."""
        del norm_sq
        return self._said(self._ingest(row))

    @property
    def _most_at_once(self) -> int:
        """How many rows ``_ingest`` may be given: fewer where it reads the tally in between."""
        return sys.maxsize

    def _said(self, change: Any, by: str = "_ingest") -> Change:
        if not isinstance(change, Change):
            raise InputTypeError(
                f"{type(self).__name__}.{by} must return a sketchbandit.Change, got {change!r}; "
                "Change(rebuilt=True) is never wrong"
            )
        return change

    def _forget(self, factor: float) -> Change:
        """S times the root of the factor; alpha and the certificate times it. The tally has done so already.

        Rows that were orthogonal to one another must stay so.
        """
        raise NotImplementedError

    def _check_can_forget(self) -> None:
        """Refuse to forget, before anything changes, where a part has no way to."""
        if type(self)._forget is Sketch._forget:
            raise InputTypeError(
                f"{type(self).__name__} cannot forget: give it a method _forget(factor) that multiplies S by "
                "the root of the factor, and alpha and the certificate by the factor"
            )

    def _blank(self) -> "Sketch":
        """A fresh sketch of the same settings."""
        return type(self)(**self._settings())

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

    def _check_same_kind(self, other: Any) -> None:
        if type(other) is not type(self):
            raise MergeKindError(f"cannot merge {type(other).__name__} into {type(self).__name__}")

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
