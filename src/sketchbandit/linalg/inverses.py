"""Inverses of symmetric positive definite and of triangular matrices, without the interpreter's lock.

scipy's own wrappers hold the lock. These call the same routines of the same library, in place, so that other
threads go on while a large matrix is factored.
"""

import ctypes
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.linalg import cython_lapack

from sketchbandit.arrays import Matrix

_CERTAIN = 1e-13  # an eigenvalue of a matrix of unit scale, by row: what lies below may be rounding
_name_of = ctypes.pythonapi.PyCapsule_GetName
_name_of.restype, _name_of.argtypes = ctypes.c_char_p, [ctypes.py_object]
_pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
_pointer_of.restype, _pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


def _routine(name: str, arguments: int) -> Callable[..., None]:
    capsule = cython_lapack.__pyx_capi__[name]
    address = _pointer_of(capsule, _name_of(capsule))
    return ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * arguments)(address)  # CFUNCTYPE lets go of the lock


_potrf, _potri, _trtri = _routine("dpotrf", 5), _routine("dpotri", 5), _routine("dtrtri", 6)
_UPPER, _NOT_UNIT = ctypes.c_char(b"U"), ctypes.c_char(b"N")


def cholesky_in_place(matrix: Matrix) -> int:
    """Upper factor R with R'R = matrix (Fortran order), over its upper triangle; the pivot that fails, or 0.

    Examples
    --------
    >>> a = np.asfortranarray([[4.0, 2.0], [2.0, 2.0]])
    >>> cholesky_in_place(a), a[0].tolist(), float(a[1, 1])
    (0, [2.0, 1.0], 1.0)

    """
    return _call(_potrf, matrix, _UPPER)


def invert_by_factor(factor: Matrix) -> int:
    """The upper triangle of the inverse over that of the factor by ``cholesky_in_place``."""
    return _call(_potri, factor, _UPPER)


def invert_upper_in_place(matrix: Matrix) -> int:
    """The inverse of an upper triangular matrix, Fortran order; the pivot that is zero, or 0."""
    return _call(_trtri, matrix, _UPPER, _NOT_UNIT)


def _call(routine: Callable[..., None], matrix: Matrix, *options: ctypes.c_char) -> int:
    order, info = ctypes.c_int(len(matrix)), ctypes.c_int(0)
    if not matrix.flags.f_contiguous or matrix.dtype != np.float64 or not matrix.flags.writeable:
        raise TypeError("a writable float64 matrix in Fortran order is needed")
    by_reference = [ctypes.addressof(option) for option in options]
    size = ctypes.c_int(max(len(matrix), 1))
    routine(
        *by_reference,
        ctypes.addressof(order),
        matrix.ctypes.data,
        ctypes.addressof(size),
        ctypes.addressof(info),
    )
    return info.value


class InverseAndDeterminant(NamedTuple):
    """A^-1 and log det A."""

    inverse: Matrix
    log_det: float


def invert_positive(matrix: Matrix) -> InverseAndDeterminant:
    """Invert a symmetric positive definite matrix in its own memory, by its Cholesky factor.

    Examples
    --------
    >>> invert_positive(np.array([[4.0, 0.0], [0.0, 0.25]]))
    InverseAndDeterminant(inverse=array([[0.25, 0.  ],
           [0.  , 4.  ]]), log_det=0.0)

    """
    # A C-ordered symmetric matrix read in Fortran order is itself, so LAPACK can work in place.
    factor = matrix.T
    if failed := cholesky_in_place(factor):
        raise np.linalg.LinAlgError(f"the matrix is not positive definite: pivot {failed} is not positive")
    log_det = 2.0 * float(np.log(factor.diagonal()).sum())
    invert_by_factor(factor)
    _mirror_lower(matrix)
    return InverseAndDeterminant(matrix, log_det)


def invert_unscaled(matrix: Matrix, shift: float) -> InverseAndDeterminant | None:
    """The inverse of S'S + shift I where columns have very different lengths; None if that has no digits.

    All columns are brought to one length first, by powers of two, which is exact: a short column beside a
    long one then keeps its digits, and the shift with it.

    Examples
    --------
    >>> found = invert_unscaled(np.diag([1e30, 3.0]), 1.0)
    >>> found.inverse.diagonal()
    array([1.0e-30, 2.5e-01])

    """
    shifted = matrix.copy()
    shifted[np.diag_indices_from(shifted)] += shift
    scale = np.ldexp(1.0, -(np.frexp(shifted.diagonal())[1] // 2))
    shifted *= scale
    shifted *= scale[:, np.newaxis]
    if np.linalg.eigvalsh(shifted)[0] <= _CERTAIN * len(shifted):
        return None
    inverse, log_det = invert_positive(shifted)
    inverse *= scale
    inverse *= scale[:, np.newaxis]
    return InverseAndDeterminant(inverse, log_det - 2.0 * float(np.log(scale).sum()))


def invert_lower(lower: Matrix) -> Matrix:
    """The inverse of a lower triangular matrix, C-ordered, none of whose pivots is zero.

    Examples
    --------
    >>> invert_lower(np.array([[2.0, 0.0], [1.0, 1.0]]))
    array([[ 0.5,  0. ],
           [-0.5,  1. ]])

    """
    if not len(lower):
        return lower.copy()
    inverse = lower.copy()
    invert_upper_in_place(inverse.T)  # LAPACK reads the transpose
    return inverse


def _mirror_lower(matrix: Matrix) -> None:
    """Copy the lower triangle over the upper one, a panel at a time."""
    for start in range(0, len(matrix), 64):
        stop = min(start + 64, len(matrix))
        corner = matrix[start:stop, start:stop]
        corner[:] = np.tril(corner) + np.tril(corner, -1).T
        matrix[start:stop, stop:] = matrix[stop:, start:stop].T
