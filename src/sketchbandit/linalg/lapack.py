"""LAPACK without the interpreter's lock: other threads go on while a large matrix is factored.

scipy's own wrappers hold the lock. These call the same routines of the same library, in place.
"""

import ctypes
from typing import Any

import numpy as np
from scipy.linalg import cython_lapack

from sketchbandit.arrays import Matrix

_name_of = ctypes.pythonapi.PyCapsule_GetName
_name_of.restype, _name_of.argtypes = ctypes.c_char_p, [ctypes.py_object]
_pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
_pointer_of.restype, _pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


def _routine(name: str, arguments: int) -> Any:
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


def _call(routine: Any, matrix: Matrix, *options: ctypes.c_char) -> int:
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
