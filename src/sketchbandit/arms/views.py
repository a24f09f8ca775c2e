"""Arms as arrays, after scaling."""

import numpy as np

from sketchbandit.arrays import AnyArray, Vector
from sketchbandit.kernels import kernels, loops
from sketchbandit.kernels.view import BOUND, COLUMNS, CONSTANT, HEAD, KIND, ROWS, View
from sketchbandit.linalg import row_norms_sq

__all__ = ["View", "row_of", "rows_of"]


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
    """``kernels.lens.fill_rows`` in numpy."""
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
