"""A set of arms, checked in shape and type: dense or sparse."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Union

import numpy as np

from sketchbandit.arms.views import View, row_of, rows_of
from sketchbandit.arrays import AnyArray, Matrix, Vector
from sketchbandit.kernels import kernels, loops
from sketchbandit.linalg import AnyVector, SparseVector, row_norms_sq

if TYPE_CHECKING:
    from sketchbandit.arms.offered import OfferedArms


class DenseArms:
    """K arms as the rows of a C-ordered array of float64 or float32; sums are float64."""

    __slots__ = ("given",)

    def __init__(self, given: AnyArray) -> None:
        self.given = given
        """What the loops start from."""

    def __len__(self) -> int:
        return len(self.given)

    @property
    def view(self) -> View:
        """As the loops read them."""
        return View(self.given)

    @property
    def array(self) -> AnyArray:
        """As an array (K, dim)."""
        return self.given

    @property
    def raw(self) -> AnyArray:
        """As they came."""
        return self.given

    @property
    def is_float64(self) -> bool:
        """Whether the loops read just the numbers that an update will."""
        return bool(self.given.dtype == np.float64)

    def norms_sq(self) -> Vector:
        """|x|² of every arm."""
        return row_norms_sq(self.array)

    def norm_sq(self, index: int) -> float:
        """|x|² of one arm."""
        return norm_sq_of(self.vector(index))

    def times(self, vector: Vector) -> Vector:
        """x'v for every arm x. An arm's value does not depend on which others stand beside it."""
        return self.scan(vector)[0]

    def scan(self, vector: Vector) -> tuple[Vector, Vector]:
        """x'v and |x|² for every arm x, in one pass."""
        compiled = loops(self.given.size)
        if compiled is None:
            products: Vector = np.vecdot(self.array, vector)
            return products, row_norms_sq(self.array)
        means, norms_sq = np.empty(len(self)), np.empty(len(self))
        compiled.scan(*self.view, vector, means, norms_sq)
        return means, norms_sq

    def vector(self, index: int) -> Vector:
        """One arm, in float64."""
        x: Vector = self.given[index].astype(np.float64, copy=False)
        return x

    def row(self, index: int, dtype: np.dtype[Any]) -> AnyArray:
        """One arm as a sketch of that dtype stores it, (1, dim)."""
        return self.given[index : index + 1].astype(dtype, copy=False)

    def some(self, which: AnyArray | slice) -> "DenseArms":
        """The set that has just these arms."""
        return dense_arms(self.view._replace(array=self.given[which]))


class ScaledArms(DenseArms):
    """K arms seen through a scaling: nothing is copied until an array is asked for."""

    __slots__ = ("_array", "_lens")

    def __init__(self, view: View) -> None:
        self.given, self._lens = view
        self._array: AnyArray | None = None

    @property
    def view(self) -> View:
        """As the loops read them."""
        return View(self.given, self._lens)

    @property
    def array(self) -> AnyArray:
        """As an array (K, dim)."""
        if self._array is None:
            self._array = rows_of(self.view, slice(None))
        return self._array

    @property
    def is_float64(self) -> bool:
        """What is summed in one pass differs in rounding from the sum over the row itself."""
        return False

    def vector(self, index: int) -> Vector:
        """One arm, in float64."""
        return row_of(self.given[index], self._lens)

    def row(self, index: int, dtype: np.dtype[Any]) -> AnyArray:
        """One arm as a sketch of that dtype stores it, (1, dim)."""
        return self.vector(index)[np.newaxis].astype(dtype, copy=False)


class Images(DenseArms):
    """What a projection made of arms, which are kept."""

    __slots__ = ("_raw",)

    def __init__(self, images: AnyArray, raw: Any) -> None:
        super().__init__(images)
        self._raw = raw

    @property
    def raw(self) -> Any:
        """As they came."""
        return self._raw


def dense_arms(view: View) -> DenseArms:
    """The arms that loops read so."""
    return ScaledArms(view) if len(view.lens) else DenseArms(view.array)


@dataclass(frozen=True)
class SparseArms:
    """K arms as the rows of a canonical CSR matrix; ``came_as``: before they were scaled."""

    matrix: Any
    came_as: Any = None

    def __len__(self) -> int:
        return int(self.matrix.shape[0])

    @property
    def raw(self) -> Any:
        """As they came."""
        return self.matrix if self.came_as is None else self.came_as

    @property
    def nonzeros(self) -> int:
        """Entries that a product with the arms reads."""
        return int(self.matrix.nnz)

    def norms_sq(self) -> Vector:
        """|x|² of every arm."""
        return self._sums(np.square(self.matrix.data, dtype=np.float64))

    def norm_sq(self, index: int) -> float:
        """|x|² of one arm."""
        return float(self.norms_sq()[index])

    def times(self, vector: Vector) -> Vector:
        """x'v for every arm x."""
        return self._sums(self.matrix.data * vector[self.matrix.indices])

    def scan(self, vector: Vector) -> tuple[Vector, Vector]:
        """x'v and |x|² for every arm x."""
        return self.times(vector), self.norms_sq()

    def vector(self, index: int) -> SparseVector:
        """One arm."""
        start, stop = self.matrix.indptr[index], self.matrix.indptr[index + 1]
        values = self.matrix.data[start:stop].astype(np.float64, copy=False)
        return SparseVector(self.matrix.indices[start:stop], values)

    def some(self, which: AnyArray | slice) -> "SparseArms":
        """The set that has just these arms."""
        return SparseArms(self.matrix[which])

    def row(self, index: int, dtype: np.dtype[Any]) -> AnyArray:
        """One arm as a sketch of that dtype stores it, (1, dim)."""
        row = np.zeros((1, self.matrix.shape[1]), dtype)
        indices, values = self.vector(index)
        row[0, indices] = values
        return row

    def _sums(self, values: Vector) -> Vector:
        """The sum of ``values`` over each row's entries; 0 for an empty row."""
        sums: Vector = sum_runs(values[np.newaxis], self.matrix.indptr)[0]
        return sums


Arms = Union[DenseArms, SparseArms, "OfferedArms"]


class Scan(NamedTuple):
    """The first look at a set of arms: their means and squared norms, and S X' where it came for free."""

    arms: Arms
    means: Vector
    norms_sq: Vector
    products: Matrix | None = None

    def norm_sq(self, index: int) -> float:
        """|x|² of one arm as an update will compute it: of float64 numbers."""
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
    """|x|² of a dense vector; inf or NaN without a warning."""
    compiled = kernels()
    if compiled is not None:
        wide = x.astype(np.float64, copy=False)
        return float(compiled.norm_sq(wide, wide))
    with np.errstate(over="ignore"):
        return float(row_norms_sq(x[np.newaxis])[0])


def project_arms(arms: AnyArray, projection: AnyArray) -> Matrix | None:
    """``arms @ projection``, each arm for itself, so that equal arms have equal images to the bit.

    None if an image is not finite.
    """
    compiled = loops(arms.size * projection.shape[1])
    images = np.empty((len(arms), projection.shape[1]))
    if compiled is not None:
        return images if compiled.project_arms(arms, projection, images) else None
    wide = projection.astype(np.float64, copy=False)
    with np.errstate(over="ignore", invalid="ignore"):
        for arm, image in zip(arms, images, strict=True):
            image[:] = arm.astype(np.float64, copy=False) @ wide
    return images if np.isfinite(images).all() else None


def own_copy(row: AnyVector) -> AnyVector:
    """A copy that nobody else can change."""
    if isinstance(row, SparseVector):
        return SparseVector(row.indices.copy(), row.values.copy())
    return row.copy()
