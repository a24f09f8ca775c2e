"""Numpy's own files, mapped into memory."""

import mmap
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.lib import format as npy_format

from sketchbandit.arrays import AnyArray
from sketchbandit.errors import FileError
from sketchbandit.outofcore.sources import ahead
from sketchbandit.outofcore.sources.base import Chunk, Source, check_matrix


class Header(NamedTuple):
    """What an .npy file says of its array."""

    shape: tuple[int, ...]
    is_fortran: bool
    dtype: "np.dtype[Any]"


def read_header(name: str, file: IO[bytes]) -> Header:
    """The header of a matrix at the start of ``file``, which then stands at the first entry."""
    header = read_any_header(name, file)
    check_matrix(name, header.shape, header.dtype)
    return header


def read_any_header(name: str, file: IO[bytes]) -> Header:
    """The same of any array."""
    try:
        version = npy_format.read_magic(file)
        read = npy_format.read_array_header_1_0 if version == (1, 0) else npy_format.read_array_header_2_0
        shape, is_fortran, dtype = read(file)
    except (ValueError, EOFError) as error:
        raise FileError(f"{name} is damaged or not an npy file: {error}") from error
    return Header(shape, is_fortran, dtype)


class NpySource(Source):
    """A matrix in an .npy file of any real dtype, never in memory as a whole.

    Rows are read through a memory map; from files that are large beside the machine's memory, past its cache.
    """

    divisible = True

    def __init__(self, path: Path) -> None:
        self.name, self._path = str(path), path
        with path.open("rb") as file:
            self._header = read_header(self.name, file)
            self._offset = file.tell()
        self.rows, self.dim = self._header.shape
        self._row_bytes = self.dim * self._header.dtype.itemsize
        there, needed = path.stat().st_size, self._offset + self.rows * self._row_bytes
        if there < needed:
            raise FileError(
                f"{path} is cut short: {there:,} bytes, and {self._header.shape} needs {needed:,}"
            )

    def chunks(self, start: int, stop: int) -> Iterator[Chunk]:
        """Views of the file, each good until the next is asked for."""
        if start == stop:
            return
        if self._header.is_fortran:
            yield from self._strided(start, stop)
        elif ahead.is_worth_it(self._path):
            yield from self._directly(start, stop)
        else:
            yield from self._mapped(start, stop)

    def _mapped(self, start: int, stop: int) -> Iterator[Chunk]:
        with self._path.open("rb") as file:
            begin = self._offset + start * self._row_bytes
            skipped = begin % mmap.ALLOCATIONGRANULARITY  # a map begins at a page
            length = skipped + (stop - start) * self._row_bytes
            mapped = mmap.mmap(file.fileno(), length, access=mmap.ACCESS_READ, offset=begin - skipped)
        _advise(mapped, "MADV_SEQUENTIAL", 0, length)
        for first, last in self.bounds(start, stop):
            at = skipped + (first - start) * self._row_bytes
            yield Chunk(self._rows(mapped, last - first, at), first)
            # Pages that were read count as our memory until they are given back.
            _advise(mapped, "MADV_DONTNEED", at, (last - first) * self._row_bytes)

    def _directly(self, start: int, stop: int) -> Iterator[Chunk]:
        step = max(1, ahead.BLOCK_BYTES // self._row_bytes)
        begin, end = (self._offset + row * self._row_bytes for row in (start, stop))
        first = start
        for block in ahead.read_ahead(self._path, begin, end, step * self._row_bytes):
            count = len(block) // self._row_bytes
            rows = self._rows(block, count, 0)
            for at in range(0, count, self.rows_a_chunk):
                yield Chunk(rows[at : at + self.rows_a_chunk], first + at)
            first += count
            del rows  # the block is used again

    def _rows(self, buffer: Any, count: int, at: int) -> AnyArray:
        return np.frombuffer(buffer, self._header.dtype, count * self.dim, at).reshape(count, self.dim)

    def _strided(self, start: int, stop: int) -> Iterator[Chunk]:
        """Columns lie together: every chunk is gathered from all over the file."""
        matrix = np.memmap(self._path, self._header.dtype, "r", self._offset, self._header.shape, "F")
        for first, last in self.bounds(start, stop):
            yield Chunk(np.ascontiguousarray(matrix[first:last]), first)


def _advise(mapped: mmap.mmap, advice: str, start: int, length: int) -> None:
    """Tell the system about whole pages, where it can be told."""
    if not hasattr(mmap, advice):
        return
    page = mmap.PAGESIZE
    first = start // page * page
    length = min(start + length, len(mapped)) - first
    if length > 0:
        mapped.madvise(getattr(mmap, advice), first, length)
