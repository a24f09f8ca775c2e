"""What a request takes of the server's memory, in bytes, known before it is taken.

Bodies are charged where they arrive. What is not here costs nothing that grows with the request: a decision
among all stored arms reads them where they lie.
"""

from collections.abc import Sequence

import numpy as np

from sketchbandit.service.vectors import Matrix, nbytes

RANKED, RANKED_BYTE = 450, 5
"""One of the ``top``: chosen, written, kept for its key, answered; and each byte of the longest id.

Measured at the peak, for ids of 128 characters: 2,600 where these have four bytes each, 1,200 with two, 600
with one."""
SCORED = 150
"""One of the arms that are ranked. Measured: 130."""
_WRITTEN, _WRITTEN_BYTE = 130, 2
"""The id of an arm in an answer, and each of its bytes. Measured at the peak: 1,140 for one of 512 bytes."""


def text(body: bytes) -> int:
    """A body as text: one byte a character, or four."""
    return len(body) * (1 if body.isascii() else 4)


def dense(count: int, dim: int) -> int:
    """Arms of ``dim`` numbers."""
    return 8 * count * dim


def sparse(entries: int) -> int:
    """An arm of so many entries: read, made a piece of a matrix, and joined with the other pieces."""
    return 64 + 40 * entries


def ranking(top: int | None, count: int, id_bytes: int) -> int:
    """What ``top`` of so many arms asks for, whose longest id has so many bytes."""
    return 0 if top is None else (RANKED + RANKED_BYTE * id_bytes) * min(top, count) + SCORED * count


def listing(count: int, id_bytes: int) -> int:
    """The ids of so many arms in an answer, the longest of which has so many bytes."""
    return count * (_WRITTEN + _WRITTEN_BYTE * id_bytes)


def objects(characters: int) -> int:
    """Objects made of so much JSON: most for empty lists and objects."""
    return 24 * characters


NAMED = 200
"""The id of a stored arm in a request, and its place."""


def chosen(stored: Matrix, count: int) -> int:
    """Stored arms, copied: sparse ones as if each were the longest, but never more than all together."""
    if isinstance(stored, np.ndarray):
        return dense(count, stored.shape[1])
    longest = int(np.diff(stored.indptr).max(initial=0))
    return 8 * count + min(12 * longest * count, nbytes(stored))


def joining(parts: Sequence[Matrix]) -> int:
    """Arms of several forms put together, and then in order; dense ones among sparse become sparse."""
    full = [part for part in parts if isinstance(part, np.ndarray)]
    numbers = sum(part.size for part in full)
    if len(full) == len(parts):
        return 16 * numbers
    entries = sum(part.nnz for part in parts if not isinstance(part, np.ndarray))
    return int(numbers + 60 * sum(map(np.count_nonzero, full)) + 24 * entries)
