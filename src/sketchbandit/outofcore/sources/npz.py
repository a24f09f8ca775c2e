"""Archives of numpy arrays: sparse matrices as scipy saves them, or one dense matrix."""

import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from sketchbandit.errors import FileError, InputError, SketchBanditError
from sketchbandit.outofcore.sources.base import Chunk, Source, check_matrix
from sketchbandit.outofcore.sources.npy import read_any_header

_DENSE = "X"  # the name of a dense matrix beside other arrays


class NpzSource(Source):
    """A matrix in an .npz file. The archive is packed, so it is read as a whole: a file is a part."""

    def __init__(self, path: Path) -> None:
        self.name, self._path = str(path), path
        try:
            with zipfile.ZipFile(path) as archive:
                names = [name.removesuffix(".npy") for name in archive.namelist()]
                self._is_sparse = {"format", "shape", "data"} <= set(names)
                self._member = "data" if self._is_sparse else _member(path, names)
                with archive.open(f"{self._member}.npy") as file:
                    shape, _, dtype = read_any_header(self.name, file)
                if self._is_sparse:
                    with np.load(path, allow_pickle=False) as arrays:
                        shape = tuple(int(n) for n in arrays["shape"])
        except (zipfile.BadZipFile, zlib.error, KeyError, EOFError, ValueError) as error:
            if isinstance(error, SketchBanditError):
                raise
            raise FileError(f"{path} is damaged or not an npz file: {error}") from error
        check_matrix(self.name, shape, dtype)
        self.rows, self.dim = shape

    def chunks(self, start: int, stop: int) -> Iterator[Chunk]:
        """Pieces of the matrix, which is in memory meanwhile."""
        matrix = self._read()
        for first, last in self.bounds(start, stop):
            yield Chunk(matrix[first:last], first)

    def _read(self) -> Any:
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
