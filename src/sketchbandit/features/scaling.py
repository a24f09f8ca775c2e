"""A scaling: fixed numbers through which features are read."""

import sys
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from sketchbandit.arms import Arms, SparseArms, View, dense_arms, rows_of
from sketchbandit.arrays import AnyArray, Arrays, Rows, Scalars, Vector
from sketchbandit.errors import FileError, InputError, InputTypeError
from sketchbandit.kernels.backend import AS_IS, BOUND, COLUMNS, CONSTANT, HEAD, KIND, ROWS
from sketchbandit.sketch.checks import check_count, check_real
from sketchbandit.sketch.row_input import row_source

NO_BOUND = sys.float_info.max

_BEYOND, _RARE = 2.0, 20.0  # times what was seen, and times the bound if that is not known
_ROUNDING = 2.0 * sys.float_info.epsilon  # times its offset: a column deviates so much by rounding alone
_NOTHING = 1e-9  # times the bound: a column that is scaled by its deviation goes further

_NAMES: dict[float, str | None] = {AS_IS: None, ROWS: "rows", COLUMNS: "columns"}


class Scaling:
    """A fixed scaling of features: z = x, z = x / |x|, or z = (x - centre)·factor clipped at ``bound``.

    With an intercept, a constant is appended to z. A scaling never changes, because everything learned
    refers to z. ``policy.scaling`` returns one, and another policy can be made with it.

    Attributes
    ----------
    kind : str or None
        None: features as they are. "rows": arms of length one. "columns": scaled by column.
    dim : int
        The number of features of x.
    centre, factor : array or None
        One number per column for "columns"; else None.
    bound : float
        The largest absolute entry of z.
    constant : float
        The constant that is appended; 0 if there is none.
    reach : array or None
        The largest absolute entry of z in every column, before clipping, among the arms it was fitted to.
        None if it is not known. It changes nothing; ``health()`` compares later arms with it.

    Examples
    --------
    >>> Scaling.rows(2).apply([[3.0, 4.0]])
    array([[0.6, 0.8]])

    """

    is_provisional = False
    """Whether it belongs to a warm-up that is not over, and will be replaced."""

    def __init__(self, dim: int, lens: Vector, reach: Vector | None = None) -> None:
        self.dim = dim
        self.lens = lens
        """All numbers, in the form that the loops read (``kernels.backend``)."""
        self.reach = reach
        for held in (lens, reach):
            if held is not None:
                held.flags.writeable = False
        self.limit = self._limit()
        """How far z is expected to go in every column, before clipping; None if nothing is clipped.

        It is twice what was seen. If that is not known, it is twenty times the bound: that far out is a rare
        feature.
        """
        self.centres = self.centre is not None and bool(self.centre.any())
        """Whether zeros are moved, so that sparse arms become dense."""

    @classmethod
    def rows(cls, dim: int, *, constant: float = 0.0) -> Self:
        """Scale every arm to length one."""
        return cls._short(dim, ROWS, constant)

    @classmethod
    def none(cls, dim: int, *, constant: float = 0.0) -> Self:
        """Leave every arm as it is."""
        return cls._short(dim, AS_IS, constant)

    @classmethod
    def _short(cls, dim: int, kind: float, constant: float) -> Self:
        lens = np.array([kind, NO_BOUND, check_real("constant", constant)])
        return cls(check_count("dim", dim, at_least=1), lens)

    @classmethod
    def columns(
        cls,
        centre: ArrayLike,
        factor: ArrayLike,
        *,
        bound: float = NO_BOUND,
        constant: float = 0.0,
        reach: ArrayLike | None = None,
    ) -> Self:
        """Scale by column: (x - centre)·factor, clipped at ``bound``.

        Parameters
        ----------
        centre, factor : array of shape (dim,)
            What is subtracted from each column, and what it is then multiplied by.
        bound : float
            The largest absolute entry of the result.
        constant : float
            A constant to append; 0 for none.
        reach : array of shape (dim,), optional
            The largest absolute entry of each column of the result, without clipping, that is to be expected.

        Examples
        --------
        >>> Scaling.columns([1.0, 0.0], [0.5, 1.0], constant=1.0).apply([[3.0, 2.0]])
        array([[1., 2., 1.]])

        """
        parts = _read_vector("centre", centre), _read_vector("factor", factor)
        if len(parts[0]) != len(parts[1]) or not len(parts[0]):
            raise InputError(
                f"centre and factor need a number per column, got {len(parts[0])} and {len(parts[1])} numbers"
            )
        head = [COLUMNS, check_real("bound", bound, above=0.0), check_real("constant", constant)]
        expected = None if reach is None else _read_vector("reach", reach)
        if expected is not None and len(expected) != len(parts[0]):
            raise InputError(f"reach needs a number per column, {len(parts[0])}, got {len(expected)} numbers")
        return cls(len(parts[0]), np.concatenate([head, *parts]), expected)

    # -- what it tells ------------------------------------------------------------------------------

    @property
    def kind(self) -> str | None:
        """None, "rows" or "columns"."""
        return _NAMES[float(self.lens[KIND])]

    @property
    def centre(self) -> Vector | None:
        """What is subtracted from every column."""
        return self.lens[HEAD : HEAD + self.dim] if self.kind == "columns" else None

    @property
    def factor(self) -> Vector | None:
        """What every column is multiplied by."""
        return self.lens[HEAD + self.dim :] if self.kind == "columns" else None

    @property
    def bound(self) -> float:
        """The largest absolute entry of z."""
        return float(self.lens[BOUND])

    @property
    def constant(self) -> float:
        """The constant that is appended; 0 if there is none."""
        return float(self.lens[CONSTANT])

    @property
    def is_common(self) -> bool:
        """Whether several columns share one factor, so that they keep their proportions."""
        factor = self.factor
        return factor is not None and len(factor) > 1 and bool((factor == factor[0]).all())

    def _limit(self) -> Vector | None:
        if self.kind != "columns" or self.bound == NO_BOUND:
            return None
        if self.reach is None:
            return np.full(self.dim, _RARE * self.bound)
        return _BEYOND * np.maximum(self.reach, self.bound)

    @property
    def dropped(self) -> tuple[int, ...]:
        """Columns that varied, but so little beside their offset that float64 has no digits left for it.

        They count as constant.
        """
        if self.reach is None or self.centre is None or self.factor is None:
            return ()
        beside = self.reach - _ROUNDING * abs(self.centre) * self.factor  # what rounding does not explain
        return tuple(np.flatnonzero((beside > 0.0) & (self.reach < _NOTHING * self.bound)).tolist())

    @property
    def inner_dim(self) -> int:
        """The number of features of z."""
        return self.dim + (self.constant != 0.0)

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays held."""
        return sum(held.nbytes for held in (self.lens, self.reach, self.limit) if held is not None)

    def as_provisional(self) -> "Scaling":
        """A copy, marked as provisional."""
        marked = type(self)(self.dim, self.lens, self.reach)
        marked.is_provisional = True
        return marked

    def check_final(self) -> None:
        """Raise if it is provisional: then it must not be given to another policy."""
        if self.is_provisional:
            raise InputError(
                "this scaling belongs to a warm-up that is not over; take it when the policy's is_warming_up "
                "is False"
            )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Scaling):
            return NotImplemented
        return self.dim == other.dim and np.array_equal(self.lens, other.lens)

    def __hash__(self) -> int:
        return hash((self.dim, self.lens.tobytes()))

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.dim, self.lens, self.reach)  # so that copies cannot be written to either

    def __repr__(self) -> str:
        provisional = ", provisional" if self.is_provisional else ""
        return f"<Scaling({self.kind!r}, dim={self.dim}, constant={self.constant:g}{provisional})>"

    # -- reading ------------------------------------------------------------------------------------

    def apply(self, arms: Rows) -> Rows:
        """The scaled arms, as a new array or CSR matrix. An arm that is not finite becomes NaN."""
        source = row_source(arms, self.dim, "arms")
        if sparse.issparse(source) and not self.centres:
            is_short = source.dtype == np.float32
            return self._of_sparse(sparse.csr_array(source) if is_short else source.astype(np.float64))
        rows = source.toarray() if sparse.issparse(source) else source
        return rows_of(View(np.ascontiguousarray(rows, dtype=np.float64), self.lens), slice(None))

    def read(self, arms: Arms) -> Arms:
        """Scale arms whose shape and type were checked. Dense arms are not copied."""
        if arms.matrix is None:
            return arms.through(self.lens)
        if self.centres:
            return dense_arms(View(arms.matrix.toarray(), self.lens))
        return SparseArms(self._of_sparse(arms.matrix), arms.matrix)

    def _of_sparse(self, matrix: Rows) -> Rows:
        data = matrix.data.astype(np.float64, copy=False)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            if self.kind == "rows":
                lengths = _one_over_lengths(SparseArms(matrix).norms_sq())
                data = data * np.repeat(lengths, np.diff(matrix.indptr))
            elif self.factor is not None:
                data = np.clip(data * self.factor[matrix.indices], -self.bound, self.bound) + data * 0.0
        return self._with_constant(matrix, data.astype(matrix.dtype, copy=False))

    def _with_constant(self, matrix: Rows, data: AnyArray) -> Rows:
        """The matrix with other entries, and the constant as a last column."""
        count, width = matrix.shape
        if not self.constant:
            return sparse.csr_array((data, matrix.indices, matrix.indptr), shape=(count, width))
        ends = matrix.indptr[1:]
        return sparse.csr_array(
            (
                np.insert(data, ends, self.constant),
                np.insert(matrix.indices, ends, width),
                matrix.indptr + np.arange(count + 1, dtype=matrix.indptr.dtype),
            ),
            shape=(count, width + 1),
        )

    # -- files --------------------------------------------------------------------------------------

    def dump(self) -> tuple[Scalars, Arrays]:
        """JSON values and arrays that ``undump`` turns into the same scaling."""
        return {"dim": self.dim}, {"lens": self.lens} | ({} if self.reach is None else {"reach": self.reach})

    @classmethod
    def undump(cls, scalars: Scalars, arrays: Arrays) -> Self:
        """Return the scaling that ``dump`` described."""
        dim, lens = check_count("dim", scalars["dim"], at_least=1), arrays["lens"]
        if lens.ndim != 1 or len(lens) < HEAD or float(lens[KIND]) not in _NAMES:
            raise FileError("the file is damaged: the scaling makes no sense")
        wanted = HEAD + 2 * dim if lens[KIND] == COLUMNS else HEAD
        is_sound = lens.dtype == np.float64 and len(lens) == wanted and np.isfinite(lens).all()
        if not is_sound or not lens[BOUND] > 0.0:
            raise FileError(f"the file is damaged: the scaling of {dim} columns makes no sense")
        reach = arrays.get("reach")  # not in files of 0.14
        if reach is not None and (reach.shape != (dim,) or not np.isfinite(reach).all()):
            raise FileError(f"the file is damaged: the reach of {dim} columns makes no sense")
        return cls(dim, lens, reach)


def _read_vector(name: str, given: ArrayLike) -> Vector:
    try:
        vector = np.atleast_1d(np.asarray(given, dtype=np.float64))
    except (TypeError, ValueError) as error:
        raise InputTypeError(f"{name} must be a vector of numbers, got {given!r:.60}") from error
    if vector.ndim != 1 or not np.isfinite(vector).all():
        raise InputError(f"{name} must be a vector of finite numbers, got {given!r:.60}")
    return vector


def _one_over_lengths(squares: Vector) -> Vector:
    found = np.where(squares > 0.0, 1.0 / np.sqrt(squares), 1.0)
    return np.where(squares < np.inf, found, np.nan)
