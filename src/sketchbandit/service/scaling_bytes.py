"""Encodes a scaling for the journal, exactly."""

import numpy as np

from sketchbandit.scaling import Scaling

_VERSION = b"1"


def encode(scaling: Scaling) -> bytes:
    """The numbers of a scaling, after a byte for the version.

    >>> decode(encode(Scaling.rows(3, constant=0.1)), 3).constant
    0.1
    """
    _, arrays = scaling.dump()
    return _VERSION + arrays["lens"].astype("<f8", copy=False).tobytes()


def decode(payload: bytes, dim: int) -> Scaling:
    """Read what ``encode`` has written. Raises ValueError for other bytes."""
    if payload[:1] != _VERSION or len(payload) % 8 != 1:
        raise ValueError(f"{len(payload)} bytes do not hold a scaling of {dim} columns")
    lens = np.frombuffer(payload, dtype="<f8", offset=1).astype(np.float64)
    return Scaling.undump({"dim": dim}, {"lens": lens})
