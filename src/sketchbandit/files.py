"""Safe files: safetensors with a format name, a version and a checksum, written atomically; locked folders.

A file holds arrays and JSON, nothing that could execute. Its metadata are

    format          "sketchbandit"
    format_version  an integer; files of another one are refused
    kind            what it holds, e.g. "frequent-directions"
    scalars         JSON: settings and learned numbers (floats round-trip to the bit)
    sha256          of the kind, the scalars and every array
"""

import hashlib
import io
import json
import os
import secrets
from pathlib import Path
from typing import NamedTuple

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import load as from_safetensors

from sketchbandit.arrays import AnyArray, Arrays, Scalars
from sketchbandit.errors import FileError, InputError

FORMAT = "sketchbandit"
FORMAT_VERSION = 3
_OLDEST = 2
_DTYPES = {
    "float64": "F64",
    "float32": "F32",
    "int64": "I64",
    "int32": "I32",
    "uint64": "U64",
    "uint32": "U32",
    "uint8": "U8",
    "bool": "BOOL",
}
"""The names of dtypes in safetensors."""


class Contents(NamedTuple):
    """The contents of a file."""

    kind: str
    scalars: Scalars
    arrays: Arrays


def write(path: Path, kind: str, scalars: Scalars, arrays: Arrays) -> None:
    """Write arrays and JSON values, atomically."""
    replace_file(path, *to_parts(kind, scalars, arrays))


def to_parts(kind: str, scalars: Scalars, arrays: Arrays) -> list[bytes | memoryview]:
    """The bytes that ``write`` writes, in safetensors format: a header, and the arrays without a copy.

    The writer of safetensors would copy all arrays twice, and block other threads meanwhile.
    """
    text = json.dumps(scalars, sort_keys=True)
    arrays = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    metadata = {
        "format": FORMAT,
        "format_version": str(FORMAT_VERSION),
        "kind": kind,
        "scalars": text,
        "sha256": _digest(kind, text, arrays),
    }
    header: Scalars = {"__metadata__": metadata}
    end = 0
    for name, array in arrays.items():
        begin, end = end, end + array.nbytes
        shape = list(array.shape)
        header[name] = {"dtype": _DTYPES[array.dtype.name], "shape": shape, "data_offsets": [begin, end]}
    said = json.dumps(header).encode()
    said += b" " * (-len(said) % 8)
    return [len(said).to_bytes(8, "little") + said, *(_buffer(array) for array in arrays.values())]


def _buffer(array: AnyArray) -> memoryview:
    little = array.astype(array.dtype.newbyteorder("<"), copy=False)
    return memoryview(little.reshape(-1).view(np.uint8))  # type: ignore[arg-type]  # numpy's hints are incomplete


def replace_file(path: Path, *parts: bytes | memoryview) -> None:
    """Write a temporary file, sync it, rename it to ``path``: a crash leaves the old file or the new one."""
    if path.is_dir():
        raise IsADirectoryError(f"cannot write {path}: it is a folder")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"cannot write {path}: there is no folder {path.parent}")
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
    try:
        with temporary.open("xb") as file:
            file.writelines(parts)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _sync_directory(path.parent)


def read(path: Path) -> Contents:
    """Read a file that ``write`` made. Any other file raises FileError."""
    if path.is_dir():
        raise IsADirectoryError(f"cannot read {path}: it is a folder")
    if not path.is_file():
        raise FileNotFoundError(f"no such file: {path}")
    try:
        with safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
            _check_format(path, metadata)
            names = file.keys()
            arrays = {name: file.get_tensor(name) for name in names}
    except SafetensorError as error:
        raise FileError(f"{path} is damaged or not a safetensors file: {error}") from error
    return _checked(path, metadata, arrays)


def from_bytes(content: bytes, name: str) -> Contents:
    """Read bytes that ``to_parts`` made; messages call them ``name``. Other bytes raise FileError."""
    try:
        arrays = from_safetensors(content)
    except SafetensorError as error:
        raise FileError(f"{name} is damaged or not a safetensors file: {error}") from error
    length = int.from_bytes(content[:8], "little")  # then come the header and the arrays
    metadata = json.loads(content[8 : 8 + length]).get("__metadata__", {})
    _check_format(name, metadata)
    return _checked(name, metadata, arrays)


def _checked(path: Path | str, metadata: dict[str, str], arrays: Arrays) -> Contents:
    try:
        kind, text, expected = metadata["kind"], metadata["scalars"], metadata["sha256"]
    except KeyError as error:
        raise FileError(f"{path} is damaged: its header lacks {error}") from None
    if _digest(kind, text, arrays) != expected:
        raise FileError(f"{path} is damaged: its contents do not match their checksum; restore a copy")
    if not all(np.isfinite(array).all() for array in arrays.values()):
        raise FileError(f"{path} holds NaN or inf, so sketchbandit did not write it; restore a copy")
    return Contents(kind, json.loads(text), arrays)


def _check_format(path: Path | str, metadata: dict[str, str]) -> None:
    if metadata.get("format") != FORMAT:
        raise FileError(f"{path} was not written by sketchbandit: its format is {metadata.get('format')!r}")
    version = metadata.get("format_version", "")
    if not version.isdecimal() or int(version) < 1:
        raise FileError(f"{path} is damaged: its format version is {version!r}")
    if int(version) < _OLDEST:
        raise FileError(
            f"{path} has format version {version}, of sketchbandit 0.1, and this one reads {_OLDEST} and up; "
            "load it with sketchbandit 0.1"
        )
    if int(version) > FORMAT_VERSION:
        raise FileError(
            f"{path} has format version {version}, and this sketchbandit reads up to {FORMAT_VERSION}; "
            "upgrade sketchbandit to load it"
        )


def _digest(kind: str, text: str, arrays: Arrays) -> str:
    digest = hashlib.sha256(f"{kind}\n{text}\n".encode())
    for name in sorted(arrays):
        array = arrays[name]
        digest.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        digest.update(array.data if array.size else b"")
    return digest.hexdigest()


def _sync_directory(directory: Path) -> None:
    if os.name != "posix":  # on other systems a folder cannot be opened for syncing
        return
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def lock_folder(folder: Path) -> io.TextIOWrapper:
    """Keep other processes out of ``folder`` until the file returned is closed, or the process ends."""
    lock = (folder / ".lock").open("a", encoding="utf-8")
    if os.name == "posix":  # on other systems users must not run two processes in one folder
        import fcntl  # noqa: PLC0415  (not everywhere)

        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            lock.close()
            raise InputError(f"{folder} is in use by another process") from None
    return lock
