"""The memory that a request takes, in bytes, known before it is taken.

Bodies are charged where they arrive. Anything not listed here does not grow with the request: a decision
among all stored arms makes no copy of them.
"""

from collections.abc import Sequence

import numpy as np

from sketchbandit_service.types import Matrix
from sketchbandit_service.vectors import nbytes

RANKED, RANKED_BYTE = 450, 5
"""Bytes of one ranked arm (chosen, written, kept for its key, answered), and per byte of the longest id.

Measured at the peak, for ids of 128 characters: 2,600 with four bytes per character, 1,200 with two, 600
with one."""
SCORED = 150
"""Bytes of one of the arms to rank. Measured: 130."""
_WRITTEN, _WRITTEN_BYTE = 130, 2
"""Bytes of an arm's id in an answer, and per byte of the id. At the peak: 1,140 for an id of 512 bytes."""


def text(body: bytes) -> int:
    """A body as text: one byte per character, or four."""
    return len(body) * (1 if body.isascii() else 4)


def dense(count: int, dim: int) -> int:
    """Dense arms of ``dim`` numbers."""
    return 8 * count * dim


def sparse(entries: int) -> int:
    """A sparse arm with this many entries: read, put into a piece of a matrix, joined with other pieces."""
    return 64 + 40 * entries


def ranking(top: int | None, count: int, id_bytes: int) -> int:
    """A ranking of ``top`` out of ``count`` arms. ``id_bytes`` is the length of the longest id."""
    return 0 if top is None else (RANKED + RANKED_BYTE * id_bytes) * min(top, count) + SCORED * count


def listing(count: int, id_bytes: int) -> int:
    """The ids of ``count`` arms in an answer. ``id_bytes`` is the length of the longest id."""
    return count * (_WRITTEN + _WRITTEN_BYTE * id_bytes)


def objects(characters: int) -> int:
    """Objects read from this many characters of JSON. Empty lists and objects take the most."""
    return 24 * characters


NAMED = 200
"""Bytes of the id of a stored arm in a request, and of its place."""


def chosen(stored: Matrix, count: int) -> int:
    """A copy of stored arms. Sparse arms count as if each were the longest, but never as more than all."""
    if isinstance(stored, np.ndarray):
        return dense(count, stored.shape[1])
    longest = int(np.diff(stored.indptr).max(initial=0))
    return 8 * count + min(12 * longest * count, nbytes(stored))


def joining(parts: Sequence[Matrix]) -> int:
    """Arms of several forms, joined and put in order. Dense arms among sparse ones become sparse."""
    full = [part for part in parts if isinstance(part, np.ndarray)]
    numbers = sum(part.size for part in full)
    if len(full) == len(parts):
        return 16 * numbers
    entries = sum(part.nnz for part in parts if not isinstance(part, np.ndarray))
    return int(numbers + 60 * sum(map(np.count_nonzero, full)) + 24 * entries)
