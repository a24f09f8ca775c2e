"""What every kind of file offers."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from sketchbandit.errors import InputError, InputTypeError

if TYPE_CHECKING:
    import numpy as np

CHUNK_BYTES = 1 << 25  # of float64 at a time: much for BLAS, little for the memory


class Chunk(NamedTuple):
    """Some rows, dense or sparse, and the number in its file of the first."""

    rows: Any
    first: int


class Source(ABC):
    """A matrix in a file. Making one reads what it says of itself, not its rows."""

    name: str
    """How messages call it."""
    dim: int
    """Length of a row."""
    rows: int | None
    """How many there are, if it can be known."""
    columns: Sequence[str] | None = None
    """What the columns are called, if they are called anything."""
    names: Sequence[str] = ()
    """By which columns can be left out: their names, or their numbers in a text without names."""
    text: Sequence[str] = ()
    """Columns that are no numbers: words, dates. They have to be left out before rows are read."""
    divisible: ClassVar[bool] = False
    """Whether a part can be read without what comes before it."""

    def divide(self, most: int) -> list[tuple[int, int]]:
        """Ranges of about ``most`` rows that can be read on their own, in order."""
        if not self.rows:
            return [(0, 0)]
        if not self.divisible:
            return [(0, self.rows)]
        count = max(1, round(self.rows / most))
        edges = [self.rows * i // count for i in range(count + 1)]
        return list(pairwise(edges))

    def leave_out(self, names: Collection[str]) -> None:
        """Do not read these columns. A file without names of columns has none of them."""
        del names

    @abstractmethod
    def chunks(self, start: int, stop: int) -> Iterator[Chunk]:
        """The rows of a range that ``divide`` gave, in order."""

    def bounds(self, start: int, stop: int) -> Iterator[tuple[int, int]]:
        """Where the chunks of a range begin and end."""
        for first in range(start, stop, self.rows_a_chunk):
            yield first, min(first + self.rows_a_chunk, stop)

    @property
    def rows_a_chunk(self) -> int:
        """How many rows make a chunk."""
        return max(1, CHUNK_BYTES // (8 * self.dim))


def check_matrix(name: str, shape: tuple[int, ...], dtype: "np.dtype[Any]") -> None:
    """Refuse what is no matrix of real numbers."""
    if len(shape) != 2:
        raise InputError(
            f"{name}: not a matrix, but {len(shape)} dimensions {shape}; rows and columns are needed"
        )
    if shape[1] < 1:
        raise InputError(f"{name}: its rows have no columns {shape}")
    if dtype.kind not in "fiub":
        raise InputTypeError(f"{name}: its entries must be real numbers, but the dtype is {dtype}")
