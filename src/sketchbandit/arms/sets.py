"""A set of arms, dense or sparse. Shape and type are checked."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, Union

import numpy as np

from sketchbandit.array_api import Array, Library
from sketchbandit.arrays import AnyArray, Dtype, Matrix, Rows, Vector
from sketchbandit.kernels import kernels, loops
from sketchbandit.kernels.backend import BOUND, COLUMNS, CONSTANT, HEAD, KIND, ROWS, View
from sketchbandit.linalg import AnyVector, SparseVector, inner_rows, product, row_norms_sq

if TYPE_CHECKING:
    from sketchbandit.arms.offered import OfferedArms

_SAME = 2.0**-42
"""Entries that differ by less, relative to the larger, differ by rounding: of a length in its sum, mostly."""
_GOLDEN = 0.6180339887498949


OfView = Callable[[View, Vector], Vector | None]
"""x'A^-1 x of dense arms with these |x|²; None if nothing is compiled."""
OfRows = Callable[[Library, Array], Array]
"""x'A^-1 x of rows in the widest dtype of a library, on their device."""


class DenseArms:
    """K arms as the rows of a C-ordered array of float64 or float32. Sums are float64."""

    __slots__ = ("given",)
    matrix: ClassVar[None] = None
    """They are not sparse."""

    def __init__(self, given: AnyArray) -> None:
        self.given = given
        """The dtype from which the loops start."""

    def __len__(self) -> int:
        return len(self.given)

    @property
    def view(self) -> View:
        """The arms in the form that the loops read."""
        return View(self.given)

    @property
    def array(self) -> AnyArray:
        """The arms as an array (K, dim)."""
        return self.given

    @property
    def raw(self) -> AnyArray:
        """The arms before scaling."""
        return self.given

    @property
    def is_float64(self) -> bool:
        """Whether the loops read exactly the numbers that an update reads."""
        return bool(self.given.dtype == np.float64)

    def norms_sq(self) -> Vector:
        """|x|² of every arm."""
        return row_norms_sq(self.array)

    def norm_sq(self, index: int) -> float:
        """|x|² of one arm."""
        return norm_sq_of(self.vector(index))

    @property
    def on_host(self) -> "DenseArms":
        """The same arms in the memory of the host."""
        return self

    def through(self, lens: Vector) -> "DenseArms":
        """The same arms, with a scaling."""
        return ScaledArms(View(self.given, lens))

    def quadratics(self, of_view: OfView, of_rows: OfRows, norms_sq: Vector) -> Vector | None:
        """x'A^-1 x of every arm; None if there is no fast way."""
        del of_rows
        return of_view(self.view, norms_sq)

    def times(self, vector: Vector) -> Vector:
        """x'v for every arm x. The value of an arm does not depend on the other arms."""
        return self.scan(vector)[0]

    def scan(self, vector: Vector) -> tuple[Vector, Vector]:
        """x'v and |x|² for every arm x, in one pass."""
        compiled = loops(self.given.size)
        if compiled is None:
            return inner_rows(self.array, vector), row_norms_sq(self.array)
        means, norms_sq = np.empty(len(self)), np.empty(len(self))
        compiled.scan(*self.view, vector, means, norms_sq)
        return means, norms_sq

    def vector(self, index: int) -> Vector:
        """One arm, in float64."""
        x: Vector = self.given[index].astype(np.float64, copy=False)
        return x

    def row(self, index: int, dtype: Dtype) -> AnyArray:
        """One arm (1, dim) in the dtype in which a sketch stores it."""
        return self.given[index : index + 1].astype(dtype, copy=False)

    def some(self, which: AnyArray | slice) -> "DenseArms":
        """The set with exactly these arms."""
        return dense_arms(self.view._replace(array=self.given[which]))


class ScaledArms(DenseArms):
    """K arms with a scaling. Nothing is copied until an array is needed."""

    __slots__ = ("_array", "_lens")

    def __init__(self, view: View) -> None:
        self.given, self._lens = view
        self._array: AnyArray | None = None

    @property
    def view(self) -> View:
        """The arms in the form that the loops read."""
        return View(self.given, self._lens)

    @property
    def array(self) -> AnyArray:
        """The arms as an array (K, dim)."""
        if self._array is None:
            self._array = rows_of(self.view, slice(None))
        return self._array

    @property
    def is_float64(self) -> bool:
        """False: a sum in one pass rounds differently from the sum over the scaled row."""
        return False

    def vector(self, index: int) -> Vector:
        """One arm, in float64."""
        return row_of(self.given[index], self._lens)

    def row(self, index: int, dtype: Dtype) -> AnyArray:
        """One arm (1, dim) in the dtype in which a sketch stores it."""
        return self.vector(index)[np.newaxis].astype(dtype, copy=False)


class Images(DenseArms):
    """Projected arms, together with the original ones."""

    __slots__ = ("_raw",)

    def __init__(self, images: AnyArray, raw: Rows) -> None:
        super().__init__(images)
        self._raw = raw

    @property
    def raw(self) -> Rows:
        """The arms before the projection."""
        return self._raw


def dense_arms(view: View) -> DenseArms:
    """The set of arms with this view."""
    return ScaledArms(view) if len(view.lens) else DenseArms(view.array)


class CsrMatrix(Protocol):
    """A scipy.sparse matrix in CSR format: what is used of it. Scipy has no types."""

    shape: tuple[int, int]
    nnz: int
    data: AnyArray
    indices: AnyArray
    indptr: AnyArray

    @property
    def dtype(self) -> Dtype:
        """The dtype of the entries."""

    @property
    def T(self) -> "CsrMatrix":  # noqa: N802 -- scipy's name
        """The transpose."""

    def __getitem__(self, which: Any, /) -> "CsrMatrix": ...
    def __matmul__(self, other: "CsrMatrix", /) -> "CsrMatrix": ...
    def astype(self, dtype: type[np.float64], *, copy: bool) -> "CsrMatrix":
        """The same matrix in another dtype."""

    def toarray(self) -> AnyArray:
        """A dense array."""


@dataclass(frozen=True)
class SparseArms:
    """K arms as the rows of a canonical CSR matrix. ``came_as`` is the matrix before scaling."""

    matrix: CsrMatrix
    came_as: CsrMatrix | None = None
    view: ClassVar[None] = None
    """The loops for dense arms cannot read them."""

    def __len__(self) -> int:
        return int(self.matrix.shape[0])

    @property
    def raw(self) -> CsrMatrix:
        """The arms before scaling."""
        return self.matrix if self.came_as is None else self.came_as

    @property
    def on_host(self) -> "SparseArms":
        """The same arms in the memory of the host."""
        return self

    def quadratics(self, of_view: OfView, of_rows: OfRows, norms_sq: Vector) -> None:
        """None: there is no fast way to the x'A^-1 x of every arm."""

    @property
    def nonzeros(self) -> int:
        """The number of entries that a product with the arms reads."""
        return int(self.matrix.nnz)

    def norms_sq(self) -> Vector:
        """|x|² of every arm."""
        return self.sums(np.square(self.matrix.data, dtype=np.float64))

    def norm_sq(self, index: int) -> float:
        """|x|² of one arm."""
        return float(self.norms_sq()[index])

    def times(self, vector: Vector) -> Vector:
        """x'v for every arm x."""
        return self.sums(self.matrix.data * vector[self.matrix.indices])

    def scan(self, vector: Vector) -> tuple[Vector, Vector]:
        """x'v and |x|² for every arm x."""
        return self.times(vector), self.norms_sq()

    def vector(self, index: int) -> SparseVector:
        """One arm."""
        start, stop = self.matrix.indptr[index], self.matrix.indptr[index + 1]
        values = self.matrix.data[start:stop].astype(np.float64, copy=False)
        return SparseVector(self.matrix.indices[start:stop], values)

    def some(self, which: AnyArray | slice) -> "SparseArms":
        """The set with exactly these arms."""
        return SparseArms(self.matrix[which])

    def row(self, index: int, dtype: Dtype) -> AnyArray:
        """One arm (1, dim) in the dtype in which a sketch stores it."""
        row = np.zeros((1, self.matrix.shape[1]), dtype)
        indices, values = self.vector(index)
        row[0, indices] = values
        return row

    def sums(self, values: Vector) -> Vector:
        """The sum of ``values`` over the entries of each row; 0 for an empty row."""
        sums: Vector = sum_runs(values[np.newaxis], self.matrix.indptr)[0]
        return sums


Arms = Union[DenseArms, SparseArms, "OfferedArms"]


class Scan(NamedTuple):
    """The first pass over a set of arms: means and squared norms, and S X' if it came for free."""

    arms: Arms
    means: Vector
    norms_sq: Vector
    products: Matrix | None = None

    def norm_sq(self, index: int) -> float:
        """|x|² of one arm as an update computes it, from float64 numbers."""
        if isinstance(self.arms, DenseArms) and not self.arms.is_float64:
            return self.arms.norm_sq(index)
        return float(self.norms_sq[index])


def sum_runs(values: AnyArray, bounds: AnyArray) -> Vector:
    """Sums of ``values[:, bounds[i]:bounds[i+1]]`` over the last axis, in float64; an empty run is 0."""
    sums = np.zeros((len(values), len(bounds) - 1))
    filled = np.flatnonzero(np.diff(bounds))
    if len(filled):
        sums[:, filled] = np.add.reduceat(values, bounds[filled], axis=1, dtype=np.float64)
    return sums


def norm_sq_of(x: AnyArray) -> float:
    """|x|² of a dense vector; inf or NaN are returned without a warning."""
    compiled = kernels()
    if compiled is not None:
        wide = x.astype(np.float64, copy=False)
        return float(compiled.norm_sq(wide, wide))
    with np.errstate(over="ignore"):
        return float(row_norms_sq(x[np.newaxis])[0])


def norms_sq_of(rows: AnyArray) -> Vector:
    """|x|² of every row, as ``norm_sq_of`` gives it, so that a block of arms is learned like single ones."""
    compiled = loops(rows.size)
    if compiled is None or not len(rows):
        return row_norms_sq(rows)
    wide = rows.astype(np.float64, copy=False)
    products, norms_sq = np.empty(len(rows)), np.empty(len(rows))
    compiled.scan(*View(wide), wide[0], products, norms_sq)
    return norms_sq


def project_arms(arms: AnyArray, projection: AnyArray) -> Matrix | None:
    """``arms @ projection``, computed per arm, so that equal arms have equal images to the bit.

    None if an image is not finite.
    """
    compiled = loops(arms.size * projection.shape[1])
    images = np.empty((len(arms), projection.shape[1]))
    if compiled is not None:
        return images if compiled.project_arms(arms, projection, images) else None
    wide = projection.astype(np.float64, copy=False)
    with np.errstate(over="ignore", invalid="ignore"):
        for arm, image in zip(arms, images, strict=True):
            image[:] = product(arm.astype(np.float64, copy=False), wide)
    return images if np.isfinite(images).all() else None


def own_copy(row: AnyVector) -> AnyVector:
    """A copy that no other code can change."""
    if isinstance(row, SparseVector):
        return SparseVector(row.indices.copy(), row.values.copy())
    return row.copy()


def first_copies(arms: Arms) -> AnyArray:
    """For every arm, the index of the first arm that equals it in every feature up to rounding, (K,).

    Multiples of one another are copies once they have length one. Each entry counts for itself: what is
    large and common to all arms hides no difference.
    """
    read = arms.on_host
    first = np.arange(len(read))
    keys = _keys(read)
    order = np.argsort(keys, kind="stable")
    starts = np.flatnonzero(np.diff(keys[order]) > 2.0 * _SAME * keys[order[1:]]) + 1
    for run in np.split(order, starts):
        if len(run) > 1:
            left = np.sort(run)
            rows = _rows(read, left)
            # Sums of a projection cancel, so its entries are compared with the largest of them.
            least = float(np.abs(rows).max(initial=0.0)) if isinstance(read, Images) else 0.0
            while len(left) > 1:
                alike = _are_alike(rows, rows[0], least)
                alike[0] = True
                first[left[alike]] = left[0]
                left, rows = left[~alike], rows[~alike]
    return first


def _keys(arms: DenseArms | SparseArms) -> Vector:
    """Sums of |x_j|·w_j with 1 <= w_j < 2. Nothing cancels, so those of copies are equal up to rounding."""
    if arms.matrix is not None:
        return arms.sums(np.abs(arms.matrix.data) * _weights(arms.matrix.indices))
    array = np.abs(arms.array.astype(np.float64, copy=False))
    keys: Vector = array @ _weights(np.arange(array.shape[1]))
    return keys


def _weights(columns: AnyArray) -> Vector:
    weights: Vector = 1.0 + columns * _GOLDEN % 1.0
    return weights


def _rows(arms: DenseArms | SparseArms, which: AnyArray) -> Matrix:
    """Some arms, in the columns where any of them has an entry."""
    if arms.matrix is not None:
        some = arms.matrix[which]
        rows: Matrix = some[:, np.unique(some.indices)].toarray()
        return rows.astype(np.float64, copy=False)
    return arms.array[which].astype(np.float64, copy=False)


def _are_alike(rows: Matrix, row: Vector, least: float) -> AnyArray:
    sizes = np.maximum(np.maximum(np.abs(rows), np.abs(row)), least)
    return np.asarray((np.abs(rows - row) <= _SAME * sizes).all(axis=1))


def rows_of(view: View, which: AnyArray | slice) -> AnyArray:
    """Some arms, scaled, as the loops read them. A copy if there is a scaling or ``which`` is an array."""
    given, lens = view.array[which], view.lens
    if not len(lens):
        return given
    rows = np.empty((len(given), given.shape[1] + (lens[CONSTANT] != 0.0)))
    compiled = loops(given.size)
    if compiled is not None:
        compiled.fill_rows(given, lens, rows)
    else:
        _fill(given.astype(np.float64, copy=False), lens, rows)
    return rows


def row_of(x: AnyArray, lens: Vector) -> Vector:
    """One arm, scaled, as in ``rows_of``."""
    compiled = kernels()
    if compiled is None:
        one: Vector = rows_of(View(x[np.newaxis], lens), slice(None))[0]
        return one
    room = np.empty(len(x) + 1 if lens[CONSTANT] else len(x))
    compiled.fill_row(x, lens, room)
    return room


def _fill(given: AnyArray, lens: Vector, rows: AnyArray) -> None:
    """``kernels.rounds.fill_rows`` in numpy."""
    dim, kind, bound = given.shape[1], lens[KIND], lens[BOUND]
    scaled = rows[:, :dim]
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        if kind == COLUMNS:
            np.clip((given - lens[HEAD : HEAD + dim]) * lens[HEAD + dim :], -bound, bound, out=scaled)
            scaled += given * 0.0  # NaN where an entry is not finite
        elif kind == ROWS:
            squares = row_norms_sq(given)
            scale = np.where(squares > 0.0, 1.0 / np.sqrt(squares), 1.0)
            scaled[:] = given * np.where(squares < np.inf, scale, np.nan)[:, np.newaxis]
        else:
            scaled[:] = given
    rows[:, dim:] = lens[CONSTANT]
