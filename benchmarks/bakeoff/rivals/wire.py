"""Messages between the bake-off and a library in an environment of its own: a line of JSON, then arrays."""

import json
from typing import IO, Any

import numpy as np
from scipy import sparse


def send(pipe: IO[bytes], message: dict[str, Any], arms: Any = None, rewards: Any = None) -> None:
    """Write one message; ``arms`` is an array or a CSR matrix with the arms of all rounds."""
    parts: list[Any] = []
    if arms is not None:
        parts = [arms.data, arms.indices, arms.indptr] if sparse.issparse(arms) else [arms]
        parts.append(rewards)
    kinds = [(part.dtype.str, part.shape) for part in parts]
    shape = None if arms is None else arms.shape
    pipe.write(json.dumps({**message, "shape": shape, "arrays": kinds}).encode() + b"\n")
    for part in parts:
        pipe.write(np.ascontiguousarray(part).tobytes())
    pipe.flush()


def receive(pipe: IO[bytes]) -> tuple[dict[str, Any], Any, Any]:
    """Read one message, its arms and rewards if it has any; EOFError where the other side has gone."""
    line = pipe.readline()
    if not line:
        raise EOFError("the other side closed the pipe")
    message = json.loads(line)
    shape, parts = message.pop("shape"), []
    for dtype, size in message.pop("arrays"):
        count = int(np.prod(size)) * np.dtype(dtype).itemsize
        parts.append(np.frombuffer(pipe.read(count), dtype).reshape(size))
    if not parts:
        return message, None, None
    *stored, rewards = parts
    return message, stored[0] if len(stored) == 1 else sparse.csr_array(tuple(stored), shape=shape), rewards
