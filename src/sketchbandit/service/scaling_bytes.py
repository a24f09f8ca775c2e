"""The bytes of a scaling in the journal, exact."""

import numpy as np

from sketchbandit.scaling import Scaling

_VERSION = b"1"


def encode(scaling: Scaling) -> bytes:
    """Its numbers, after a mark of the version.

    >>> decode(encode(Scaling.rows(3, constant=0.1)), 3).constant
    0.1
    """
    _, arrays = scaling.dump()
    return _VERSION + arrays["lens"].astype("<f8", copy=False).tobytes()


def decode(payload: bytes, dim: int) -> Scaling:
    """The scaling that ``encode`` wrote; ValueError if these are not its bytes."""
    if payload[:1] != _VERSION or len(payload) % 8 != 1:
        raise ValueError(f"{len(payload)} bytes do not hold a scaling of {dim} columns")
    lens = np.frombuffer(payload, dtype="<f8", offset=1).astype(np.float64)
    return Scaling.undump({"dim": dim}, {"lens": lens})
