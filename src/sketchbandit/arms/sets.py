"""A set of arms, dense or sparse. Shape and type are checked."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Union

import numpy as np

from sketchbandit.arms.views import View, row_of, rows_of
from sketchbandit.arrays import AnyArray, Matrix, Vector
from sketchbandit.kernels import kernels, loops
from sketchbandit.linalg import AnyVector, SparseVector, inner_rows, product, row_norms_sq

if TYPE_CHECKING:
    from sketchbandit.arms.offered import OfferedArms


class DenseArms:
    """K arms as the rows of a C-ordered array of float64 or float32. Sums are float64."""

    __slots__ = ("given",)

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

    def row(self, index: int, dtype: np.dtype[Any]) -> AnyArray:
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

    def row(self, index: int, dtype: np.dtype[Any]) -> AnyArray:
        """One arm (1, dim) in the dtype in which a sketch stores it."""
        return self.vector(index)[np.newaxis].astype(dtype, copy=False)


class Images(DenseArms):
    """Projected arms, together with the original ones."""

    __slots__ = ("_raw",)

    def __init__(self, images: AnyArray, raw: Any) -> None:
        super().__init__(images)
        self._raw = raw

    @property
    def raw(self) -> Any:
        """The arms before the projection."""
        return self._raw


def dense_arms(view: View) -> DenseArms:
    """The set of arms with this view."""
    return ScaledArms(view) if len(view.lens) else DenseArms(view.array)


@dataclass(frozen=True)
class SparseArms:
    """K arms as the rows of a canonical CSR matrix. ``came_as`` is the matrix before scaling."""

    matrix: Any
    came_as: Any = None
    view: ClassVar[None] = None
    """The loops for dense arms cannot read them."""

    def __len__(self) -> int:
        return int(self.matrix.shape[0])

    @property
    def raw(self) -> Any:
        """The arms before scaling."""
        return self.matrix if self.came_as is None else self.came_as

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

    def row(self, index: int, dtype: np.dtype[Any]) -> AnyArray:
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
