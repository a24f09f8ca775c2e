"""What comes on standard input: an .npy file or text, told apart by the first bytes."""

from collections.abc import Collection, Iterator
from typing import IO

import numpy as np

from sketchbandit.errors import FileError, InputError
from sketchbandit.outofcore.sources.base import Chunk, Source
from sketchbandit.outofcore.sources.npy import read_header


class PipeSource(Source):
    """A matrix that can be read once, from its start."""

    def __init__(self, file: IO[bytes], header: bool | None = None, name: str = "standard input") -> None:
        self.name, self._file = name, file
        self.rows = None
        self._table = None
        if file.peek(6)[:6] == b"\x93NUMPY":  # type: ignore[attr-defined]
            self._header = read_header(name, file)
            if self._header.is_fortran:
                raise InputError(
                    f"{name}: its columns lie together (Fortran order); save it in C order, or to a file"
                )
            self.rows, self.dim = self._header.shape
            return
        from sketchbandit.outofcore.sources.csv import TextTable  # noqa: PLC0415  (needs pyarrow)

        self._table = TextTable(name, file, header)
        self.names = self._table.names
        self._describe()

    def leave_out(self, names: Collection[str]) -> None:
        """Do not read these columns of a text."""
        if self._table is not None:
            self._table.leave_out(names)
            self._describe()

    def _describe(self) -> None:
        if self._table is not None:
            self.dim, self.columns, self.text = self._table.dim, self._table.columns, self._table.text

    def chunks(self, start: int, stop: int) -> Iterator[Chunk]:
        """All that comes."""
        del start, stop
        if self._table is not None:
            yield from self._table.chunks()
            return
        row_bytes = self.dim * self._header.dtype.itemsize
        for first, last in self.bounds(0, self.rows or 0):
            payload = self._file.read((last - first) * row_bytes)
            if len(payload) < (last - first) * row_bytes:
                raise FileError(f"{self.name} ended early: {self.rows:,} rows were announced")
            yield Chunk(np.frombuffer(payload, self._header.dtype).reshape(-1, self.dim), first)
        if self._file.read(1):
            raise FileError(
                f"{self.name} goes on after the {self.rows:,} rows of an .npy file: one file at a time"
            )
