"""Text: a row a line, numbers between commas, semicolons or tabs, with or without a line of names."""

import csv
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
from pyarrow import csv as arrow_csv

from sketchbandit.arrays import Matrix
from sketchbandit.errors import FileError, InputError
from sketchbandit.outofcore.sources.base import CHUNK_BYTES, Chunk, Source

_SEPARATORS = (",", ";", "\t", " ")
_COUNTED_AT_ONCE = 1 << 22
_MISSING = frozenset(arrow_csv.ConvertOptions().null_values)  # how a number that is not there is written


class TextTable:
    """The first line of a text, and its rows. ``file`` is read from where it stands."""

    def __init__(self, name: str, file: IO[bytes], header: bool | None = None) -> None:
        self._name, self._file = name, file
        self._first = file.readline()
        if not self._first.strip():
            raise InputError(f"{name}: it is empty, or begins with an empty line")
        try:
            line = self._first.decode("utf-8-sig").strip("\r\n")
        except UnicodeDecodeError as error:
            raise FileError(
                f"{name} is not a text of numbers ({error.reason}); unpack it first if it is packed"
            ) from error
        if line.startswith("#"):
            raise InputError(f"{name}: it begins with a comment ({line[:20]!r}); remove it")
        self.separator = next((s for s in _SEPARATORS if s in line), ",")
        try:
            fields = [field.strip() for field in next(csv.reader([line], delimiter=self.separator))]
        except csv.Error as error:  # a line that ends in a lone carriage return, for one
            raise FileError(f"{name}: its first line cannot be read: {error}") from error
        if self.separator == " " and "" in fields:
            raise InputError(f"{name}: several spaces stand between columns; write one, or a comma")
        self.dim = len(fields)
        if header is None:
            header = self._has_names(fields)
        self.columns = fields if header else None
        if self.columns is None and not all(map(_is_number, fields)):
            at = next(i for i, field in enumerate(fields) if not _is_number(field))
            raise InputError(
                f"{name}: row 0, column {at}: {fields[at]!r} is no number, but others in the line are, "
                "so that it is no line of names either; mend it, or drop the column"
            )

    def _has_names(self, fields: list[str]) -> bool:
        if fields == [str(i) for i in range(len(fields))] and len(fields) > 1:
            begin = ", ".join(fields[:3]) + (", ..." if len(fields) > 3 else "")
            raise InputError(
                f"{self._name}: its first line is {begin}: names of columns, or a row? Say --header or "
                "--no-header"
            )
        if not fields[0] and not any(map(_is_number, fields[1:])) and len(fields) > 1:
            raise InputError(
                f"{self._name}: the first column has no name, which looks like row numbers; "
                "drop it (index=False)"
            )
        return not any(map(_is_number, fields))

    def chunks(self) -> Iterator[Chunk]:
        """Its rows."""
        names = [str(i) for i in range(self.dim)]
        source: Any = self._file if self.columns is not None else _Rewound(self._first, self._file)
        first = 0
        try:
            reader = arrow_csv.open_csv(
                source,
                arrow_csv.ReadOptions(column_names=names, block_size=CHUNK_BYTES, use_threads=False),
                # A line without anything is no row, unless a row has one field, which is missing then.
                arrow_csv.ParseOptions(delimiter=self.separator, ignore_empty_lines=self.dim > 1),
                arrow_csv.ConvertOptions(column_types=dict.fromkeys(names, pa.float64())),
            )
            for batch in reader:
                yield Chunk(table_rows(batch), first)
                first += batch.num_rows
        except pa.ArrowInvalid as error:
            if "Empty CSV" not in str(error):
                raise FileError(f"{self._name}: {_placed(str(error), first)}") from error


class CsvSource(Source):
    """A matrix in a text file, read from its start to its end: a file is a part."""

    def __init__(self, path: Path, header: bool | None = None) -> None:
        self.name, self._path, self._header = str(path), path, header
        with path.open("rb") as file:
            table = TextTable(self.name, file, header)
            self.dim, self.columns = table.dim, table.columns
            file.seek(0)
            self.rows = _count_lines(file) - (self.columns is not None)

    def chunks(self, start: int, stop: int) -> Iterator[Chunk]:
        """All of them."""
        del start, stop
        with self._path.open("rb") as file:
            yield from TextTable(self.name, file, self._header).chunks()


class _Rewound(io.RawIOBase):
    """A line that was read already, and what follows it."""

    def __init__(self, line: bytes, file: IO[bytes]) -> None:
        self._line, self._file = line, file

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        some = self._line[: len(buffer)] or self._file.read(len(buffer))
        self._line = self._line[len(some) :]
        buffer[: len(some)] = some
        return len(some)


def table_rows(batch: Any) -> Matrix:
    """The rows of a record batch of numbers; missing ones are NaN."""
    rows = np.empty((batch.num_rows, batch.num_columns))
    for index, column in enumerate(batch.columns):
        rows[:, index] = column.to_numpy(zero_copy_only=False)
    return rows


def _placed(message: str, read: int) -> str:
    """What the reader complains about, with rows counted from 0 as everywhere."""
    found = re.search(r"Row #(\d+): ", message)
    if found is None:
        return f"after row {read}: {message}"
    return f"row {int(found[1]) - 1}: {message.replace(found[0], '')}"


def _is_number(field: str) -> bool:
    try:
        float(field)
    except ValueError:
        return field in _MISSING
    return True


def _count_lines(file: IO[bytes]) -> int:
    """How many, empty ones included: no fewer than there are rows, which is what a budget needs."""
    count, last = 0, b"\n"
    while block := file.read(_COUNTED_AT_ONCE):
        count += block.count(b"\n") + block.count(b"\r") - block.count(b"\r\n")
        count -= last == b"\r" and block[:1] == b"\n"
        last = block[-1:]
    return count + (last not in b"\r\n")
