"""What a request takes of the server's memory, in bytes, known before it is taken.

Bodies are charged where they arrive. What is not here costs nothing that grows with the request: a decision
among all stored arms reads them where they lie.
"""

from sketchbandit.service.vectors import Vector, nbytes

RANKED = 2700
"""One of the ``top``: chosen, written, kept for its key, answered. Measured at the peak, for ids of 128
characters: 2,600 where these have four bytes each, 1,200 with two, 600 with one."""
SCORED = 150
"""One of the arms that are ranked. Measured: 130."""
WRITTEN_ID = 1150
"""The id of an arm in an answer. Measured at the peak: 1,140 for the longest, of which two are made."""


def text(body: bytes) -> int:
    """A body as text: one byte a character, or four."""
    return len(body) * (1 if body.isascii() else 4)


def dense(count: int, dim: int) -> int:
    """Arms of ``dim`` numbers."""
    return 8 * count * dim


def sparse(entries: int) -> int:
    """An arm of so many entries: read, made a piece of a matrix, and joined with the other pieces."""
    return 64 + 40 * entries


def copied(stored: Vector) -> int:
    """A stored arm among others that are not."""
    return 64 + nbytes(stored)


def ranking(top: int | None, count: int) -> int:
    """What ``top`` of so many arms asks for."""
    return 0 if top is None else RANKED * min(top, count) + SCORED * count


def objects(characters: int) -> int:
    """Objects made of so much JSON: most for empty lists and objects."""
    return 24 * characters
