"""A matrix of arms in numpy's file format, read without unpickling."""

import io
from collections.abc import Callable
from typing import Any

import numpy as np

from sketchbandit.service.problems import Invalid, Malformed
from sketchbandit.service.vectors import Matrix

_HEADER_BYTES = 10_000  # more is not a matrix of numbers


def read_npy(body: bytes, check: Callable[[tuple[int, int]], None]) -> Matrix:
    """The matrix in the body, as float64 in the order of C; ``check`` sees its shape before it is made."""
    buffer = io.BytesIO(body)
    shape, is_fortran, dtype = _header(buffer)
    if dtype.kind != "f" or dtype.itemsize not in (4, 8) or len(shape) != 2:
        raise Invalid(f"arms must be a float32 or float64 matrix, got {dtype!s:.100} of shape {shape}")
    if any(type(length) is not int or length < 0 for length in shape):
        raise Malformed(f"the body is not an npy file: it has the shape {shape}")
    check(shape)
    at = buffer.tell()
    if (left := len(body) - at) != shape[0] * shape[1] * dtype.itemsize:
        raise Malformed(f"the npy file says {shape} {dtype}, and {left} bytes follow")
    flat = np.frombuffer(body, dtype, offset=at)
    # always a copy, and so writable: the loops of the policies are compiled for that
    return np.array(flat.reshape(shape, order="F" if is_fortran else "C"), dtype=np.float64, order="C")


def _header(buffer: io.BytesIO) -> tuple[Any, bool, np.dtype[Any]]:
    try:
        version = np.lib.format.read_magic(buffer)
        if version == (1, 0):
            return np.lib.format.read_array_header_1_0(buffer, max_header_size=_HEADER_BYTES)
        if version == (2, 0):
            return np.lib.format.read_array_header_2_0(buffer, max_header_size=_HEADER_BYTES)
    except Exception as error:
        raise Malformed(f"the body is not an npy file: {str(error)[:200]}") from None
    raise Malformed(f"npy files of version {version} are not read; write version 1.0")
