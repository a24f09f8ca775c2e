"""What the user has, as a list of partitions: Dask arrays, Dask dataframes, delayed or plain blocks."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from dask.array import Array
from dask.delayed import Delayed, delayed

from sketchbandit.errors import InputError, InputTypeError


class Partition(NamedTuple):
    """A block of rows, still to be computed perhaps, and how messages call it."""

    block: Any
    name: str


class Partitions(NamedTuple):
    """All blocks, in order; how many rows they have together and how long a row is, where that is known."""

    blocks: list[Partition]
    rows: int | None
    dim: int | None


def partitions_of(collection: Any, names: Sequence[str] | None = None) -> Partitions:
    """The partitions of a collection of rows."""
    if isinstance(collection, Delayed):
        blocks, rows, dim = [collection], None, None
    elif isinstance(collection, Array):
        blocks, rows, dim = _of_array(collection)
    elif hasattr(collection, "to_delayed") and hasattr(collection, "columns"):
        blocks, rows, dim = _of_dataframe(collection)
    elif isinstance(collection, (list, tuple)):
        blocks, rows, dim = list(collection), None, None
    else:
        raise InputTypeError(
            "give a Dask array, a Dask dataframe or a list of (delayed) blocks of rows, "
            f"not {type(collection).__name__}"
        )
    if not blocks:
        raise InputError("there are no partitions")
    if names is None:
        names = [f"partition {number}" for number in range(len(blocks))]
    elif len(names) != len(blocks):
        raise InputError(f"there are {len(blocks)} partitions, but {len(names)} names for them")
    return Partitions([Partition(*pair) for pair in zip(blocks, names, strict=True)], rows, dim)


def _of_array(array: Any) -> tuple[list[Any], int | None, int | None]:
    if array.ndim != 2:
        raise InputError(f"the array must be a matrix, but has {array.ndim} dimensions {array.shape}")
    if array.numblocks[1] > 1:
        array = array.rechunk({1: -1})  # a row is never cut
    rows, dim = array.shape
    blocks = list(array.to_delayed()[:, 0])
    return blocks, None if np.isnan(rows) else int(rows), None if np.isnan(dim) else int(dim)


def _of_dataframe(frame: Any) -> tuple[list[Any], int | None, int | None]:
    wrong = [str(name) for name, kind in frame.dtypes.items() if getattr(kind, "kind", "O") not in "fiub"]
    if wrong:
        raise InputTypeError(
            f"every column must be a number, but these are not: {', '.join(wrong[:5])}"
            f"{', ...' if len(wrong) > 5 else ''}; encode or drop them"
        )
    return list(frame.to_delayed()), None, len(frame.columns)


def as_rows(block: Any) -> Any:
    """A block as numbers: numpy, scipy.sparse, or whatever turns into an array."""
    return block.to_numpy() if hasattr(block, "to_numpy") else block


def tree(parts: list[Any], merge: Any, split_every: int) -> Any:
    """One result from many, merged in groups of neighbours: the same groups whoever computes them."""
    while len(parts) > 1:
        groups = [parts[i : i + split_every] for i in range(0, len(parts), split_every)]
        parts = [delayed(merge, pure=False)(group) for group in groups]
    return parts[0]
