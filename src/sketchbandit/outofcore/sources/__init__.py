"""Matrices in files: from what the user names to what is read, a chunk of rows at a time."""

import glob
import sys
from collections.abc import Collection, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import IO

import numpy as np

from sketchbandit.errors import FileError, InputError
from sketchbandit.outofcore.sources.base import MatrixSource, RowChunk, leave_out, names_in, option
from sketchbandit.outofcore.sources.numpy_files import read_header

__all__ = [
    "STANDARD_INPUT",
    "MatrixSource",
    "RowChunk",
    "find",
    "leave_out",
    "names_in",
    "open_source",
    "option",
]

STANDARD_INPUT = "-"

# By suffix: the module here, and its class. Text and Parquet need pyarrow, which is imported for them alone.
_KINDS = {
    ".npy": ("numpy_files", "NpySource"),
    ".npz": ("numpy_files", "NpzSource"),
    ".csv": ("arrow_files", "CsvSource"),
    ".tsv": ("arrow_files", "CsvSource"),
    ".txt": ("arrow_files", "CsvSource"),
    ".parquet": ("arrow_files", "ParquetSource"),
}
SUFFIXES = tuple(_KINDS)


class PipeSource(MatrixSource):
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
        from sketchbandit.outofcore.sources.arrow_files import TextTable  # noqa: PLC0415  (needs pyarrow)

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

    def chunks(self, start: int, stop: int) -> Iterator[RowChunk]:
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
            yield RowChunk(np.frombuffer(payload, self._header.dtype).reshape(-1, self.dim), first)
        if self._file.read(1):
            raise FileError(
                f"{self.name} goes on after the {self.rows:,} rows of an .npy file: one file at a time"
            )


def find(inputs: Sequence[str]) -> list[str]:
    """The files that the inputs name, globs expanded, in the order given; a glob's in that of their names."""
    found: list[str] = []
    for text in inputs:
        if text == STANDARD_INPUT or Path(text).exists() or not glob.has_magic(text):
            found.append(text)
            continue
        matches = sorted(glob.glob(text, recursive=True))  # noqa: PTH207  (a pattern may be absolute)
        if not matches:
            raise InputError(f"no file matches {text!r}")
        found += matches
    if not found:
        raise InputError(
            f"nothing to read: name a file ({', '.join(SUFFIXES)}), a glob, or - for standard input"
        )
    seen: dict[tuple[int, int], str] = {}
    for name in found:
        if name != STANDARD_INPUT and Path(name).exists():
            status = Path(name).stat()
            before = seen.setdefault((status.st_dev, status.st_ino), name)
            if before is not name:
                raise InputError(f"{name} is {before} again: its rows would count twice")
    if STANDARD_INPUT in found and len(found) > 1:
        raise InputError("standard input (-) is read alone, not beside files")
    return found


def open_source(name: str, header: bool | None = None) -> MatrixSource:
    """The matrix in a file, or what comes on standard input; ``header``: whether text begins with names."""
    if name == STANDARD_INPUT:
        return PipeSource(sys.stdin.buffer, header)
    path = Path(name)
    if path.is_dir():
        raise InputError(f"{name} is a folder; name the files in it, e.g. '{name.rstrip('/')}/*.npy'")
    if not path.is_file():
        raise FileNotFoundError(f"no such file: {name}")
    if path.suffix.lower() not in _KINDS:
        raise InputError(f"{name}: cannot read {path.suffix or 'this'}; give one of {', '.join(SUFFIXES)}")
    module, kind = _KINDS[path.suffix.lower()]
    settings = {"header": header} if kind == "CsvSource" else {}
    try:
        made = getattr(import_module(f"sketchbandit.outofcore.sources.{module}"), kind)
        source: MatrixSource = made(path, **settings)
    except PermissionError as error:
        raise FileError(f"{name} may not be read: {error.strerror}") from error
    return source
