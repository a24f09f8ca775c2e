"""The leading part of a symmetric matrix, on its device, with a bound on all rounding."""

from typing import Any, NamedTuple

import numpy as np

from sketchbandit.array_api import Library
from sketchbandit.arrays import AnyArray, Matrix
from sketchbandit.linalg import oriented, row_norms_sq

_UNIT = 2.0**-53


class Cut(NamedTuple):
    """Rows S with -rounding·I ⪯ C - S'S ⪯ (amount + rounding)·I."""

    rows: Matrix
    amount: float
    rounding: float


def cut(library: Library, gram: Any, rows: AnyArray, size: int, head: int) -> Cut:
    """At most size - 1 rows for C = gram + rows'rows: its spectrum minus the size-th eigenvalue, as in FD.

    The first ``head`` eigenvalues stay as they are. The eigenvectors are computed on the device of the
    matrix, or by numpy if the device has no float64. They are not trusted. Their error is measured as

        |C - V diag V'|_F    and    |V'V - I|_F,

    and is part of the rounding.
    """
    if library.widest != library.xp.float64:
        gram, library = library.to_host(gram).astype(np.float64), Library(np, "numpy", "cpu")
    xp, dim = library.xp, gram.shape[0]
    kept_mass = 0.0
    if len(rows):
        wide = rows.astype(np.float64)
        kept_mass = float(row_norms_sq(wide).sum())
        given = library.put(wide)
        gram = gram + library.product(given.T, given)
    exponent = _exponent(float(xp.max(xp.abs(gram))))
    gram = (gram + gram.T) * (0.5 * 2.0 ** (-2 * exponent))  # scaled, so that its squares do not overflow
    found = xp.linalg.eigh(gram)
    ascending, vectors = found[0], found[1]
    residual = _norm(library, gram - library.product(vectors * ascending[None, :], vectors.T))
    identity = library.put(np.eye(dim))
    skew = _norm(library, library.product(vectors.T, vectors) - identity)

    values = library.to_host(ascending)[::-1]
    amount = max(0.0, float(values[size - 1])) if size <= dim else 0.0
    left = values[: size - 1].copy()
    left[head:] -= amount
    count = int(np.count_nonzero(left > 0.0))  # these are the leading ones: the values descend
    directions = library.to_host(vectors[:, dim - count :])[:, ::-1].T if count else np.empty((0, dim))
    below = max(0.0, -float(values[-1]))
    summed = (dim + 16) * _UNIT * float(np.abs(values).sum())
    rounding = 1.001 * (residual + skew * (amount + below) + below + summed)
    kept = np.ldexp(np.sqrt(left[:count])[:, np.newaxis] * oriented(directions), exponent)
    amount, rounding = (float(np.ldexp(part, 2 * exponent)) for part in (amount, rounding))
    return Cut(np.ascontiguousarray(kept), amount, rounding + (len(rows) + 2) * _UNIT * kept_mass)


def _exponent(largest: float) -> int:
    """The binary exponent of the square root of a number, limited so that squaring can be undone."""
    return int(np.clip(np.frexp(largest)[1] // 2, -500, 500))


def _norm(library: Library, matrix: Any) -> float:
    """|matrix|_F."""
    return float(np.sqrt(float(library.xp.sum(matrix * matrix))))
