"""The interface of a sketch, and the parts that are the same for all kinds."""

import copy
import sys
from abc import abstractmethod
from typing import Any, ClassVar, Self

from sketchbandit.array_api import is_foreign
from sketchbandit.arrays import AnyArray, Arrays, Matrix, Scalars, Vector
from sketchbandit.errors import InputTypeError, MergeError, MergeKindError
from sketchbandit.sketch.change import NO_CHANGE, Change
from sketchbandit.sketch.checks import check_real
from sketchbandit.sketch.columns import ColumnNames
from sketchbandit.sketch.device_gram import device_rows
from sketchbandit.sketch.row_stats import RowStats
from sketchbandit.sketch.rows import read_rows
from sketchbandit.sketch.telling import Telling
from sketchbandit.thread_safety import both_locks, holds_the_lock, needs_the_lock


class Sketch(Telling):
    """Base class of sketches. A sketch is a streaming summary (S, alpha, e) of the rows X seen so far.

    At every moment

        S'S  ⪯  X'X  ⪯  S'S + e I,        e = ``error_bound``, S = ``rows``.

    X holds the rows as ``dtype`` stores them. Each is multiplied by the square root of its weight, which is 1
    until ``forget`` reduces it. The left side holds up to ``rounding``, which e includes. Both sides hold up
    to ``uncounted``, the rounding of float64 sums.

    Subclasses implement the abstract members below. ``sketchbandit.testing`` has the laws of a sketch as
    tests to inherit (docs/extending.md). Methods that start with an underscore are hooks for subclasses.

    Threads may share a sketch: every public call is atomic. For that, ``rows`` must be an array that no later
    update writes to.

    Examples
    --------
    >>> import numpy as np, sketchbandit as sb
    >>> X = np.random.default_rng(0).standard_normal((100, 5))
    >>> sketch = sb.ExactSketch(5)
    >>> change = sketch.update(X)
    >>> bool(np.allclose(sketch.covariance(), X.T @ X)), sketch.error_bound
    (True, 0.0)

    """

    _kinds: ClassVar[dict[str, type[Any]]] = {}
    _noun = "sketch"

    _differs_between_parts: ClassVar[frozenset[str]] = frozenset()
    """Settings in which sketches to be merged may differ."""

    # -- what can be done with it -------------------------------------------------------------------

    @holds_the_lock
    def update(self, rows: Any) -> Change:
        """Add one row or many rows.

        Many rows at once give the same sketch as one by one, but faster.

        Parameters
        ----------
        rows : array of shape (dim,) or (n, dim)
            A numpy array, list, DataFrame or scipy.sparse matrix. Arrays of torch, JAX, CuPy and other
            libraries that follow the array API standard are taken too. Frequent Directions and incremental
            SVD collect these on their device, and shrink when the sketch is read.

        Returns
        -------
        Change
            What happened to S.

        Raises
        ------
        InputError
            If a row cannot be used. Then nothing has changed.

        Examples
        --------
        >>> import sketchbandit as sb
        >>> sketch = sb.FrequentDirections(3, size=2)
        >>> sketch.update([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]).appended
        2

        """
        if is_foreign(rows):
            return self._update_foreign(rows)
        with self._lock:
            batch = read_rows(self.column_names.align(rows), self._dim, self._dtype)
            change = NO_CHANGE
            self.row_stats.check(batch.mass)
            for chunk, norms_sq in batch.chunks():
                change = change.then(self.take(chunk, norms_sq))
            self.column_names.remember(rows)
        return change

    def compress(self) -> Change:
        """Shrink buffered rows if there are enough, and free memory that no row uses."""
        self.row_stats.version += 1
        return self._compress()

    def forget(self, factor: float) -> Change:
        """Multiply the weights of all rows seen so far by this factor. Use it for data that drift.

        S'S, alpha, the error bound and the mass are multiplied by the factor, so the error shrinks too.
        ``count`` stays, and ``effective_count`` is the sum of the weights. The ridge of a policy is not part
        of the sketch, and is not forgotten.

        Parameters
        ----------
        factor : float
            Above 0 and at most 1.

        Returns
        -------
        Change
            What happened to S.

        Examples
        --------
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
        self.row_stats.forget(factor)
        return self._said(self._forget(factor), by="_forget")

    @holds_the_lock
    def merge(self, other: "Sketch") -> Change:
        """Add the rows that another sketch of the same kind and settings has seen.

        The error bounds add up, plus whatever the merge itself has to shrink. ``other`` stays as it is.

        Parameters
        ----------
        other : Sketch
            A sketch of the same class with the same settings.

        Returns
        -------
        Change
            What happened to S.

        Examples
        --------
        >>> import sketchbandit as sb
        >>> here, there = sb.FrequentDirections(2, size=2), sb.FrequentDirections(2, size=2)
        >>> change = here.update([1.0, 0.0])
        >>> change = there.update([0.0, 2.0])
        >>> change = here.merge(there)
        >>> here.count, here.mass
        (2, 5.0)

        """
        self._check_same_kind(other)
        if other is self:
            other = copy.deepcopy(self)
        with both_locks(self, other):
            self._check_mergeable(other)
            self.row_stats.check(other.row_stats.mass)
            self.column_names = self.column_names.merged(other.column_names)
            self.row_stats.add(other.row_stats)
            self._absorb(other)
        return Change(rebuilt=True)  # alpha may have changed even if rows were only appended

    # -- for callers that hold the lock and have checked their rows -----------------------------------

    @needs_the_lock
    def take_one(self, row: AnyArray, norm_sq: float) -> Change:
        """Add one finite row (1, dim) of the sketch's dtype, whose mass was checked. The fast path."""
        row_stats = self.row_stats
        row_stats.version += 1
        row_stats.count += 1
        row_stats.mass += norm_sq
        if not norm_sq:  # a zero row changes nothing but the count
            return NO_CHANGE
        row_stats.nonzero += 1
        return self._ingest_one(row, norm_sq)

    @needs_the_lock
    def take(self, rows: AnyArray, norms_sq: Vector) -> Change:
        """Add finite rows of the sketch's dtype, whose mass was checked. ``update`` calls this."""
        change = NO_CHANGE
        while len(rows):
            some = min(len(rows), self._most_at_once)
            if some == 1:
                taken = self.take_one(rows[:1], float(norms_sq[0]))
            else:
                first = norms_sq[:some]
                self.row_stats.add_rows(first)
                nonzero = rows[:some] if first.all() else rows[:some][first > 0.0]
                taken = self._said(self._ingest(nonzero)) if len(nonzero) else NO_CHANGE
            change = change.then(taken)
            rows, norms_sq = rows[some:], norms_sq[some:]
        return change

    def add_gram(self, gram: Matrix, row_stats: RowStats) -> None:
        """Add rows of which only X'X is known. Only if ``gram_up_to_dim`` is not 0."""
        self.row_stats.add(row_stats)
        if row_stats.nonzero:
            self._add_gram(gram)

    # -- hooks for subclasses -----------------------------------------------------------------------

    def _update_foreign(self, rows: Any) -> Change:
        """Do ``update`` for an array of another library. The lock is not held yet."""
        library, rows = device_rows(rows, self._dim)
        return self.update(library.to_host(rows))

    @abstractmethod
    def _ingest(self, rows: AnyArray) -> Change:
        """Add checked non-zero rows of the sketch's dtype. The row_stats includes them already."""

    def _ingest_one(self, row: AnyArray, norm_sq: float) -> Change:
        """Do ``_ingest`` for one row (1, dim), for sketches with a faster way."""
        del norm_sq
        return self._said(self._ingest(row))

    @property
    def _most_at_once(self) -> int:
        """The number of rows that ``_ingest`` may get at once. Small if it reads the row_stats in between."""
        return sys.maxsize

    def _said(self, change: Any, by: str = "_ingest") -> Change:
        if not isinstance(change, Change):
            raise InputTypeError(
                f"{type(self).__name__}.{by} must return a sketchbandit.Change, got {change!r}; "
                "Change(rebuilt=True) is never wrong"
            )
        return change

    def _forget(self, factor: float) -> Change:
        """Multiply S by the square root of the factor, and alpha and the error bound by the factor.

        The row_stats has done so already. Rows that were orthogonal must stay so.
        """
        raise NotImplementedError

    def _check_can_forget(self) -> None:
        """Raise if the sketch cannot forget, before anything changes."""
        if type(self)._forget is Sketch._forget:
            raise InputTypeError(
                f"{type(self).__name__} cannot forget: give it a method _forget(factor) that multiplies S by "
                "the square root of the factor, and alpha and the error bound by the factor"
            )

    def _blank(self) -> "Sketch":
        """A fresh sketch with the same settings."""
        return type(self)(**self._settings())

    def _compress(self) -> Change:
        """Do ``compress``. The default does nothing."""
        return NO_CHANGE

    @abstractmethod
    def _absorb(self, other: Any) -> None:
        """Add another sketch of the same class and settings. The row_stats includes it already."""

    @abstractmethod
    def _state(self) -> tuple[Scalars, Arrays]:
        """The state apart from count and mass: JSON values and arrays."""

    @abstractmethod
    def _restore(self, scalars: Scalars, arrays: Arrays) -> None:
        """Restore the state that ``_state`` returned, on a fresh instance."""

    def _add_gram(self, gram: Matrix) -> None:
        """Do ``add_gram``. The row_stats includes the rows already.

        All losses go into the error bound, also what factor_of_covariance leaves out and what is rounded.
        """
        raise NotImplementedError(f"{type(self).__name__} collects rows in X'X, so it needs _add_gram")

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
        scalars = {"settings": self._settings(), **self.row_stats.dump(), "state": learned}
        if self.column_names.names is not None:
            scalars["columns"] = self.column_names.names
        return scalars, arrays

    @classmethod
    def undump(cls, scalars: Scalars, arrays: Arrays, **extra: Any) -> Self:
        """Return the sketch that ``dump`` described."""
        sketch = cls(**scalars["settings"], **extra)
        sketch.row_stats.restore(scalars)
        sketch.column_names = ColumnNames(scalars.get("columns"))
        sketch._restore(scalars["state"], arrays)
        return sketch
