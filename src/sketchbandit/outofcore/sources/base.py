"""What every kind of file offers, and the columns that are left out of all of them."""

import csv
import io
import shlex
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import pairwise
from typing import ClassVar, NamedTuple

import numpy as np

from sketchbandit.arrays import AnyArray, Dtype, Rows
from sketchbandit.errors import InputError, InputTypeError, RowError

CHUNK_BYTES = 1 << 25  # of float64 at a time: much for BLAS, little for the memory
_SHOWN = 10  # columns in a message


class RowChunk(NamedTuple):
    """Some rows, dense or sparse, and the number in its file of the first."""

    rows: Rows
    first: int


class MatrixSource(ABC):
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
    def chunks(self, start: int, stop: int) -> Iterator[RowChunk]:
        """The rows of a range that ``divide`` gave, in order."""

    def read_into(
        self, update: Callable[[Rows], object], start: int, stop: int, tell: Callable[[int], None]
    ) -> None:
        """Feed a range of rows to ``update``; ``tell`` hears how many came with each chunk.

        Errors name the file and the row.
        """
        for chunk in self.chunks(start, stop):
            try:
                update(chunk.rows)
            except RowError as error:
                why = error.why.replace(";", f"{self._column_of(chunk.rows[[error.row]])};", 1)
                raise InputError(f"{self.name}: row {chunk.first + error.row} {why}") from error
            except (InputError, InputTypeError) as error:
                raise type(error)(f"{self.name}: from row {chunk.first} on: {error}") from error
            tell(chunk.rows.shape[0])

    def _column_of(self, row: AnyArray) -> str:
        """The column of the first number in a row that is not finite, where columns have names."""
        if not self.columns or np.isfinite(row).all():
            return ""
        return f" in column {self.columns[int(np.isfinite(row).argmin())]}"

    def bounds(self, start: int, stop: int) -> Iterator[tuple[int, int]]:
        """Where the chunks of a range begin and end."""
        for first in range(start, stop, self.rows_a_chunk):
            yield first, min(first + self.rows_a_chunk, stop)

    @property
    def rows_a_chunk(self) -> int:
        """How many rows make a chunk."""
        return max(1, CHUNK_BYTES // (8 * self.dim))


def check_matrix(name: str, shape: tuple[int, ...], dtype: Dtype) -> None:
    """Refuse what is no matrix of real numbers."""
    if len(shape) != 2:
        raise InputError(
            f"{name}: not a matrix, but {len(shape)} dimensions {shape}; rows and columns are needed"
        )
    if shape[1] < 1:
        raise InputError(f"{name}: its rows have no columns {shape}")
    if dtype.kind not in "fiub":
        raise InputTypeError(f"{name}: its entries must be real numbers, but the dtype is {dtype}")


def leave_out(sources: Sequence[MatrixSource], drop: Sequence[str], *, drop_text: bool) -> tuple[str, ...]:
    """Leave columns out of all sources, and tell which; InputError if one is unknown, or text is left.

    A column that is text in one file is left out of all of them.
    """
    known = list(dict.fromkeys(name for source in sources for name in source.names))
    for name in drop:
        if name not in known:
            raise InputError(
                f"there is no column {name!r} to drop: "
                + (f"there are {_listed(known)}" if known else "columns have names in text and Parquet only")
            )
    left_out = list(dict.fromkeys(drop))
    for source in sources:
        source.leave_out(left_out)
    text = list(dict.fromkeys(name for source in sources for name in source.text))
    if text and not drop_text:
        where = next(source.name for source in sources if source.text)
        raise InputError(
            f"{where}: these columns are not numbers: {_listed(text)}. Encode them, or leave them out: "
            f"{option(*text)}, or --drop-text for all such columns (in Python drop=, drop_text=True)"
        )
    for source in sources:
        source.leave_out(text)
        if not source.dim:
            raise InputError(f"{source.name}: no column is left")
    return (*left_out, *text)


def option(*names: str) -> str:
    """What to add to the command line to leave these columns out.

    >>> option("day", "name of user")
    "--drop 'day,name of user'"
    """
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(names)
    return f"--drop {shlex.quote(line.getvalue())}"


def names_in(options: Sequence[str]) -> list[str]:
    """The names that values of ``--drop`` hold, separated by commas.

    >>> names_in(["a,b", '"c,d"'])
    ['a', 'b', 'c,d']
    """
    return [name for value in options for row in csv.reader([value or '""']) for name in row]


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")
