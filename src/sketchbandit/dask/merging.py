"""Merging the results of the partitions, in a tree that does not depend on the scheduler."""

import copy
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from dask.delayed import delayed

from sketchbandit.dask.computing import result_of
from sketchbandit.errors import InputError


class Part(NamedTuple):
    """The result of some partitions (with ``dim`` and ``merge``), and the name of the first."""

    content: Any
    name: str


def merge_partitions(
    read: Callable[..., Part | None], arguments: Iterable[Any], split_every: int, address: str | None
) -> Any:
    """Merge what ``read`` returns for each partition; None if no partition has rows."""
    read_later = delayed(read, pure=False)
    found: Part | None = result_of(_tree([read_later(*some) for some in arguments], split_every), address)
    return None if found is None else found.content


def _tree(parts: list[Any], split_every: int) -> Any:
    """Merge delayed parts in groups of neighbours."""
    while len(parts) > 1:
        groups = [parts[i : i + split_every] for i in range(0, len(parts), split_every)]
        parts = [delayed(merge_all, pure=False)(group) for group in groups]
    return parts[0]


def merge_all(parts: list[Part | None]) -> Part | None:
    """A copy of the first part with the others merged in. Parts without rows are left out."""
    present = [part for part in parts if part is not None]
    if not present:
        return None
    first, *others = present
    total = copy.deepcopy(first.content)
    for other in others:
        if other.content.dim != total.dim:
            raise InputError(
                f"{other.name}: its rows have length {other.content.dim}, "
                f"but those of {first.name} {total.dim}"
            )
        total.merge(other.content)
    return Part(total, first.name)
