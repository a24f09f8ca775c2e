"""Numpy's own files: .npy, mapped into memory or read ahead, and .npz, scipy's sparse matrices included.

Through a memory map, a file that is not in the page cache takes nearly as long to page in as its sketch to
compute, and it pushes everything else out. So a large one is read past the cache by a thread that is a few
blocks ahead: the disk delivers while the processor works.
"""

import errno
import mmap
import os
import queue
import threading
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np
from numpy.lib import format as npy_format
from scipy import sparse

from sketchbandit.arrays import AnyArray, Dtype, Rows
from sketchbandit.errors import FileError, InputError, SketchBanditError
from sketchbandit.outofcore.sources.base import MatrixSource, RowChunk, check_matrix

_DENSE = "X"  # the name of a dense matrix beside other arrays
BLOCK_BYTES = 1 << 25
_BLOCKS = 3  # one in use, one ready, one on its way
_PAGE = 4096  # what direct reads are aligned to
_SHARE_OF_MEMORY = 4
_Block = tuple[mmap.mmap, memoryview]


class Header(NamedTuple):
    """What an .npy file says of its array."""

    shape: tuple[int, ...]
    is_fortran: bool
    dtype: Dtype


def read_header(name: str, file: IO[bytes]) -> Header:
    """The header of a matrix at the start of ``file``, which then stands at the first entry."""
    header = _read_any_header(name, file)
    check_matrix(name, header.shape, header.dtype)
    return header


def _read_any_header(name: str, file: IO[bytes]) -> Header:
    """The same of any array."""
    try:
        version = npy_format.read_magic(file)
        read = npy_format.read_array_header_1_0 if version == (1, 0) else npy_format.read_array_header_2_0
        shape, is_fortran, dtype = read(file)
    except (ValueError, EOFError) as error:
        raise FileError(f"{name} is damaged or not an npy file: {error}") from error
    return Header(shape, is_fortran, dtype)


class NpySource(MatrixSource):
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

    def chunks(self, start: int, stop: int) -> Iterator[RowChunk]:
        """Views of the file, each good until the next is asked for."""
        if start == stop:
            return
        if self._header.is_fortran:
            yield from self._strided(start, stop)
        elif is_worth_reading_ahead(self._path):
            yield from self._directly(start, stop)
        else:
            yield from self._mapped(start, stop)

    def _mapped(self, start: int, stop: int) -> Iterator[RowChunk]:
        with self._path.open("rb") as file:
            begin = self._offset + start * self._row_bytes
            skipped = begin % mmap.ALLOCATIONGRANULARITY  # a map begins at a page
            length = skipped + (stop - start) * self._row_bytes
            mapped = mmap.mmap(file.fileno(), length, access=mmap.ACCESS_READ, offset=begin - skipped)
        _advise(mapped, "MADV_SEQUENTIAL", 0, length)
        for first, last in self.bounds(start, stop):
            at = skipped + (first - start) * self._row_bytes
            yield RowChunk(self._rows(mapped, last - first, at), first)
            # Pages that were read count as our memory until they are given back.
            _advise(mapped, "MADV_DONTNEED", at, (last - first) * self._row_bytes)

    def _directly(self, start: int, stop: int) -> Iterator[RowChunk]:
        step = max(1, BLOCK_BYTES // self._row_bytes)
        begin, end = (self._offset + row * self._row_bytes for row in (start, stop))
        first = start
        for block in read_ahead(self._path, begin, end, step * self._row_bytes):
            count = len(block) // self._row_bytes
            rows = self._rows(block, count, 0)
            for at in range(0, count, self.rows_a_chunk):
                yield RowChunk(rows[at : at + self.rows_a_chunk], first + at)
            first += count
            del rows  # the block is used again

    def _rows(self, buffer: mmap.mmap | memoryview, count: int, at: int) -> AnyArray:
        return np.frombuffer(buffer, self._header.dtype, count * self.dim, at).reshape(count, self.dim)

    def _strided(self, start: int, stop: int) -> Iterator[RowChunk]:
        """Columns lie together: every chunk is gathered from all over the file."""
        matrix = np.memmap(self._path, self._header.dtype, "r", self._offset, self._header.shape, "F")
        for first, last in self.bounds(start, stop):
            yield RowChunk(np.ascontiguousarray(matrix[first:last]), first)


class NpyPipe(MatrixSource):
    """An .npy file that can be read once, from its start, such as what comes on standard input."""

    def __init__(self, name: str, file: IO[bytes]) -> None:
        self.name, self._file = name, file
        self._header = read_header(name, file)
        if self._header.is_fortran:
            raise InputError(
                f"{name}: its columns lie together (Fortran order); save it in C order, or to a file"
            )
        self.rows, self.dim = self._header.shape

    def chunks(self, start: int, stop: int) -> Iterator[RowChunk]:
        """All that comes."""
        row_bytes = self.dim * self._header.dtype.itemsize
        for first, last in self.bounds(start, stop):
            payload = self._file.read((last - first) * row_bytes)
            if len(payload) < (last - first) * row_bytes:
                raise FileError(f"{self.name} ended early: {self.rows:,} rows were announced")
            yield RowChunk(np.frombuffer(payload, self._header.dtype).reshape(-1, self.dim), first)
        if self._file.read(1):
            raise FileError(
                f"{self.name} goes on after the {self.rows:,} rows of an .npy file: one file at a time"
            )


def _advise(mapped: mmap.mmap, advice: str, start: int, length: int) -> None:
    """Tell the system about whole pages, where it can be told."""
    if not hasattr(mmap, advice):
        return
    page = mmap.PAGESIZE
    first = start // page * page
    length = min(start + length, len(mapped)) - first
    if length > 0:
        mapped.madvise(getattr(mmap, advice), first, length)


class NpzSource(MatrixSource):
    """A matrix in an .npz file. The archive is packed, so it is read as a whole: a file is a part."""

    def __init__(self, path: Path) -> None:
        self.name, self._path = str(path), path
        try:
            with zipfile.ZipFile(path) as archive:
                names = [name.removesuffix(".npy") for name in archive.namelist()]
                self._is_sparse = {"format", "shape", "data"} <= set(names)
                self._member = "data" if self._is_sparse else _member(path, names)
                with archive.open(f"{self._member}.npy") as file:
                    shape, _, dtype = _read_any_header(self.name, file)
                if self._is_sparse:
                    with np.load(path, allow_pickle=False) as arrays:
                        shape = tuple(int(n) for n in arrays["shape"])
        except (zipfile.BadZipFile, zlib.error, KeyError, EOFError, ValueError) as error:
            if isinstance(error, SketchBanditError):
                raise
            raise FileError(f"{path} is damaged or not an npz file: {error}") from error
        check_matrix(self.name, shape, dtype)
        self.rows, self.dim = shape

    def chunks(self, start: int, stop: int) -> Iterator[RowChunk]:
        """Pieces of the matrix, which is in memory meanwhile."""
        matrix = self._read()
        for first, last in self.bounds(start, stop):
            yield RowChunk(matrix[first:last], first)

    def _read(self) -> Rows:
        try:
            if not self._is_sparse:
                with np.load(self._path, allow_pickle=False) as arrays:
                    return arrays[self._member]
            matrix = sparse.load_npz(self._path).tocsr()
            matrix.check_format(full_check=True)
        except (ValueError, OSError, EOFError, KeyError, zipfile.BadZipFile, zlib.error) as error:
            raise FileError(f"{self.name} is damaged: {error}") from error
        return matrix


def _member(path: Path, names: list[str]) -> str:
    if _DENSE in names:
        return _DENSE
    if len(names) == 1:
        return names[0]
    raise InputError(f"{path}: which array? It has {', '.join(names) or 'none'}; call the matrix {_DENSE}")


# -- reading ahead -----------------------------------------------------------------------------------


def is_worth_reading_ahead(path: Path) -> bool:
    """Whether the file is large beside the memory of the machine, and the system can read directly."""
    if not (hasattr(os, "O_DIRECT") and hasattr(os, "preadv")):
        return False
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return path.stat().st_size > memory // _SHARE_OF_MEMORY


def read_ahead(path: Path, start: int, stop: int, block: int) -> Iterator[memoryview]:
    """The bytes ``start`` to ``stop`` in blocks of ``block``; each is good until the next is asked for."""
    reader = _Reader(path, start, stop, block)
    reader.start()
    try:
        while (come := reader.full.get()) is not None:
            if isinstance(come, BaseException):
                raise come
            buffer, view = come
            yield view
            reader.free.put(buffer)
    finally:
        reader.stopped = True
        reader.free.put(None)  # it may be waiting for one
        reader.join()


class _Reader(threading.Thread):
    def __init__(self, path: Path, start: int, stop: int, block: int) -> None:
        super().__init__(daemon=True, name=f"reading {path}")
        self._path, self._first, self._last, self._block = path, start, stop, block
        self.free: queue.SimpleQueue[mmap.mmap | None] = queue.SimpleQueue()
        self.full: queue.SimpleQueue[_Block | BaseException | None] = queue.SimpleQueue()
        self.stopped = False
        for _ in range(_BLOCKS):
            self.free.put(mmap.mmap(-1, block + 2 * _PAGE))

    def run(self) -> None:
        try:
            self._handle = _open(self._path)
            try:
                for at in range(self._first, self._last, self._block):
                    buffer = self.free.get()
                    if self.stopped or buffer is None:
                        return
                    self.full.put((buffer, self._fill(buffer, at, min(at + self._block, self._last))))
            finally:
                os.close(self._handle)
            self.full.put(None)
        except BaseException as error:
            self.full.put(error)

    def _fill(self, buffer: mmap.mmap, start: int, stop: int) -> memoryview:
        first = start // _PAGE * _PAGE
        whole = memoryview(buffer)[: -(-(stop - first) // _PAGE) * _PAGE]
        got = 0
        while got < stop - first:
            try:
                some = os.preadv(self._handle, [whole[got:]], first + got)
            except OSError as error:
                if error.errno != errno.EINVAL:
                    raise
                os.close(self._handle)  # a file system that takes the flag and then cannot
                self._handle = os.open(self._path, os.O_RDONLY)
                continue
            if not some:
                raise FileError(f"{self._path} has become shorter while it was read")
            got += some
        return whole[start - first : stop - first]


def _open(path: Path) -> int:
    try:
        return os.open(path, os.O_RDONLY | os.O_DIRECT)
    except OSError:  # a file system that cannot
        return os.open(path, os.O_RDONLY)
