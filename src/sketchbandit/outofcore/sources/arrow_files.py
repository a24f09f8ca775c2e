"""Files that pyarrow reads: text, a row a line, and Parquet, whose row groups are the parts."""

import csv
import io
import json
import re
from collections.abc import Collection, Iterator
from itertools import accumulate, pairwise
from pathlib import Path
from typing import IO, TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyarrow import csv as arrow_csv
from pyarrow import parquet

from sketchbandit.arrays import Matrix
from sketchbandit.errors import FileError, InputError
from sketchbandit.outofcore.sources.base import CHUNK_BYTES, MatrixSource, RowChunk, option

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_SEPARATORS = ("\t", ",", ";", " ")  # the first that is there
_COUNTED_AT_ONCE = 1 << 22
_LOOKED_AT = 1 << 20  # bytes, to find columns of text
_LINES = 1000  # of them
_MISSING = frozenset(arrow_csv.ConvertOptions().null_values)  # how a number that is not there is written


class TextSource(MatrixSource):
    """A matrix in a text that can be read once. ``file`` is read from where it stands."""

    rows: int | None = None

    def __init__(self, name: str, file: IO[bytes], header: bool | None = None) -> None:
        self.name, self._file = name, file
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
        self._has_header = self._has_names(fields) if header is None else header
        self.names = fields if self._has_header else [str(at) for at in range(len(fields))]
        self._head = file.read(_LOOKED_AT)
        if not self._has_header:
            self._head = self._first + self._head
        self._text = self._text_columns()
        self._kept = list(range(len(fields)))
        self.leave_out(())

    def leave_out(self, names: Collection[str]) -> None:
        """Do not read these columns; where they have no names, they go by their numbers, from 0."""
        self._kept = [at for at in self._kept if self.names[at] not in names]
        self.dim = len(self._kept)
        self.columns = [self.names[at] for at in self._kept] if self._has_header else None
        self.text = [self.names[at] for at in self._kept if at in self._text]

    def _text_columns(self) -> set[int]:
        """Columns with words and without a number in the first lines."""
        left, words = set(range(len(self.names))), set()
        lines = re.split(r"\r\n|\r|\n", self._head.decode("utf-8-sig", "replace"))
        if len(self._head) >= _LOOKED_AT:
            lines = lines[:-1]  # the last one may be cut
        try:
            for row in csv.reader(lines[:_LINES], delimiter=self.separator):
                if len(row) != len(self.names) or not left:
                    continue
                there = {at for at in left if row[at].strip() not in _MISSING}
                numbers = {at for at in there if _is_number(row[at])}
                left -= numbers
                words |= there - numbers
        except csv.Error:
            return set()  # whoever reads the rows says what is wrong
        return left & words

    def _has_names(self, fields: list[str]) -> bool:
        if fields == [str(i) for i in range(len(fields))] and len(fields) > 1:
            begin = ", ".join(fields[:3]) + (", ..." if len(fields) > 3 else "")
            raise InputError(
                f"{self.name}: its first line is {begin}: names of columns, or a row? Say --header or "
                "--no-header"
            )
        if not fields[0] and not any(map(_is_number, fields[1:])) and len(fields) > 1:
            raise InputError(
                f"{self.name}: the first column has no name, so it looks like row numbers: write the file "
                "without them (index=False), or leave them out: --header --drop ''"
            )
        if not all(map(_is_number, fields)) and any(map(_is_number, fields)):
            raise InputError(
                f"{self.name}: its first line has words and numbers ({', '.join(fields[:4])}, ...): say "
                "--header if they are the names of columns, --no-header if they are a row"
            )
        return not any(map(_is_number, fields))

    def chunks(self, start: int, stop: int) -> Iterator[RowChunk]:
        """All that comes."""
        del start, stop
        names = [str(i) for i in range(len(self.names))]
        kept = [names[at] for at in self._kept]
        source = _Rewound(self._head, self._file)
        first = 0
        try:
            reader = arrow_csv.open_csv(
                source,
                arrow_csv.ReadOptions(column_names=names, block_size=CHUNK_BYTES, use_threads=False),
                # A line without anything is no row, unless a row has one field, which is missing then.
                arrow_csv.ParseOptions(delimiter=self.separator, ignore_empty_lines=len(names) > 1),
                arrow_csv.ConvertOptions(
                    column_types=dict.fromkeys(kept, pa.float64()), include_columns=kept
                ),
            )
            for batch in reader:
                yield RowChunk(table_rows(batch), first)
                first += batch.num_rows
        except pa.ArrowInvalid as error:
            if "Empty CSV" not in str(error):
                raise FileError(f"{self.name}: {self._placed(str(error), first)}") from error

    def _placed(self, message: str, read: int) -> str:
        """What the reader complains about, with rows counted from 0 as everywhere."""
        found = re.search(r"Row #(\d+): ", message)
        place = f"after row {read}" if found is None else f"row {int(found[1]) - 1}"
        wrong = re.search(r"In CSV column #(\d+): .*invalid value '(.*)'", message, re.DOTALL)
        if wrong is None:
            return f"{place}: {message if found is None else message.replace(found[0], '')}"
        column = self.names[int(wrong[1])]
        return (
            f"{place}, column {column}: {wrong[2]!r} is not a number; correct it, or leave the column out: "
            f"{option(column)}"
        )


class CsvSource(TextSource):
    """A matrix in a text file, read from its start to its end: a file is a part."""

    def __init__(self, path: Path, header: bool | None = None) -> None:
        self._path, self._header = path, header
        self._left_out: frozenset[str] = frozenset()
        with path.open("rb") as file:
            super().__init__(str(path), file, header)
            file.seek(0)
            self.rows = _count_lines(file) - self._has_header

    def leave_out(self, names: Collection[str]) -> None:
        """Do not read these columns."""
        self._left_out |= set(names)
        super().leave_out(names)

    def chunks(self, start: int, stop: int) -> Iterator[RowChunk]:
        """All of them, each time."""
        with self._path.open("rb") as file:
            text = TextSource(self.name, file, self._header)
            text.leave_out(self._left_out)
            yield from text.chunks(start, stop)


class _Rewound(io.RawIOBase):
    """What was read already, and what follows it."""

    def __init__(self, head: bytes, file: IO[bytes]) -> None:
        self._head, self._file = head, file

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer") -> int:
        room = memoryview(buffer)
        some = self._head[: len(room)] or self._file.read(len(room))
        self._head = self._head[len(some) :]
        room[: len(some)] = some
        return len(some)


def table_rows(batch: pa.RecordBatch) -> Matrix:
    """The rows of a record batch of numbers; missing ones are NaN."""
    rows = np.empty((batch.num_rows, batch.num_columns))
    for index, column in enumerate(batch.columns):
        rows[:, index] = column.to_numpy(zero_copy_only=False)
    return rows


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


class ParquetSource(MatrixSource):
    """A matrix in a Parquet file, a batch of rows at a time."""

    divisible = True

    def __init__(self, path: Path) -> None:
        self.name, self._path = str(path), path
        try:
            with parquet.ParquetFile(path) as file:
                schema, metadata = _without_index(file.schema_arrow), file.metadata
                groups = [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]
        except (pa.ArrowInvalid, pa.ArrowException) as error:
            raise FileError(f"{path} is damaged or not a Parquet file: {error}") from error
        self.text = [field.name for field in schema if not _has_numbers(field.type)]
        if not schema.names:
            raise InputError(f"{path}: it has no columns")
        self.columns: list[str] = schema.names
        self.names = schema.names
        self.dim = len(schema.names)
        self._edges = [0, *accumulate(groups)]
        self.rows = self._edges[-1]

    def leave_out(self, names: Collection[str]) -> None:
        """Do not read these columns."""
        self.columns = [name for name in self.columns if name not in names]
        self.text = [name for name in self.text if name not in names]
        self.dim = len(self.columns)

    def divide(self, most: int) -> list[tuple[int, int]]:
        """Whole row groups, as many as make about ``most`` rows."""
        edges = [0]
        for edge in self._edges[1:]:
            if edge - edges[-1] >= most:
                edges.append(edge)
        if edges[-1] != self._edges[-1] or len(edges) == 1:
            edges.append(self._edges[-1])
        return list(pairwise(edges))

    def chunks(self, start: int, stop: int) -> Iterator[RowChunk]:
        """Batches of the row groups between."""
        groups = [i for i, (low, high) in enumerate(pairwise(self._edges)) if start <= low < high <= stop]
        first = start
        try:
            with parquet.ParquetFile(self._path) as file:
                batches = file.iter_batches(self.rows_a_chunk, groups, self.columns, use_threads=False)
                for batch in batches:
                    yield RowChunk(table_rows(batch), first)
                    first += batch.num_rows
        except (pa.ArrowInvalid, OSError) as error:
            raise FileError(f"{self.name}: damaged after row {first}: {error}") from error


def _without_index(schema: pa.Schema) -> pa.Schema:
    """What pandas saved as the index of a frame is no column of it."""
    described = json.loads((schema.metadata or {}).get(b"pandas", b"{}"))
    for name in described.get("index_columns", []):
        if isinstance(name, str) and name in schema.names:
            schema = schema.remove(schema.get_field_index(name))
    return schema


def _has_numbers(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(types.is_floating(kind) or types.is_integer(kind) or types.is_boolean(kind))
