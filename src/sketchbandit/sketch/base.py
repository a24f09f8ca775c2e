"""The contract of a sketch, and what is the same for all kinds."""

import copy
import math
import sys
from abc import abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import DTypeLike

from sketchbandit.array_api import Array, is_foreign
from sketchbandit.arrays import AnyArray, Arrays, Dtype, Matrix, Parts, Scalars, Vector
from sketchbandit.errors import InputTypeError, MergeError, MergeKindError
from sketchbandit.html_repr import Facts, amount, certificate
from sketchbandit.linalg import SUM_ROUNDING, covariance_of, gram_of_parts, row_norms_sq
from sketchbandit.registry import Registry, setting_names
from sketchbandit.serialization import Stored
from sketchbandit.sketch.accounts import NO_CHANGE, Change, RowStats
from sketchbandit.sketch.checks import check_count, check_dtype, check_real
from sketchbandit.sketch.row_input import ColumnNames, Name, device_rows, read_rows
from sketchbandit.thread_safety import both_locks, holds_the_lock, needs_the_lock

SKETCHES: Registry["Sketch"] = Registry("sketch")


class Sketch(Stored):
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

    _registry = SKETCHES

    _differs_between_parts: ClassVar[frozenset[str]] = frozenset()
    """Settings in which sketches to be merged may differ."""

    _takes_products = False
    """Whether S x is of use when the row x comes."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        one, products = (
            next(place for place, owner in enumerate(cls.__mro__) if name in vars(owner))
            for name in ("_ingest_one", "_ingest_with_products")
        )
        if one < products:  # a row of its own, which knows nothing of products
            cls._takes_products = False

    def __init__(self, dim: int, dtype: DTypeLike) -> None:
        self._dim = check_count("dim", dim, at_least=1)
        self._dtype = check_dtype(dtype)
        self.row_stats = RowStats(self._dtype)
        """Count and mass, for callers that hold the lock."""
        self.column_names = ColumnNames()
        self._lock = self._make_lock()

    # -- what can be done with it -------------------------------------------------------------------

    @holds_the_lock
    def update(self, rows: object) -> Change:
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
        return self._checked(self._forget(factor), by="_forget")

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
        mine = self._check_same_kind(other)
        if mine is self:
            mine = copy.deepcopy(self)
        with both_locks(self, mine):
            self._check_mergeable(mine)
            self.row_stats.check(mine.row_stats.mass)
            self.column_names = self.column_names.merged(mine.column_names)
            self.row_stats.add(mine.row_stats)
            self._absorb(mine)
        return Change(rebuilt=True)  # alpha may have changed even if rows were only appended

    # -- what it holds, certifies and promises ------------------------------------------------------

    @property
    def dim(self) -> int:
        """Length of a row."""
        return self._dim

    @property
    def dtype(self) -> Dtype:
        """The dtype in which rows are stored."""
        return self._dtype

    @property
    def columns(self) -> tuple[Name, ...] | None:
        """The column names, if rows came as a DataFrame; else None. Later rows are put into this order."""
        return self.column_names.names

    @property
    def count(self) -> int:
        """The number of rows seen, including zero rows."""
        return self.row_stats.count

    @property
    def effective_count(self) -> float:
        """The sum of the weights of the rows seen. This is their number, unless something was forgotten."""
        return self.row_stats.count - self.row_stats.forgotten

    @property
    def mass(self) -> float:
        """The sum of the squared norms of the rows seen, times their weights."""
        return self.row_stats.mass

    @property
    @abstractmethod
    def size(self) -> int:
        """The current sketch size l."""

    @property
    @abstractmethod
    def rows(self) -> AnyArray:
        """S, shape (r, dim), including buffered rows: a read-only copy."""

    @property
    def row_count(self) -> int:
        """The number of rows of S; dim if S'S is held as a matrix."""
        return self._dim if self.is_dense else sum(len(view) for view in self.views())

    @property
    def parts(self) -> Parts:
        """``rows`` in the pieces in which they are kept. Concatenated, they are S."""
        return tuple(read_only(view.copy()) for view in self.views())

    @needs_the_lock
    def views(self) -> Parts:
        """``parts`` without a copy. Only for callers that hold the lock, and valid until the next update."""
        return (self.rows,)

    @needs_the_lock
    def row_products(self, *, orthogonal: bool = False) -> Matrix:
        """SS', a new array. If the rows are known to be ``orthogonal``, only their lengths are computed."""
        parts = self.views()
        if orthogonal:
            return np.diag(np.concatenate([row_norms_sq(part) for part in parts]))
        return gram_of_parts(parts)

    @property
    def is_dense(self) -> bool:
        """Whether S'S is held as a matrix. Then ``covariance()`` is cheap and ``rows`` is not."""
        return False

    @property
    @abstractmethod
    def alpha(self) -> float:
        """The compensation on the diagonal: X'X is estimated by S'S + alpha I."""

    @property
    @abstractmethod
    def error_bound(self) -> float:
        """The certified error bound e: X'X exceeds S'S by at most e in every direction."""

    @property
    def rounding(self) -> float:
        """The part of ``error_bound`` that is rounding. S'S may exceed X'X by as much."""
        return 0.0

    @property
    def uncounted(self) -> float:
        """A bound on the float64 rounding that ``error_bound`` leaves out: 4·eps·mass, plus that of shrinks.

        It is left out because it is at most about 1e-11 of the mass.
        """
        return SUM_ROUNDING * self.row_stats.mass

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Bytes of all arrays held."""

    @property
    def guarantee(self) -> float:
        """The g with ``error_bound - rounding <= mass / g`` on every stream; 0 if nothing is promised."""
        return 0.0

    @property
    def error_limit(self) -> float:
        """What ``error_bound`` never exceeds, on any stream; inf if nothing is promised."""
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
        """The largest rank of a stream that is kept without loss; 0 if nothing is promised."""
        return 0

    @property
    def plain_room(self) -> int:
        """The number of rows that can come and are only appended, so that no ``Change`` is ``rebuilt``."""
        return 0

    @property
    def lossless_room(self) -> int:
        """The number of rows that can come before anything may be lost; 0 if nothing is promised."""
        return self.plain_room

    @property
    def gram_up_to_dim(self) -> int:
        """The dim up to which it is better to sum up many rows in X'X first (``BulkReader``)."""
        return 0

    def gram(self) -> Matrix:
        """S'S as a dense (dim, dim) matrix, a new array. For small dim."""
        first, *others = self.views()
        gram = covariance_of(first)
        for rows in others:
            gram += covariance_of(rows)
        return gram

    def covariance(self) -> Matrix:
        """S'S + alpha I, the estimate of X'X, as a dense (dim, dim) matrix. For small dim."""
        covariance = self.gram()
        covariance[np.diag_indices_from(covariance)] += self.alpha
        return covariance

    def __repr__(self) -> str:
        settings = ", ".join(f"{name}={value!r}" for name, value in self._settings().items())
        kept = "S'S" if self.is_dense else self.row_count
        return (
            f"<{type(self).__name__}({settings}): {self.count} rows seen, {kept} kept, "
            f"error <= {self.error_bound:.4g}>"
        )

    def _facts(self) -> Facts:
        kept = "S'S, a full matrix" if self.is_dense else f"{self.row_count:,}"
        settings = ", ".join(f"{name}={value!r}" for name, value in self._settings().items())
        return [
            ("settings", settings),
            ("rows seen", f"{self.count:,}"),
            ("rows kept", kept),
            ("memory", amount(self.nbytes)),
            ("certificate", certificate(self.error_bound)),
        ]

    # -- for callers that hold the lock and have checked their rows -----------------------------------

    @needs_the_lock
    def take_one(self, row: AnyArray, norm_sq: float, products: Vector | None = None) -> Change:
        """Add one finite row (1, dim) of the sketch's dtype, whose mass was checked. The fast path.

        ``products`` is S x for the row x, in float64, if it is known: a shrink may use it.
        """
        row_stats = self.row_stats
        row_stats.version += 1
        row_stats.count += 1
        row_stats.mass += norm_sq
        if not norm_sq:  # a zero row changes nothing but the count
            return NO_CHANGE
        row_stats.nonzero += 1
        if products is None or not self._takes_products:
            return self._ingest_one(row, norm_sq)
        return self._ingest_with_products(row, norm_sq, products)

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
                taken = self._checked(self._ingest(nonzero)) if len(nonzero) else NO_CHANGE
            change = change.then(taken)
            rows, norms_sq = rows[some:], norms_sq[some:]
        return change

    def add_gram(self, gram: Matrix, row_stats: RowStats) -> None:
        """Add rows of which only X'X is known. Only if ``gram_up_to_dim`` is not 0."""
        self.row_stats.add(row_stats)
        if row_stats.nonzero:
            self._add_gram(gram)

    # -- hooks for subclasses -----------------------------------------------------------------------

    def _update_foreign(self, rows: Array) -> Change:
        """Do ``update`` for an array of another library. The lock is not held yet."""
        library, rows = device_rows(rows, self._dim)
        return self.update(library.to_host(rows))

    @abstractmethod
    def _ingest(self, rows: AnyArray) -> Change:
        """Add checked non-zero rows of the sketch's dtype. The row_stats includes them already."""

    def _ingest_one(self, row: AnyArray, norm_sq: float) -> Change:
        """Do ``_ingest`` for one row (1, dim), for sketches with a faster way."""
        del norm_sq
        return self._checked(self._ingest(row))

    def _ingest_with_products(self, row: AnyArray, norm_sq: float, products: Vector) -> Change:
        """Do ``_ingest_one`` for a row x with known S x, if ``_takes_products``."""
        raise NotImplementedError(f"{type(self).__name__} takes products, so it needs _ingest_with_products")

    @property
    def _most_at_once(self) -> int:
        """The number of rows that ``_ingest`` may get at once. Small if it reads the row_stats in between."""
        return sys.maxsize

    def _checked(self, change: object, by: str = "_ingest") -> Change:
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
    def _absorb(self, other: Self) -> None:
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

    def _check_same_kind(self, other: object) -> Self:
        if not isinstance(other, type(self)) or type(other) is not type(self):
            raise MergeKindError(f"cannot merge {type(other).__name__} into {type(self).__name__}")
        return other

    def _check_mergeable(self, other: Self) -> None:
        mine, theirs = self._settings(), other._settings()
        differing = [n for n in mine if mine[n] != theirs[n] and n not in self._differs_between_parts]
        if differing:
            name = differing[0]
            raise MergeError(
                f"cannot merge sketches with different settings: {name} is {mine[name]!r} here "
                f"and {theirs[name]!r} there"
            )

    def _settings(self) -> Scalars:
        """The arguments of the constructor, as JSON values: the attributes of these names, by default."""
        settings = {name: getattr(self, name) for name in setting_names(type(self))}
        return {name: value.name if name == "dtype" else value for name, value in settings.items()}

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


def read_only(rows: AnyArray) -> AnyArray:
    """A view of the array that cannot be written to."""
    view = rows.view()
    view.flags.writeable = False
    return view
