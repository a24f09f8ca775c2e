"""Matrices in files: from what the user names to what is read, a chunk of rows at a time."""

import glob
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from sketchbandit.errors import FileError, InputError
from sketchbandit.outofcore.sources.base import MatrixSource, RowChunk, leave_out, names_in, option
from sketchbandit.outofcore.sources.numpy_files import NpyPipe

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
        return _standard_input(header)
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


def _standard_input(header: bool | None) -> MatrixSource:
    name, file = "standard input", sys.stdin.buffer
    if file.peek(6)[:6] == b"\x93NUMPY":  # type: ignore[union-attr]
        return NpyPipe(name, file)
    from sketchbandit.outofcore.sources.arrow_files import TextSource  # noqa: PLC0415  (needs pyarrow)

    return TextSource(name, file, header)
