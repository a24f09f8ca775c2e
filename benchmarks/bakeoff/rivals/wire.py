"""Messages between the bake-off and a library in an environment of its own: a line of JSON, then arrays."""

import json
from typing import IO, Any

import numpy as np
from scipy import sparse


def send(pipe: IO[bytes], message: dict[str, Any], arms: Any = None) -> None:
    """Write one message; ``arms`` is a (K, dim) array or CSR matrix."""
    arrays: list[Any] = []
    if sparse.issparse(arms):
        arrays = [arms.data, arms.indices, arms.indptr]
    elif arms is not None:
        arrays = [arms]
    kinds = [(array.dtype.str, array.shape) for array in arrays]
    shape = None if arms is None else arms.shape
    pipe.write(json.dumps({**message, "shape": shape, "arrays": kinds}).encode() + b"\n")
    for array in arrays:
        pipe.write(np.ascontiguousarray(array).tobytes())
    pipe.flush()


def receive(pipe: IO[bytes]) -> tuple[dict[str, Any], Any]:
    """Read one message and its arms, if it has any; EOFError where the other side has gone."""
    line = pipe.readline()
    if not line:
        raise EOFError("the other side closed the pipe")
    message = json.loads(line)
    arrays = []
    for dtype, shape in message.pop("arrays"):
        count = int(np.prod(shape)) * np.dtype(dtype).itemsize
        arrays.append(np.frombuffer(pipe.read(count), dtype).reshape(shape))
    shape = message.pop("shape")
    if len(arrays) == 3:
        return message, sparse.csr_array(tuple(arrays), shape=shape)
    return message, arrays[0] if arrays else None
