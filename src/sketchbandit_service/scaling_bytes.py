"""Encodes a scaling for the journal, exactly."""

import numpy as np

from sketchbandit.features import Scaling
from sketchbandit.kernels.backend import HEAD

_VERSION = b"1"


def encode(scaling: Scaling) -> bytes:
    """The numbers of a scaling, and the reach of its columns if it is known, after a byte for the version.

    >>> decode(encode(Scaling.rows(3, constant=0.1)), 3).constant
    0.1
    """
    numbers = [scaling.lens] if scaling.reach is None else [scaling.lens, scaling.reach]
    return _VERSION + np.concatenate(numbers).astype("<f8", copy=False).tobytes()


def decode(payload: bytes, dim: int) -> Scaling:
    """Read what ``encode`` has written. Raises ValueError for other bytes."""
    if payload[:1] != _VERSION or len(payload) % 8 != 1:
        raise ValueError(f"{len(payload)} bytes do not hold a scaling of {dim} columns")
    numbers = np.frombuffer(payload, dtype="<f8", offset=1).astype(np.float64)
    whole = len(numbers) - dim * (len(numbers) == HEAD + 3 * dim)  # scalings of 0.14 have no reach
    reach = {"reach": numbers[whole:].copy()} if whole < len(numbers) else {}
    return Scaling.undump({"dim": dim}, {"lens": numbers[:whole].copy(), **reach})
