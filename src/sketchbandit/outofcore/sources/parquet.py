"""Parquet: its columns of numbers; its row groups are the parts."""

import json
from collections.abc import Collection, Iterator
from itertools import accumulate, pairwise
from pathlib import Path

import pyarrow as pa
from pyarrow import parquet

from sketchbandit.errors import FileError, InputError
from sketchbandit.outofcore.sources.base import MatrixSource, RowChunk
from sketchbandit.outofcore.sources.text import table_rows


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
        self.text = [field.name for field in schema if not _is_number(field.type)]
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


def _is_number(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(types.is_floating(kind) or types.is_integer(kind) or types.is_boolean(kind))
