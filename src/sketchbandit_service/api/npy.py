"""Reads a matrix of arms in numpy's file format, without unpickling."""

import ast
import re
from collections.abc import Callable

import numpy as np

from sketchbandit_service.problems import Invalid, Malformed
from sketchbandit_service.types import Matrix

_MAGIC = b"\x93NUMPY"
_LENGTHS = {(1, 0): 2, (2, 0): 4}  # bytes of the field with the header's length, by version
_HEADER_BYTES = 10_000  # a longer header does not belong to a matrix of numbers
_ODD = re.compile(r"\\|[0-9]\s*[A-Za-z_]")
"""What no header written today has, and what Python warns of: 1L, as in Python 2, and escapes."""
_FLOAT = re.compile("[<>=|]?f[48]")
_FIELDS = {"descr", "fortran_order", "shape"}


def read_npy(body: bytes, check: Callable[[tuple[int, int]], None]) -> Matrix:
    """The matrix in the body, as float64 in C order. ``check`` sees its shape before it is made."""
    header, at = _header(body)
    kind, is_fortran, shape = header["descr"], header["fortran_order"], header["shape"]
    if type(is_fortran) is not bool or type(shape) is not tuple:
        raise Malformed(
            f"the body is not an npy file: fortran_order {is_fortran!r:.100}, shape {shape!r:.100}"
        )
    if not isinstance(kind, str) or not _FLOAT.fullmatch(kind) or len(shape) != 2:
        raise Invalid(f"arms must be a float32 or float64 matrix, got {kind!r:.100} of shape {shape!r:.100}")
    if any(type(length) is not int or length < 0 for length in shape):
        raise Malformed(f"the body is not an npy file: its shape is {shape!r:.100}")
    check(shape)
    dtype = np.dtype(kind)
    if (left := len(body) - at) != shape[0] * shape[1] * dtype.itemsize:
        raise Malformed(f"the npy header says {shape} {dtype}, but {left} bytes follow")
    flat = np.frombuffer(body, dtype, offset=at)
    # always a copy, so that it is writable: the policies' loops are compiled for writable arrays
    return np.array(flat.reshape(shape, order="F" if is_fortran else "C"), dtype=np.float64, order="C")


def _header(body: bytes) -> tuple[dict[str, object], int]:
    """The header, and where the numbers begin."""
    if len(body) < 8 or not body.startswith(_MAGIC):
        raise Malformed(f"the body is not an npy file: it begins with {body[:8]!r}")
    version = (body[6], body[7])
    if version not in _LENGTHS:
        raise Malformed(f"npy files of version {version} are not supported; write version 1.0")
    begin = 8 + _LENGTHS[version]
    end = begin + int.from_bytes(body[8:begin], "little")
    if end - begin > _HEADER_BYTES or end > len(body):
        raise Malformed(
            f"the body is not an npy file: its header has {end - begin} bytes, {len(body) - begin} bytes "
            f"follow, and a header has at most {_HEADER_BYTES}"
        )
    text = body[begin:end].decode("latin-1").strip()
    if found := _ODD.search(text):
        raise Malformed(f"the header of the npy file has {found[0]!r}; write it with numpy on Python 3")
    try:
        header = ast.literal_eval(text)
    except Exception as error:
        raise Malformed(f"the body is not an npy file: {str(error)[:200]}") from None
    if type(header) is not dict or header.keys() != _FIELDS:
        raise Malformed(f"the body is not an npy file: its header is {text[:200]!r}")
    return header, end
